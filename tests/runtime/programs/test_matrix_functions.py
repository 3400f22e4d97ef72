"""Exponentials of matrices, triangular systems, running integrals: by scipy at five points, on all engines; `One`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate as si
import scipy.linalg as sl
import scipy.stats as st
import torch

from qvr_core import dsl
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.runtime.values.decompositions import LARGEST_NORM, eigh, matrix_exp
from tests.runtime.programs.computed import assert_density_and_gradient, assert_machine_code, program_of

HEAD = "object S : FinSet 3\nobject T : FinSet 4\nobject G : FinSet 2\nprogram p : One -> One\n"
POINTS = (-1.5, -0.3, 0.0, 0.4, 1.2)
_RANDOM = np.random.default_rng(5)


def _normals(*shape: int) -> Any:
    return _RANDOM.normal(size=shape)


def _lower(*shape: int) -> Any:
    return np.tril(_normals(*shape)) + 2.0 * np.eye(3)


A, AG, L, LG, B, V, VG = (
    *(_normals(3, 3), _normals(2, 3, 3), _lower(3, 3), _lower(2, 3, 3)),
    *(_normals(3, 4), _normals(3), _normals(2, 3)),
)
SYMMETRIC = AG + np.swapaxes(AG, 1, 2)
X, Y = np.sort(_normals(4)), _normals(4)


pytestmark = pytest.mark.usefixtures("double_precision")


def _solved(factor: Any, right: Any) -> Any:
    return sl.solve_triangular(factor, right, lower=True)


def _eigen(matrix: Any) -> Any:
    """Of scipy; the largest entry of each vector is positive."""
    values, vectors = sl.eigh(matrix)
    largest = vectors[np.abs(vectors).argmax(0), range(len(vectors))]
    return values, vectors * np.sign(largest)


# the let, its data, and its value by `m`
CASES: dict[str, tuple[str, dict[str, tuple[str, Any]], Callable[[float], Any]]] = {
    "exponential": ("r = matrix_exp(m * a)", {"a": ("S * S", A)}, lambda m: sl.expm(m * A)),
    "of each": (
        "r[g : G] = matrix_exp(m * a[g])", {"a": ("G * S * S", AG)},
        lambda m: np.array([sl.expm(m * one) for one in AG]),
    ),
    "a vector": (
        "r = solve_triangular(l, m * v)", {"l": ("S * S", L), "v": ("S", V)}, lambda m: _solved(L, m * V),
    ),
    "a matrix": (
        "r = solve_triangular(l, b + m)", {"l": ("S * S", L), "b": ("S * T", B)}, lambda m: _solved(L, B + m),
    ),
    "vectors": (
        "r[g : G] = solve_triangular(l, m * v[g])", {"l": ("S * S", L), "v": ("G * S", VG)},
        lambda m: np.array([_solved(L, m * one) for one in VG]),
    ),
    "one vector for each": (
        "r[g : G] = solve_triangular(l[g], m * v)", {"l": ("G * S * S", LG), "v": ("S", V)},
        lambda m: np.array([_solved(one, m * V) for one in LG]),
    ),
    "a matrix for each": (
        "r[g : G] = solve_triangular(l[g], m * b)", {"l": ("G * S * S", LG), "b": ("S * T", B)},
        lambda m: np.array([_solved(one, m * B) for one in LG]),
    ),
    "eigenvalues": (
        "(r, v) = eigh(a + m * b)", {"a": ("S * S", SYMMETRIC[0]), "b": ("S * S", SYMMETRIC[1])},
        lambda m: _eigen(SYMMETRIC[0] + m * SYMMETRIC[1])[0],
    ),
    "eigenvectors": (
        "(l, r) = eigh(a + m * b)", {"a": ("S * S", SYMMETRIC[0]), "b": ("S * S", SYMMETRIC[1])},
        lambda m: _eigen(SYMMETRIC[0] + m * SYMMETRIC[1])[1],
    ),
    "eigenvectors of each": (
        "(l, r) = eigh(a)", {"a": ("G * S * S", SYMMETRIC)},
        lambda m: np.array([_eigen(one)[1] for one in SYMMETRIC]),
    ),
    "integral": (
        "r = cumulative_trapezoid(exp(m * y), x)", {"y": ("T", Y), "x": ("T", X)},
        lambda m: si.cumulative_trapezoid(np.exp(m * Y), X, initial=0.0),
    ),
}  # fmt: skip


def model(name: str) -> tuple[Any, dict[str, torch.Tensor]]:
    let, data, value = CASES[name]
    return program_of(HEAD, [let], data, value)


@pytest.mark.parametrize("name", CASES)
def test_the_density_and_its_gradient_are_those_of_scipy(name: str) -> None:
    program, data = model(name)
    for m in POINTS:
        assert_density_and_gradient(program, data, CASES[name][2], m, step=1e-5, near_zero=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_chains_are_machine_code(name: str) -> None:
    program, data = model(name)
    if name in ("eigenvalues", "eigenvectors"):
        # of what is drawn they are no machine code
        assert MCMC(NUTSKernel(), 3, 2, 1, seed=1).run(program, None, data).engine == "plain"
    else:
        assert_machine_code(program, data)


def test_of_entries_that_are_as_large_the_first_is_positive() -> None:
    values, vectors = eigh(torch.tensor([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 5.0]]))
    root = 0.5**0.5
    np.testing.assert_allclose(values.numpy(), [1.0, 3.0, 5.0], atol=1e-12)
    expected = [[root, root, 0.0], [-root, root, 0.0], [0.0, 0.0, 1.0]]
    np.testing.assert_allclose(vectors.numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("size", [1e-9, 1e-3, 1.0, 40.0, 3000.0])
def test_exponentials_of_rates_of_any_size_are_rows_of_probabilities(size: float) -> None:
    rates = np.abs(_normals(4, 4))
    np.fill_diagonal(rates, 0.0)
    rates = size * (rates - np.diag(rates.sum(1)))
    found = matrix_exp(torch.as_tensor(rates)).numpy()
    np.testing.assert_allclose(found, sl.expm(rates), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.sum(1), 1.0, atol=1e-11)


def test_what_is_too_large_for_an_exponential_is_no_number() -> None:
    assert bool(torch.isnan(matrix_exp(torch.tensor([[LARGEST_NORM * 1.01]]))).all())


def test_one_is_a_set_of_one_element_that_a_file_may_declare_itself() -> None:
    text = "program p : One -> One\n    sample x <- Normal(0.0, 1.0)\n    sample w[o : One] <- Normal(x, 1.0)\n"
    text += "    observe y[o : One] <- Normal(w[o], 1.0)\n    return x\nexport p\n"
    values = {"x": torch.tensor(0.5), "w": torch.tensor([1.0]), "y": torch.tensor([2.0])}
    found = dsl.loads(text).morphism.log_joint(None, values)
    assert found.item() == pytest.approx(float(st.norm.logpdf([0.5, 0.5, 1.0]).sum()), abs=1e-12)
    own = dsl.loads("object One : FinSet 3\n" + text).morphism
    three = {"x": torch.tensor(0.5), "w": torch.ones(3), "y": torch.full((3,), 2.0)}
    expected = st.norm.logpdf(0.5) + 3 * st.norm.logpdf([0.5, 1.0]).sum()
    assert own.log_joint(None, three).item() == pytest.approx(float(expected), abs=1e-12)
