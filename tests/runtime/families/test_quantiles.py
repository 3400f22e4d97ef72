"""Draws from a part of a family's support: by inverses of cdfs where they have a closed form, else by a search."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import pytest
import torch

from qvr_core.runtime.families import RUNTIME_FAMILIES
from qvr_core.runtime.families.cumulative.quantiles import truncated_draw
from qvr_core.runtime.families.cumulative.tails import from_smaller, log1mexp
from tests.runtime.families.test_cdfs import CASES, IDS, arguments

SHARES = [1e-300, 1e-23, 1e-6, 0.01, 0.3, 0.5]
CLOSED = [case for case in CASES if RUNTIME_FAMILIES[case[0]].quantile is not None]


def parameters_of(name, given):
    return RUNTIME_FAMILIES[name].canonical(arguments(given))


def test_every_family_whose_draws_are_functions_of_noise_has_its_inverse():
    closed = {name for name, family in RUNTIME_FAMILIES.items() if family.quantile is not None}
    transformed = {
        name for name, family in RUNTIME_FAMILIES.items()
        if family.tails is not None and family.transform is not None and not family.event
    }  # fmt: skip
    assert transformed - closed <= {"MixtureNormal"} and {"Geometric", "DiscreteUniform"} <= closed


@pytest.mark.parametrize("case", CLOSED, ids=[IDS[CASES.index(case)] for case in CLOSED])
def test_the_inverse_has_the_tails_that_were_asked_for(case):
    name, given, _ = case
    family, parameters = RUNTIME_FAMILIES[name], parameters_of(name, given)
    share = torch.tensor(SHARES, dtype=torch.float64).log()
    for lower, upper in ((share, log1mexp(share)), (log1mexp(share), share)):
        value = family.quantile(*from_smaller(lower, upper), *parameters)
        if family.facts.discrete:
            assert bool((family.log_tails(value, *parameters)[0] >= lower - 1e-12).all())
            before = family.log_tails(value - 1.0, *parameters)[0]
            assert bool((before <= lower + 1e-12).all())
            continue
        # a value may be as near to an end as its own rounding
        low, high = family._ends(parameters)
        apart = (value > low + 1e-4 * low.abs()) & (value < high - 1e-4 * high.abs()) & value.isfinite()
        found = family.log_tails(value[apart], *parameters)
        smaller = torch.minimum(lower, upper)[apart]
        reached = torch.where(lower[apart] < upper[apart], *found)
        torch.testing.assert_close(reached, smaller, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize(("low", "high"), [(0.0, None), (7.0, 7.5), (None, -12.0), (-40.0, -38.0), (-0.5, 9.0)])
def test_a_truncated_normal_equals_one_of_fifty_digits(low, high):
    noise = torch.tensor([1e-12, 0.01, 0.4, 0.9, 1.0 - 1e-12], dtype=torch.float64)
    bounds = (None if one is None else torch.tensor(one, dtype=torch.float64) for one in (low, high))
    loc, scale = torch.tensor(1.0, dtype=torch.float64), torch.tensor(2.0, dtype=torch.float64)
    drawn = truncated_draw(RUNTIME_FAMILIES["Normal"], noise, *bounds, (loc, scale))
    with mpmath.workdps(50):
        for u, x in zip(noise.tolist(), drawn.tolist(), strict=True):
            start, end, here = (
                mpmath.ncdf((mpmath.mpf(one) - 1) / 2) for one in (-mpmath.inf if low is None else low,
                                                                  mpmath.inf if high is None else high, x)
            )  # fmt: skip
            off = start + mpmath.mpf(u) * (end - start) - here
            moved = off / (mpmath.npdf((mpmath.mpf(x) - 1) / 2) / 2)
            assert abs(moved) <= 1e-14 * max(1.0, abs(x)), (u, x)


@pytest.mark.parametrize(
    ("name", "given"),
    [("StudentT", {"df": 4.0, "loc": 1.0, "scale": 1.5}), ("Gamma", {"concentration": 2.0, "rate": 1.5}),
     ("NegativeBinomial", {"total": 3.0, "probs": 0.6})],
)  # fmt: skip
def test_a_search_looks_only_at_draws_that_are_not_done(name, given):
    family, looked = RUNTIME_FAMILIES[name], 0
    own = family.tails

    def counted(value, *parameters):
        nonlocal looked
        looked += value.numel()
        return own(value, *parameters)

    noise = torch.linspace(0.001, 0.999, 500, dtype=torch.float64)
    drawn = truncated_draw(replace(family, tails=counted), noise, torch.ones(()), None, parameters_of(name, given))
    assert bool((drawn >= 1.0).all()) and looked < 32 * len(noise)


@pytest.mark.parametrize("name", ["Normal", "StudentT", "Poisson"])
def test_where_nothing_lies_between_the_bounds_there_is_no_draw(name):
    given = {"Normal": (0.0, 1.0), "StudentT": (3.0, 0.0, 1.0), "Poisson": (2.0, math.log(2.0))}[name]
    low = torch.tensor([1.0, 2.5], dtype=torch.float64)
    high = torch.tensor([3.0, 2.4], dtype=torch.float64)
    noise = torch.full((2,), 0.5, dtype=torch.float64)
    drawn = truncated_draw(RUNTIME_FAMILIES[name], noise, low, high, tuple(map(torch.tensor, given)))
    assert math.isnan(drawn[1]) and 1.0 <= drawn[0] <= 3.0
