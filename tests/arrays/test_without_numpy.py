"""What takes numpy's place in a page gives what numpy gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from qvr_core.arrays import without_numpy as flat

REALS = np.array([[0.5, -1.25, 3.0], [2.0, 0.0, -0.75]])
WILD = np.array([math.nan, math.inf, -math.inf, 0.0, -0.0, 1e308, -1e3, -1.0, 1.0, 0.25])
WHOLE = np.array([[3, 1, 2], [0, 2, 2]])
CUBE = np.arange(24.0).reshape(2, 3, 4)
SQUARE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.25], [0.5, -0.25, 2.0]])

UNARY = (
    "exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh",
    "arcsinh", "arccosh", "arctanh", "floor", "ceil", "sign", "negative", "square", "isnan", "isinf", "isfinite",
    "isneginf", "isposinf", "logical_not", "abs", "log2", "log10", "positive",
)  # fmt: skip
BINARY = (
    "add", "subtract", "multiply", "true_divide", "power", "maximum", "minimum", "logaddexp", "equal", "not_equal",
    "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
)  # fmt: skip

CASES: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "sums": lambda np, a: [a(CUBE).sum(axis=k) for k in (None, 0, 1, -1, (0, 2))],
    "sums that keep axes": lambda np, a: a(CUBE).sum(axis=(0, 2), keepdims=True),
    "products": lambda np, a: a(REALS).prod(axis=1),
    "extremes": lambda np, a: [a(REALS).max(axis=0), a(REALS).min(), a(REALS).argmax(axis=1), a(REALS).argmin()],
    "truths": lambda np, a: [(a(REALS) > 0.0).all(axis=0), (a(REALS) > 0.0).any()],
    "matrix products": lambda np, a: [a(CUBE) @ a(CUBE[0].T), a(REALS) @ a([1.0, 2.0, 3.0]), a([1.0, 2.0]) @ a(REALS)],
    "reshaped": lambda np, a: [a(CUBE).reshape(4, -1), a(CUBE).transpose((2, 0, 1)), a(CUBE).T],
    "swapped": lambda np, a: np.swapaxes(a(CUBE), 0, -1),
    "slices": lambda np, a: [a(CUBE)[1], a(CUBE)[:, ::-1, 1:3], a(CUBE)[..., 0], a(CUBE)[:, None, 2]],
    "a number": lambda np, a: a(CUBE)[-1, -1, -1],
    "chosen places": lambda np, a: [
        a(CUBE)[:, a([2, 0])], a(CUBE)[a([[0, 1], [1, 1]]), a([0, 2])], a(CUBE)[a([1, 0]), :, a([3, 0])],
        a(REALS)[a(REALS) > 0.0], a(CUBE)[1, a([2, 0])], a(CUBE)[:, a([True, False, True])],
    ],
    "ordered": lambda np, a: [
        np.sort(a(REALS), axis=0), np.argsort(a(WHOLE), kind="stable"), *np.unique(a(WHOLE), return_counts=True),
    ],
    "joined": lambda np, a: [
        np.concatenate([a(REALS), a(WHOLE)], 1), np.stack([a(REALS), a(REALS)], -1), np.flip(a(CUBE), (0, 2)),
    ],
    "running": lambda np, a: [np.cumsum(a(CUBE), 1), np.cumprod(a(REALS), 0), np.diff(a([1.0, 4.0, 9.0]))],
    "triangles": lambda np, a: [np.tril(a(SQUARE)), np.triu(a(SQUARE), 1), *np.tril_indices(3), *np.triu_indices(3, 1)],
    "diagonals": lambda np, a: [np.diagonal(a(SQUARE)), np.diagonal(a(CUBE), axis1=-2, axis2=-1)],
    "along": lambda np, a: [np.take_along_axis(a(REALS), a([[2, 0], [1, 1]]), 1), np.take(a(CUBE), a([1, 0]), 2)],
    "spread": lambda np, a: [np.broadcast_to(a([1.0, 2.0]), (3, 2)), np.where(a(REALS) > 0.0, a(REALS), -1)],
    "places": lambda np, a: [*np.nonzero(a(REALS)), np.flatnonzero(a([0, 2, 3])), *np.indices((2, 3))],
    "made": lambda np, a: [
        np.eye(3), np.arange(5), np.arange(1.0, 2.0, 0.25), np.full((2, 2), 7), np.zeros((2,)),
        np.linspace(0.0, 1.0, 5),
    ],
    "counted": lambda np, a: [
        np.bincount(a([0, 2, 2]), None, 5), np.bincount(a([1, 1]), a([0.5, 0.25])),
        np.searchsorted(a([1.0, 2.0, 4.0]), a([0.0, 2.0, 9.0]), "right"), *np.unravel_index(a([5, 23]), (2, 3, 4)),
    ],
    "quantiles": lambda np, a: [np.quantile(a(REALS), a([0.1, 0.5]), axis=1), np.quantile(a(REALS), 0.3)],
    "factors": lambda np, a: [
        np.linalg.cholesky(a(SQUARE)), np.linalg.inv(a(SQUARE)), np.linalg.det(a(SQUARE)),
        np.linalg.inv(a([SQUARE, SQUARE + SQUARE.T @ SQUARE])),
        *np.linalg.slogdet(a(-SQUARE)), np.linalg.solve(a(SQUARE), a([[1.0], [2.0], [3.0]])),
        np.linalg.eigh(a(SQUARE))[0], np.linalg.norm(a(SQUARE), axis=1, keepdims=True),
    ],
    "kinds": lambda np, a: [a(REALS).astype(np.int64), a(WHOLE).astype(np.float64), a(WHOLE) / 2],
    "signs": lambda np, a: [a(WHOLE) ** 2, a(WHOLE) % 2, 1 - a(WHOLE), -a(REALS), a(WHOLE) // 2],
    "rounded": lambda np, a: [np.round(a([0.5, 1.5, 2.25]), 1), np.clip(a(REALS), -1.0, 1.0)],
    "repeated": lambda np, a: [np.repeat(a([1, 2, 3]), a([2, 0, 1])), np.expand_dims(a(REALS), 1)],
    "moved": lambda np, a: np.moveaxis(a(CUBE), 0, -1),
    "outer": lambda np, a: np.multiply.outer(a([1.0, 2.0]), a(REALS)),
}  # fmt: skip


def same(found: Any, wanted: Any, name: str) -> None:
    if isinstance(wanted, list | tuple):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            same(one, other, name)
        return
    wanted = np.asarray(wanted)
    assert flat.asarray(found).shape == wanted.shape, name
    assert flat.asarray(found).kind == wanted.dtype.kind, name
    np.testing.assert_allclose(np.array(flat.asarray(found).tolist()), wanted, rtol=1e-13, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name: str) -> None:
    for given in (REALS, WILD):
        with np.errstate(all="ignore"):
            wanted = getattr(np, name)(given)
        same(getattr(flat, name)(flat.array(given.tolist())), wanted, name)


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers(name: str) -> None:
    row = [2.0, -1.0, 0.5]
    for one, other in ((REALS, row), (WHOLE, [1, 2, 0]), (WILD, WILD[::-1]), (WILD, 2.0), (REALS[:, :1], REALS[:1])):
        one, other = np.asarray(one), np.asarray(other)
        with np.errstate(all="ignore"):
            wanted = getattr(np, name)(one, other)
        same(getattr(flat, name)(flat.array(one.tolist()), flat.array(other.tolist())), wanted, name)


@pytest.mark.parametrize("name", CASES)
def test_arrays_are_shaped_joined_and_reduced(name: str) -> None:
    case = CASES[name]
    same(case(flat, lambda given: flat.array(np.asarray(given).tolist())), case(np, np.asarray), name)


def test_numbers_are_put_and_added_at_places() -> None:
    for function in ("add", "multiply", "maximum"):
        found, wanted = flat.array(REALS.tolist()), REALS.copy()
        getattr(flat, function).at(
            found,
            (flat.array([0, 0, 1]), flat.array([1, 1, 2])),
            flat.array([5.0, 6.0, 7.0]),
        )
        getattr(np, function).at(wanted, (np.array([0, 0, 1]), np.array([1, 1, 2])), np.array([5.0, 6.0, 7.0]))
        same(found, wanted, function)
    found, wanted = flat.array(CUBE.tolist()), CUBE.copy()
    found[:, 1:, 0] = flat.array([1.0, 2.0])
    wanted[:, 1:, 0] = [1.0, 2.0]
    found[..., flat.array([3, 2])] = 9.0
    wanted[..., [3, 2]] = 9.0
    same(found, wanted, "put")


def test_what_does_not_fit_is_an_error() -> None:
    for wrong in (
        lambda: flat.array([[1.0], [1.0, 2.0]]), lambda: flat.array(REALS.tolist()).reshape(4),
        lambda: flat.array([1.0, 2.0])[2], lambda: flat.array([1.0, 2.0])[flat.array([5])],
        lambda: flat.array([1.0, 2.0]) + flat.array([1.0, 2.0, 3.0]),
        lambda: flat.linalg.cholesky(flat.array([[1.0, 2.0], [2.0, 1.0]])),
    ):  # fmt: skip
        with pytest.raises((ValueError, IndexError)):
            wrong()


def test_quadrature_is_gausss() -> None:
    for count in (1, 2, 7, 40):
        for found, wanted in zip(flat.legendre.leggauss(count), np.polynomial.legendre.leggauss(count), strict=True):
            np.testing.assert_allclose(found.tolist(), wanted, rtol=1e-12, atol=1e-15)


def test_draws_have_the_moments_of_their_families() -> None:
    rng = flat.random.default_rng(4)
    count = 20_000
    for drawn, mean, variance in (
        (rng.standard_normal(count), 0.0, 1.0), (rng.uniform(-2.0, 2.0, (count,)), 0.0, 4 / 3),
        (rng.standard_gamma([2.5] * count), 2.5, 2.5), (rng.poisson([4.0] * count), 4.0, 4.0),
        (rng.poisson([90.0] * count), 90.0, 90.0), (rng.binomial([10] * count, 0.3), 3.0, 2.1),
    ):  # fmt: skip
        values = np.array(drawn.tolist())
        assert abs(values.mean() - mean) < 5.0 * math.sqrt(variance / count)
        assert abs(values.var() / variance - 1.0) < 0.1
