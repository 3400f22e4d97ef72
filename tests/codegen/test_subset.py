"""The subset of Python means, compiled, what it means to Python; and what is outside it is refused by its line."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qvr_core.codegen.calls import Compiled
from qvr_core.codegen.definitions import parsed
from qvr_core.codegen.kernels import functions, matrices, special
from qvr_core.codegen.kernels.random_numbers import standard_normal, uniform
from qvr_core.codegen.kinds import REAL, WHOLE, Unsupported
from qvr_core.codegen.subset import Unit
from qvr_core.inference.machine.chain import handle
from tests.codegen.compiling import applied

LIMIT = 3
TABLE = (1.5, 2.5, -4.0)


def collatz(n):
    """Loops, branches, whole numbers, an early return."""
    steps = 0
    while n != 1:
        if steps > 500:
            return -1
        n = n >> 1 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def remainders(n):
    total = 0
    for i in range(-n, n):
        total += (i % 3) * 10 + i % 2 + (i // 4) * 7 + 5 // (-n) + i % -5
    return total


def widened(n):
    """A whole number that becomes a real one."""
    total = 0
    for i in range(1, n):
        if i == LIMIT:
            continue
        if i > 8:
            break
        total += 1.0 / i
    return total


def chosen(x, y):
    """Ternaries with calls on both sides, chained comparisons, `and` and `or`."""
    found = math.sqrt(x) if 0.0 <= x < y else -math.exp(y)
    if (x > 1.0 and math.log(x) > 0.5) or not y > 0.0:
        found = found * 2**-2
    return min(found, 7.5) + max(x, 2) - abs(-y) ** 3


def rows(a, b):
    """Rows of a matrix, negative indices, tables, tuples."""
    last = a[a.shape[0] - 1]
    total, weight = 0.0, TABLE[2]
    for j in range(last.shape[0]):
        a[0, j], last[j] = last[j], a[0, j]
        total += a[0, j] * TABLE[j % 3]
    for value in b:
        total += value
    total -= b[-1] * weight
    return total


def downwards(n):
    total = 0
    for i in range(n, 0, -2):
        total = total * 3 % 1000 + i
    return total


@pytest.mark.parametrize("n", [1, 2, 7, 27, 97])
@pytest.mark.parametrize("function", [collatz, remainders, downwards])
def test_whole_numbers(function: Callable[[int], int], n: int) -> None:
    assert Compiled(function, WHOLE)(n) == function(n)


def test_a_variable_has_one_kind() -> None:
    for n in (0, 2, 5, 30):
        assert Compiled(widened, REAL)(n) == pytest.approx(widened(n), rel=1e-15)


def test_choices() -> None:
    for x in (0.3, 1.2, 2.0, 9.0):
        for y in (-1.0, 0.5, 3.0):
            assert Compiled(chosen, REAL)(x, y) == pytest.approx(chosen(x, y), rel=1e-14)


def test_arrays_of_each_kind() -> None:
    for kind in (np.float64, np.float32):
        here, there = (np.arange(12.0, dtype=kind).reshape(3, 4) for _ in range(2))
        b = np.array([1.0, 5.0, 2.0], dtype=kind)
        assert Compiled(rows, REAL)(here, b) == pytest.approx(float(rows(there, b)), rel=1e-6)
        np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("return [x]", r"\[x\]"),
        ("return open(x)", "open"),
        ("return x.real", "x.real"),
        ("return sum(x, x)", "sum"),
        ("for i in range(x):\n        pass", "a real number as an index"),
        ("with x:\n        pass", "with x"),
    ],
)
def test_what_is_outside_is_refused_by_its_line(line: str, why: str) -> None:
    wanted = parsed(f"def f(x):\n    y = 1\n    {line}\n", {"sum": sum}, "")
    with pytest.raises(Unsupported, match=f"f, line 3: .*{why}"):
        Unit().entry("f", wanted, [REAL])


NUMBERS = np.array(
    [-1e3, -25.5, -7.0, -2.5, -1.0, -0.3, -1e-9, 0.0, 1e-12, 0.2, 0.5, 1.0, 1.5, 2.0, 9.9, 10.0, 40.0, 3e5]
)
OF_ONE = [
    name
    for module in (functions, special)
    for name, value in vars(module).items()
    if inspect.isfunction(value) and not name.startswith("_") and len(inspect.signature(value).parameters) == 1
    and value.__module__ == module.__name__
]  # fmt: skip


@pytest.mark.parametrize("name", OF_ONE)
def test_functions_of_one_number_are_those_of_python(name: str) -> None:
    function = getattr(functions, name, None) or getattr(special, name)
    found = applied(function, NUMBERS)
    compared = 0
    for x, value in zip(NUMBERS.tolist(), found, strict=True):
        try:
            wanted = function(x)
        except (OverflowError, ZeroDivisionError, ValueError):
            continue
        compared += 1
        np.testing.assert_allclose(value, wanted, rtol=4e-15, atol=1e-300, err_msg=f"{name}({x})")
    assert compared > len(NUMBERS) / 3


def _close(found: NDArray[Any], wanted: Any, rtol: float) -> None:
    np.testing.assert_allclose(found, np.array(wanted), rtol=rtol, atol=0.0)


def test_special_functions_are_exact_to_rounding() -> None:
    mpmath = pytest.importorskip("mpmath")
    random = np.random.default_rng(0)
    near = 10.0 ** random.uniform(-15.0, -1.0, 200)
    positive = np.concatenate(
        [random.uniform(0.0, 20.0, 400), 10.0 ** random.uniform(-300, 5, 300), 1 + near, 2 - near]
    )
    with mpmath.workdps(40):
        _close(applied(special.lgamma, positive), [float(mpmath.loggamma(x)) for x in positive.tolist()], 2e-15)
        negative = random.uniform(-20.0, 0.0, 200)
        wanted = [float(mpmath.log(abs(mpmath.gamma(x)))) for x in negative.tolist()]
        np.testing.assert_allclose(applied(special.lgamma, negative), wanted, rtol=1e-13, atol=1e-15)
        anywhere = np.concatenate([random.uniform(-6.0, 26.5, 400), near, -near])
        _close(applied(special.erf, anywhere), [float(mpmath.erf(x)) for x in anywhere.tolist()], 2e-15)
        _close(applied(special.erfc, anywhere), [float(mpmath.erfc(x)) for x in anywhere.tolist()], 3e-15)
    ends = np.array([0.0, -3.0, math.inf, -math.inf, math.nan, 1.0, 2.0])
    np.testing.assert_array_equal(
        applied(special.lgamma, ends), [math.inf, math.inf, math.inf, math.inf, math.nan, 0, 0]
    )
    np.testing.assert_array_equal(applied(special.erf, ends[[0, 2, 3, 4]]), [0.0, 1.0, -1.0, math.nan])
    np.testing.assert_array_equal(applied(special.erfc, ends[[0, 2, 3, 4]]), [1.0, 0.0, 2.0, math.nan])


def test_whole_powers_of_data_are_those_of_pow() -> None:
    bases, exponents = (
        side.ravel() for side in np.meshgrid([-2.5, -1.0, 0.3, 1.0, 7.0], [-3.0, 0.0, 1.0, 2.0, 5.0, 40.0])
    )
    np.testing.assert_allclose(applied(functions.power, bases, exponents), bases**exponents, rtol=1e-14)
    half = np.full(3, 0.5)
    np.testing.assert_allclose(applied(functions.power, np.array([0.0, 2.0, 9.0]), half), [0.0, math.sqrt(2.0), 3.0])


def many(generator, normals, uniforms):
    for i in range(normals.shape[0]):
        normals[i] = standard_normal(generator)
        uniforms[i] = uniform(generator)


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64])
def test_random_numbers_are_numpys(kind: Any) -> None:
    """To the last bit, the tails and the edges of layers among them; and the generator stands where numpy's would."""
    ours, theirs = (np.random.Generator(kind(7)) for _ in range(2))
    normals, uniforms = np.empty(200_000), np.empty(200_000)
    Compiled(many)(handle(ours), normals, uniforms)
    wanted = [(theirs.standard_normal(), theirs.random()) for _ in range(len(normals))]
    np.testing.assert_array_equal(np.stack([normals, uniforms], -1), wanted)
    assert ours.random() == theirs.random() and np.abs(normals).max() > 3.7


def factored(w, size):
    matrices.cholesky(w, 0, size, 1, size * size, size)


def test_routines_on_matrices() -> None:
    random = np.random.default_rng(1)
    half = random.normal(size=(5, 5))
    matrix = half @ half.T + np.eye(5)
    room = np.concatenate([matrix.ravel(), np.zeros(26)])
    Compiled(factored)(room, 5)
    np.testing.assert_allclose(room[25:50].reshape(5, 5), np.linalg.cholesky(matrix), rtol=1e-12, atol=1e-12)
