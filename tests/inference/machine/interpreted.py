"""The text of a density run by Python: the same lines that are compiled."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.codegen.build import names
from qvr_core.codegen.source import Text
from qvr_core.codegen.vector_blocks import WIDE

Array = NDArray[Any]


def _quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `math` that gives what compiled code gives where Python raises."""

    def run(*values: float) -> np.float64:
        try:
            return np.float64(function(*values))
        except OverflowError:
            return np.float64(math.inf)
        except ValueError:
            return np.float64(-math.inf if function is math.log and values[0] == 0.0 else math.nan)

    return run


MATH = SimpleNamespace(**{name: _quiet(f) if callable(f) else f for name, f in vars(math).items()})


def interpreted(text: Text, width: int) -> Callable[[Array], tuple[float, Array]]:
    """Value and gradient at a position (width,)."""
    space = names()
    # vectors give what the functions of one number give
    called = [form.removeprefix("simd_math.").partition("(")[0] for form in WIDE.values()]
    simd_math = SimpleNamespace(**{name: space.get(name, getattr(MATH, name, None)) for name in called})
    exec(text.source, space | {"math": MATH, "simd_math": simd_math}, space)
    reals, wholes = np.array(text.reals or [0.0]), np.array(text.wholes or [0])

    def density(q: Array) -> tuple[float, Array]:
        gradient, room = np.full(width, np.nan), np.full(max(text.room, 1), np.nan)
        with np.errstate(all="ignore"):
            value = space["log_density"](q.astype(np.float64), gradient, room, reals, wholes)
        return float(value), gradient

    return density
