"""What we take from numpy, on flat lists of Python's numbers, under numpy's names.

A page's Python has no numpy.  What it has to compute is little: the constants of a density, which are made once from a
program and its data.  `take_its_place` lets `import numpy` mean this in a process that has none; what is not here is an
error when it is asked for.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

from qvr_core.arrays.without_numpy import legendre, linalg, random
from qvr_core.arrays.without_numpy.array import array, asarray, bool_, float64, int64, ndarray
from qvr_core.arrays.without_numpy.functions import *  # noqa: F403
from qvr_core.arrays.without_numpy.functions import absolute, rounded
from qvr_core.arrays.without_numpy.kinds import dtype
from qvr_core.arrays.without_numpy.shaping import *  # noqa: F403

__all__ = ["array", "asarray", "bool_", "dtype", "float64", "int64", "linalg", "ndarray", "random"]
abs, round = absolute, rounded
float32 = floating = float64
integer = signedinteger = intp = int32 = int64
generic = (float64, int64)


class finfo:
    """Limits of real numbers."""

    eps, tiny = float64(2.0**-52), float64(2.0**-1022)
    max, min, resolution = float64(sys.float_info.max), float64(-sys.float_info.max), float64(1e-15)

    def __init__(self, kind: Any = None) -> None:
        """Of the one kind there is."""


def take_its_place() -> None:
    """Where there is no numpy, this is it."""
    if sys.modules.get("numpy") is None and importlib.util.find_spec("numpy") is None:
        own = sys.modules[__name__]
        typing = ModuleType("numpy.typing")
        typing.__dict__.update(NDArray=ndarray, ArrayLike=Any, DTypeLike=Any)
        sys.modules.update({
            "numpy": own, "numpy.typing": typing, "numpy.linalg": linalg, "numpy.random": random,
            "numpy.polynomial": legendre, "numpy.polynomial.legendre": legendre,
        })  # fmt: skip
