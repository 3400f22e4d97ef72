"""The table, the summary and the checks of a fit read the same figures, which are computed once."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from qvr_core.inference.diagnostics import by_site
from qvr_core.inference.diagnostics.by_site import MixingBySite, joined
from qvr_core.inference.diagnostics.convergence import Mixing, mixing


def same(found: Mixing, wanted: Mixing) -> bool:
    return all(np.array_equal(getattr(found, one.name), getattr(wanted, one.name), equal_nan=True)
               for one in fields(Mixing))  # fmt: skip


def test_elements_have_the_figures_that_they_have_alone_in_any_order(monkeypatch):
    draws = np.random.default_rng(1).normal(size=(4, 200, 3, 5)).cumsum(1)
    draws[:, :, 2, 4] = np.nan
    flat = draws.reshape(4, 200, 15)
    asked: list[int] = []

    def counted(every, elements):
        asked.append(len(elements))
        return mixing(every, elements)

    monkeypatch.setattr(by_site, "mixing", counted)
    known = MixingBySite({"a": draws, "b": draws[..., :2] + 1.0})
    for places in ([14, 3], [3], [0, 3, 7, 14]):
        assert same(known.of("a", np.array(places)), mixing(flat[:, :, places]))
    assert asked == [2, 2]  # what is known is not computed again
    both = joined([known.of("a", np.array([1])), known.of("b", np.array([5, 0]))])
    wanted = mixing(np.concatenate([flat[:, :, [1]], draws[..., :2].reshape(4, 200, 6)[:, :, [5, 0]] + 1.0], 2))
    assert same(both, wanted)
