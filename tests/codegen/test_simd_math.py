"""Functions without branches against numbers of extended precision, and that they become vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qvr_core.codegen import llvm
from qvr_core.codegen.kernels import simd_math
from tests.codegen.compiling import applied, looped

Array = NDArray[Any]
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -1.0, -2.0, 1.0, 710.0, -746.0, 1e-310, -1e-310, 1e300])


def _numbers() -> Array:
    """Of all sizes, both signs, and dense where functions bend."""
    random = np.random.default_rng(0)
    sizes = 10.0 ** random.uniform(-300.0, 300.0, 3000) * random.choice([-1.0, 1.0], 3000)
    near = 10.0 ** random.uniform(-16.0, -1.0, 3000) * random.choice([-1.0, 1.0], 3000)
    return np.concatenate([random.uniform(-745.0, 709.0, 3000), random.normal(0.0, 2.0, 3000), sizes, near, 1.0 + near])


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _log_sigmoid(x: Array) -> Array:
    return np.where(x < 0, x - np.log1p(np.exp(x)), -np.log1p(np.exp(-x)))


EXACT: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "tanh": np.tanh, "sigmoid": _sigmoid,
    "log_sigmoid": _log_sigmoid,
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_within_four_units_of_the_last_place(name: str) -> None:
    for numbers in (_numbers(), SPECIAL):
        found = applied(getattr(simd_math, name), numbers)
        with np.errstate(all="ignore"):
            wanted = EXACT[name](numbers.astype(np.longdouble))
            rounded = wanted.astype(np.float64)
            # below the smallest normal number a result has fewer places
            unit = np.maximum(np.spacing(np.abs(rounded)), 2.0**-1074)
            off = np.where(np.abs(rounded) > 1e-307, np.abs(found - wanted) / unit, np.abs(found - wanted) / 1e-322)
        ordinary = np.isfinite(rounded)
        np.testing.assert_array_equal(found[~ordinary], rounded[~ordinary])
        assert off[ordinary].max() < 4.0, numbers[ordinary][off[ordinary].argmax()]


def test_of_two_numbers() -> None:
    x, y = (side.ravel() for side in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        found, wanted = applied(simd_math.log_add, x, y), np.logaddexp(x, y)
    np.testing.assert_allclose(found, wanted, rtol=1e-15, atol=1e-300)


@pytest.mark.parametrize("name", EXACT)
def test_a_loop_calls_nothing(name: str) -> None:
    """A call within the loop would keep it from becoming vectors."""
    text = str(llvm.optimised(looped(getattr(simd_math, name), 1), llvm.target()))
    assert "x double>" in text
