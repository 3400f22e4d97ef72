"""Chains of vectors whose entries are drawn one by one, against a loop over torch's own densities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import LogNormal, Normal

from qvr_core import dsl
from qvr_core.inference.mcmc.potential import potential_of
from qvr_core.runtime.programs.handlers import condition, pointwise

PROGRAM = """
object Time : FinSet {time}
object Group : FinSet 3
object K : FinSet 2
program p : Time -> Real 1
    data tau : Time
    sample A : K * K <- Normal(0.0, 1.0)
    sample b[g : Group] <- Normal(0.0, 1.0)
    {line}
    return A
"""
A = torch.tensor([[0.5, 0.2], [-0.3, 0.8]])
B = torch.tensor([0.2, -0.5, 0.9])
Law = Callable[[Tensor, int, Tensor], Any]
"""What element t of v is drawn from, of v, t and tau."""
CASES: dict[str, tuple[str, Law]] = {
    "a number for both": (
        "v[t : Time] : Real 2 <- Normal(0.5 * v[t - 1], tau[t]) from Normal(0.0, 2.0)",
        lambda v, t, tau: Normal(0.5 * v[t - 1], tau[t]) if t else Normal(torch.zeros(2), 2.0),
    ),
    "a matrix": (
        "v[t : Time] : Real 2 <- Normal(matmul(A, v[t - 1]), 1.0) from Normal([0.0, 1.0], 2.0)",
        lambda v, t, tau: Normal(A @ v[t - 1], 1.0) if t else Normal(torch.tensor([0.0, 1.0]), 2.0),
    ),
    "one entry": (
        "v[t : Time] : Real 2 <- Normal(v[t - 1, 0] + tau[t], tau[t]) from zeros(2)",
        lambda v, t, tau: Normal(v[t - 1, 0] + tau[t], tau[t]) if t else None,
    ),
    "positive": (
        "v[t : Time] : Real 2 <- LogNormal(0.1 * v[t - 1], tau[t]) from LogNormal(0.0, 1.0)",
        lambda v, t, tau: LogNormal(0.1 * v[t - 1], tau[t]) if t else LogNormal(torch.zeros(2), 1.0),
    ),
    "groups": (
        "v[g : Group, t : Time] : Real 2 <- Normal(b[g] * v[g, t - 1], tau[t]) from Normal(b[g], 2.0)",
        lambda v, t, tau: Normal(B[:, None] * v[:, t - 1], tau[t]) if t else Normal(B[:, None], 2.0),
    ),
    "groups behind": (
        "v[t : Time, g : Group] : Real 2 <- Normal(b[g] * v[t - 1, g], tau[t]) from b[g]",
        lambda v, t, tau: Normal(B[:, None] * v[t - 1], tau[t]) if t else None,
    ),
}


def _loaded(case: str, time: int, kind: str) -> Any:
    return dsl.loads(PROGRAM.format(time=time, line=f"{kind} {CASES[case][0]}")).morphism


def _tau(time: int) -> Tensor:
    return torch.linspace(0.5, 1.5, time)


def _density(case: str, v: Tensor, time: int) -> Tensor:
    """(T,) log densities of the elements of v (…, T, …, 2), those of all groups and entries together."""
    laws = [CASES[case][1](v, t, _tau(time)) for t in range(time)]
    axis = 1 if case == "groups" else 0
    found = [torch.zeros(()) if law is None else law.log_prob(v.select(axis, t)).sum() for t, law in enumerate(laws)]
    return torch.stack(found)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("time", [2, 3, 5])
def test_densities_are_those_of_each_entry(case: str, time: int) -> None:
    torch.manual_seed(time)
    model = _loaded(case, time, "sample")
    known = {"A": A[None], "b": B[None], **({"tau": _tau(time)} if "tau" in model.wanted_data else {})}
    drawn = model.execute(None, condition(known)).sites["v"]
    value = drawn.value[0]
    shape = {"groups": (3, time, 2), "groups behind": (time, 3, 2)}.get(case, (time, 2))
    assert tuple(value.shape) == shape == model.sites["v"].info.event
    torch.testing.assert_close(drawn.log_prob[0], _density(case, value, time).sum())
    given = torch.rand(shape) + 0.1
    run = model.execute(None, condition({**known, "v": given[None]}))
    torch.testing.assert_close(run.sites["v"].log_prob[0], _density(case, given, time).sum())


def test_an_observed_series_is_scored_given_its_past() -> None:
    line = "v[t : Time] : Real 2 <- Normal(matmul(A, v[t - 1]), tau[t])"
    model = dsl.loads(PROGRAM.format(time=5, line=f"observe {line}")).morphism
    y = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    given = {"A": A[None], "b": B[None], "tau": _tau(5), "v": y}
    run = model.execute(None, condition(given), pointwise)
    wanted = torch.stack([Normal(A @ y[t - 1], _tau(5)[t]).log_prob(y[t]) for t in range(1, 5)])
    torch.testing.assert_close(run.sites["v"].log_prob[0], wanted.sum())
    torch.testing.assert_close(run.sites["v"].pointwise[0, 1:], wanted)
    assert bool(run.sites["v"].pointwise[0, 0].isnan().all())


@pytest.mark.parametrize("case", ["a number for both", "positive", "groups"])
def test_samplers_move_all_entries(case: str) -> None:
    model = _loaded(case, 4, "sample")
    potential = potential_of(model, None, {"tau": _tau(4)})
    q = potential.initial(np.random.default_rng(0)).unsqueeze(0)
    assert q.shape[1] == 4 + 3 + (24 if case == "groups" else 8)
    value, gradient = potential.value_and_grad(q)
    step = torch.randn(q.shape, generator=torch.Generator().manual_seed(1), dtype=q.dtype)
    ahead, behind = (potential.value_and_grad(q + sign * 1e-5 * step)[0] for sign in (1.0, -1.0))
    torch.testing.assert_close((ahead - behind) / 2e-5, (gradient * step).sum(-1), rtol=1e-5, atol=1e-5)
    assert bool(value.isfinite().all())
