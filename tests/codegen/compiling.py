"""Functions of the subset on whole arrays, compiled."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.codegen import llvm
from qvr_core.codegen.definitions import parsed
from qvr_core.codegen.kinds import REAL, Array
from qvr_core.codegen.subset import Unit

Numbers = NDArray[Any]


def looped(function: Callable[..., Any], arguments: int) -> str:
    """The module of `apply`: a function for each number of some arrays, into the last one."""
    names = [f"x{number}" for number in range(arguments)]
    given = ", ".join(f"{name}[i]" for name in names)
    text = (
        f"def apply({', '.join(names)}, out):\n    for i in range(out.shape[0]):\n        out[i] = function({given})\n"
    )
    unit = Unit()
    unit.entry("apply", parsed(text, {"function": function}, ""), [Array(REAL, 1)] * (arguments + 1))
    return unit.text()


def applied(function: Callable[..., Any], *arrays: Numbers) -> Numbers:
    """What a compiled function gives for each number."""
    text = looped(function, len(arrays))
    code = llvm.loaded("test", (text,), lambda: text, ("apply",))
    out = np.empty_like(arrays[0])
    call = ctypes.CFUNCTYPE(None, *([ctypes.c_void_p, ctypes.c_int64] * (len(arrays) + 1)))(code.addresses["apply"])
    call(*(part for array in (*arrays, out) for part in (array.ctypes.data, len(array))))
    return out
