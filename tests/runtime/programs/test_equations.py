"""`solve`: densities by closed forms and scipy at five points, gradients by differences, machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate as si
import scipy.stats as st
import torch

from qvr_core import dsl
from qvr_core.inference import MCMC, NUTSKernel

pytestmark = pytest.mark.usefixtures("double_precision")

HEAD = """
object Time : FinSet 6
object G : FinSet 2
object State : {first, second}
def logistic(t, z, r) = r * z * (1.0 - z)
def oscillator(t, z, w) = [z[second], -w * w * z[first]]
def compartments(t, z, k) = [-k * z[first], k * z[first] - 0.5 * z[second]]
def predation(t, z, a) = [z[first] * (a - 0.8 * z[second]), z[second] * (0.8 * z[first] - 1.0)]
def forced(t, z, m) = m * cos(t) - z
program p : One -> One
    data when : Time
    sample m <- Normal(1.0, 0.5)
"""
WHEN = np.array([0.2, 0.5, 0.5, 1.1, 1.7, 2.0])
POINTS = (0.3, 0.8, 1.0, 1.4, 2.1)


def _grown(r: Any, first: Any = 0.1, start: Any = 0.0) -> Any:
    return 1.0 / (1.0 + (1.0 / first - 1.0) * np.exp(-r * (WHEN - start)))


def _predation(m: float) -> Any:
    def rate(_: float, z: Any) -> Any:
        return [z[0] * (m - 0.8 * z[1]), z[1] * (0.8 * z[0] - 1.0)]

    times, places = np.unique(WHEN, return_inverse=True)
    made = si.solve_ivp(rate, (0.0, times[-1]), [1.0, 0.5], "DOP853", times, rtol=1e-12, atol=1e-13)
    return made.y.T[places]


def _compartments(m: float) -> Any:
    """What leaves the first at the rate m, and the second at 1/2, is what a matrix exponential gives."""
    first, second = np.exp(-m * WHEN), np.exp(-0.5 * WHEN)
    return np.stack([first, m / (0.5 - m) * (first - second)], -1)


# the step, the value by `m`
CASES: dict[str, tuple[str, Callable[[float], Any]]] = {
    "logistic growth": ("z[t : Time] = solve(logistic, 0.1, m, start=0.0, at=when, method=rk4, steps=40)", _grown),
    "a latent start": (
        "z[t : Time] = solve(logistic, 0.1 * m, 1.0, start=-0.1 * m, at=when[t], method=rk4, steps=40)",
        lambda m: _grown(1.0, 0.1 * m, -0.1 * m),
    ),
    "oscillator": (
        "z[t : Time, a : State] = solve(oscillator, [1.0, 0.0], m, start=0.0, at=when, method=rk4, steps=40)",
        lambda m: np.stack([np.cos(m * WHEN), -m * np.sin(m * WHEN)], -1),
    ),
    "compartments": (
        "z[a : State, t : Time] = solve(compartments, [1.0, 0.0], m, start=0.0, at=when, method=rk4, steps=40)",
        lambda m: _compartments(m).T,
    ),
    "predation": (
        "z[t : Time, a : State] = solve(predation, [1.0, 0.5], m, start=0.0, at=when, method=rk4, steps=40)",
        _predation,
    ),
    "plates": (
        "z[t : Time, g : G] = solve(logistic, 0.1, (g + 1.0) * m, start=0.0, at=when, method=rk4, steps=40)",
        lambda m: np.stack([_grown(m), _grown(2.0 * m)], -1),
    ),
    "forced": (
        "z[t : Time] = solve(forced, 0.0, m, start=0.0, at=when, method=rk4, steps=40)",
        lambda m: m * (np.cos(WHEN) + np.sin(WHEN) - np.exp(-WHEN)) / 2.0,
    ),
}


def _model(name: str) -> tuple[Any, Callable[[float], Any], dict[str, Any]]:
    step, value = CASES[name]
    binders = step[1 : step.index("]") + 1]
    read = ", ".join(part.split(":")[0].strip() for part in binders[1:-1].split(","))
    text = f"{HEAD}    let {step}\n    observe y{binders} <- Normal(z[{read}], 0.1)\n    return m\n"
    data = {"when": torch.as_tensor(WHEN), "y": torch.as_tensor(value(1.1) + 0.05)}
    return dsl.loads(text).morphism, value, data


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sampled(2)
def test_the_density_and_its_gradient_are_those_of_the_solution(name: str) -> None:
    model, value, data = _model(name)

    def expected(m: float) -> float:
        return float(st.norm(1.0, 0.5).logpdf(m) + st.norm(value(m), 0.1).logpdf(data["y"].numpy()).sum())

    for point in POINTS:
        m = torch.tensor([point], dtype=torch.float64, requires_grad=True)
        found = model.log_joint(None, {"m": m, **data})
        (slope,) = torch.autograd.grad(found.sum(), m)
        assert found.item() == pytest.approx(expected(point), abs=1e-4)
        assert slope.item() == pytest.approx(
            (expected(point + 1e-4) - expected(point - 1e-4)) / 2e-4, rel=1e-4, abs=1e-3
        )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sampled(3)
def test_chains_are_machine_code(name: str) -> None:
    model, _, data = _model(name)
    found = MCMC(NUTSKernel(), 3, 2, 1, seed=1, engine="compiled").run(model, None, data)
    assert found.engine == "compiled"
