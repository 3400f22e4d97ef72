"""A smaller case is a program that is computed as it is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.generator.comparison import compared
from tests.generator.expressions import Num
from tests.generator.running import ENGINES
from tests.generator.shrinking import candidates, relagged
from tests.generator.steps import Case, Let
from tests.generator.writing import written


def case_of(seed: int) -> Case:
    return written(seed)[0]


def recursions(case: Case) -> list[Let]:
    """The lets of a case that read earlier elements."""
    return [step for step in case.all_steps() if isinstance(step, Let) and step.time is not None]


def test_a_case_as_it_is_written_has_the_first_elements_that_its_bodies_ask_for() -> None:
    cases = [case_of(seed) for seed in range(300)]
    assert sum(len(set(step.lags)) > 1 for case in cases for step in recursions(case)) > 3
    for case in cases:
        assert relagged(case) == case


def test_without_an_earlier_element_it_is_a_let_as_others() -> None:
    found = 0
    for case in map(case_of, range(100)):
        for k, step in enumerate(case.steps):
            if isinstance(step, Let) and step.time is not None:
                plain = replace(step, bodies=(Num(0.5),) * len(step.bodies))
                changed = relagged(case.changed(steps=(*case.steps[:k], plain, *case.steps[k + 1 :])))
                assert changed is None or changed.steps[k] == replace(plain, start=(), time=None, lags=())
                found += changed is not None
    assert found > 10


@pytest.mark.parametrize("seed", [18, 143, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (58, 81, 153))])
@pytest.mark.long
def test_a_smaller_case_says_what_is_computed_element_by_element(seed: int) -> None:
    """With the first elements of the larger one the interpreter began elsewhere, and a comparison between operators
    was written without parentheses: what was shrunk became another difference than the one that was found."""
    smaller_ones = list(candidates(case_of(seed)))
    assert smaller_ones
    for smaller in smaller_ones:
        found = compared(smaller, ENGINES["torch"])
        assert found is None or found.kind.split()[0] not in ("density", "pointwise"), found.words + smaller.text
