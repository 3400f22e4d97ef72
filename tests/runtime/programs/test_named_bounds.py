"""`Real 1 [low=a, high=b]` with names for bounds: densities by scipy, gradients in the bounds, draws, engines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats as st
import torch

from qvr_core import dsl
from qvr_core.inference import MCMC, NUTSKernel, Predictive

TEXT = """object G : FinSet 2
object Row : FinSet 4
program p : Row -> Row
    data floor : G
    data top, y : Row
    data n : Row -> Nat
    data least : Row
    sample a <- Normal(0.0, 1.0)
    sample b : Real 1 [low=a] <- Normal(0.5, 2.0)
    sample c[g : G] : Real 1 [low=floor, high=b] <- Laplace(a, 1.5)
    sample s : Real 1 [low=0.0, high=b] <- Flat()
    observe n[i : Row] : Real 1 [low=least] <- Poisson(exp(a))
    observe y[i : Row] : Real 1 [high=top] <- Normal(c[0] + c[1], s)
    return c
export p
"""
FLOOR, TOP, Y = np.array([-2.0, -1.0]), np.array([1.0, 2.0, 0.5, 3.0]), np.array([0.4, 1.5, -0.3, 2.9])
N, LEAST = np.array([1, 3, 2, 5]), np.array([1.0, 2.0, 0.0, 4.0])
DATA = {"floor": torch.as_tensor(FLOOR), "top": torch.as_tensor(TOP), "y": torch.as_tensor(Y),
        "n": torch.as_tensor(N), "least": torch.as_tensor(LEAST)}  # fmt: skip
POINTS = [(-0.5, 0.7, (-1.5, 0.3), 0.4), (0.3, 1.9, (1.2, -0.9), 1.8), (1.0, 1.1, (0.0, 1.0), 0.01)]

pytestmark = pytest.mark.usefixtures("double_precision")


def model() -> Any:
    return dsl.loads(TEXT).morphism


def expected(a: float, b: float, c: Any, s: float) -> float:
    c = np.asarray(c)
    inside = b >= a and bool(np.all(c >= FLOOR) and np.all(c <= b)) and 0.0 <= s <= b
    if not inside:
        return -math.inf
    found = st.norm.logpdf(a) + st.norm.logpdf(b, 0.5, 2.0) - st.norm.logsf(a, 0.5, 2.0)
    mass = st.laplace.cdf(b, a, 1.5) - st.laplace.cdf(FLOOR, a, 1.5)
    found += np.sum(st.laplace.logpdf(c, a, 1.5) - np.log(mass))
    found += np.sum(st.poisson.logpmf(N, np.exp(a)) - st.poisson.logsf(LEAST - 1, np.exp(a)))
    mean = c.sum()
    return float(found + np.sum(st.norm.logpdf(Y, mean, s) - st.norm.logcdf(TOP, mean, s)))


def at(point: Any, **more: Any) -> dict[str, torch.Tensor]:
    given = {name: torch.as_tensor(value, dtype=torch.float64) for name, value in zip("abcs", point, strict=True)}
    return {**DATA, **given, **more}


@pytest.mark.parametrize("point", POINTS)
def test_the_density_and_its_gradient_in_a_bound_are_those_of_scipy(point: Any) -> None:
    program = model()
    b = torch.tensor(point[1], requires_grad=True)
    found = program.log_joint(None, at(point, b=b)).sum()
    assert found.item() == pytest.approx(expected(*point), rel=1e-9)
    found.backward()
    a, _, c, s = point
    slope = (expected(a, point[1] + 1e-6, c, s) - expected(a, point[1] - 1e-6, c, s)) / 2e-6
    assert b.grad is not None
    assert b.grad.item() == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("wrong", [{"c": (-2.1, 0.0)}, {"c": (0.0, 0.8)}, {"b": -0.6}, {"s": 0.75}])
def test_outside_of_the_bounds_and_between_none_the_density_is_none(wrong: dict[str, Any]) -> None:
    values = {name: torch.as_tensor(value, dtype=torch.float64) for name, value in wrong.items()}
    assert model().log_joint(None, at(POINTS[0], **values)).sum().item() == -math.inf


def test_chains_are_machine_code_and_stay_inside() -> None:
    for engine, warmup, draws in (("compiled", 60, 40), ("plain", 25, 15)):
        found = MCMC(NUTSKernel(), warmup, draws, 1, seed=2, engine=engine).run(model(), None, DATA)
        assert found.engine == engine
        a, b, c, s = (found.samples[name].double() for name in "abcs")
        assert bool((b >= a).all() and (s <= b).all() and (s >= 0.0).all())
        assert bool((c <= b.unsqueeze(-1)).all() and (c >= torch.as_tensor(FLOOR)).all())


def test_draws_from_the_prior_are_those_of_the_truncated_family() -> None:
    torch.manual_seed(4)
    text = "program q : One -> One\n    sample a <- Normal(0.0, 1.0)\n"
    text += "    sample b : Real 1 [low=a] <- Normal(0.0, 1.0)\n    return b\nexport q\n"
    drawn = Predictive(dsl.loads(text).morphism, num_samples=3000)(None, {})
    a, b = (drawn[name].reshape(-1).double().numpy() for name in "ab")
    assert bool(np.all(b >= a))
    uniform = 1.0 - st.norm.sf(b) / st.norm.sf(a)
    assert st.kstest(uniform, "uniform").pvalue > 1e-3
