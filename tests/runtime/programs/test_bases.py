"""B-splines by scipy, the basis of a Gaussian process by its formulas, on all engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.interpolate import BSpline

from qvr_core.runtime.values.bases import bspline, hsgp, hsgp_frequencies
from tests.runtime.programs.computed import assert_density_and_gradient, assert_machine_code, program_of

HEAD = "object Row : FinSet 5\nobject G : FinSet 2\nprogram p : One -> One\n"
POINTS = (-1.5, -0.3, 0.05, 0.4, 1.2)
X, Z = np.array([0.0, 0.7, 1.0, 2.9, 4.0]), np.random.default_rng(3).uniform(-1.0, 1.0, (2, 5))
KNOTS = [0.0, 1.0, 1.7, 4.0]

pytestmark = pytest.mark.usefixtures("double_precision")


def splines(x: Any, knots: Any, degree: int) -> Any:
    """The columns at x, 0 outside of the knots."""
    whole = np.r_[[knots[0]] * degree, knots, [knots[-1]] * degree]
    x = np.asarray(x)
    inside = (knots[0] <= x) & (x <= knots[-1])
    found = BSpline.design_matrix(np.where(inside, x, knots[0]).reshape(-1), whole, degree).toarray()
    return found.reshape(*x.shape, -1) * inside[..., None]


def waves(x: Any, m: int, c: float) -> tuple[Any, Any]:
    """Equations 5 to 7 of Riutort-Mayol et al. (2020), of numbers centred at the middle of their range."""
    centred = x - (np.max(x) + np.min(x)) / 2.0
    half = c * np.max(np.abs(centred))
    roots = np.arange(1, m + 1) * np.pi / (2.0 * half)
    return np.sqrt(1.0 / half) * np.sin(roots * (centred[..., None] + half)), roots


# the lets that make `r`, its data, and its value by `m`
CASES: dict[str, tuple[list[str], dict[str, tuple[str, Any]], Callable[[float], Any]]] = {
    "of data": (
        [f"s = bspline(x, knots={KNOTS})", "r = sin(m * s)"], {"x": ("Row", X)},
        lambda m: np.sin(m * splines(X, KNOTS, 3)),
    ),
    "of what is drawn": (
        [f"r = bspline(2.0 + m * x, knots={KNOTS}, degree=2)"], {"x": ("Row", X)},
        lambda m: splines(2.0 + m * X, KNOTS, 2),
    ),
    "of each": (
        ["r[g : G, i : Row] = bspline(z[g, i] + m, [-2, 0, 0.5, 2], 3)"], {"z": ("G * Row", Z)},
        lambda m: splines(Z + m, [-2.0, 0.0, 0.5, 2.0], 3),
    ),
    "waves": (
        ["(phi, omega) = hsgp(x, m=6, c=1.3)", "r[i : Row] = phi[i] * exp(m * omega)"], {"x": ("Row", X)},
        lambda m: waves(X, 6, 1.3)[0] * np.exp(m * waves(X, 6, 1.3)[1]),
    ),
    "waves of what is drawn": (
        ["(phi, omega) = hsgp(exp(m * z), m=4, c=2)", "r[g : G, i : Row] = phi[g, i] + omega"], {"z": ("G * Row", Z)},
        lambda m: waves(np.exp(m * Z), 4, 2.0)[0] + waves(np.exp(m * Z), 4, 2.0)[1],
    ),
}  # fmt: skip


def model(name: str) -> tuple[Any, dict[str, torch.Tensor]]:
    lets, data, value = CASES[name]
    return program_of(HEAD, lets, data, value)


@pytest.mark.parametrize("name", CASES)
def test_the_density_and_its_gradient_are_those_of_the_formulas(name: str) -> None:
    program, data = model(name)
    for m in POINTS:
        assert_density_and_gradient(program, data, CASES[name][2], m, step=1e-6, near_zero=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_chains_are_machine_code(name: str) -> None:
    assert_machine_code(*model(name))


@pytest.mark.parametrize("degree", range(10))
def test_splines_of_any_degree_are_those_of_scipy_and_add_up_to_one(degree: int) -> None:
    knots = [-1.0, 0.1, 0.25, 2.0, 7.0]
    x = np.r_[np.linspace(-1.0, 7.0, 101), knots]
    found = bspline(torch.as_tensor(x), knots, degree).numpy()
    np.testing.assert_allclose(found, splines(x, knots, degree), atol=1e-13)
    np.testing.assert_allclose(found.sum(-1), 1.0, atol=1e-13)
    assert not bspline(torch.tensor([-1.001, 7.001]), knots, degree).any()


def test_waves_make_the_covariance_of_a_gaussian_process() -> None:
    """A squared exponential kernel of length 0.8, to what 40 functions on twice the range can."""
    x, length = np.linspace(-1.0, 3.0, 17), 0.8
    basis, omega = hsgp(torch.as_tensor(x), 40, 2.0).numpy(), hsgp_frequencies(torch.as_tensor(x), 40, 2.0).numpy()
    density = np.sqrt(2.0 * np.pi) * length * np.exp(-0.5 * (length * omega) ** 2)
    found = (basis * density) @ basis.T
    np.testing.assert_allclose(found, np.exp(-0.5 * ((x[:, None] - x) / length) ** 2), atol=1e-5)
