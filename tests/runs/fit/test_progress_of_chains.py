"""How far chains are that come one after the other: never further than the transitions that each of them has."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from qvr_core.runs.fit.chains import Far

BEGUN = {0: 0, 1: 0, 2: 400, 3: 900}


@pytest.mark.parametrize(
    "place, draw, wanted", [(0, 0, (2 * 1 + 400 + 900) // 4), (1, 499, (2 * 1000 + 500 + 900) // 4), (2, 999, 1000)]
)
def test_steps_are_those_of_a_chain(place: int, draw: int, wanted: int) -> None:
    # two chains begin together, two go on from where they stood
    now = SimpleNamespace(draw=draw, total=1000)
    far = Far.in_turn(place, [[0, 1], [2], [3]], now, BEGUN.__getitem__)
    assert (far.done, far.total, far.place) == (wanted, 1000, place)


def test_chains_together_are_no_group() -> None:
    assert Far.in_turn(0, [[0, 1]], SimpleNamespace(draw=4, total=10), lambda _: 0) == Far(5, 10, None)
