"""A density as machine code: the text of its loops, and the functions that they call."""

from __future__ import annotations

import math
from typing import Any

from qvr_core.codegen import intrinsics, llvm
from qvr_core.codegen.definitions import parsed
from qvr_core.codegen.kernels import functions, matrices, simd_math, special
from qvr_core.codegen.kinds import REAL, WHOLE, Array
from qvr_core.codegen.source import NAME, Text
from qvr_core.codegen.subset import Unit

FLAGS = "arcp contract nsz reassoc"
"""Sums in another order, x / s as x · (1 / s); infinities and NaN keep their meaning."""
ARGUMENTS = (Array(REAL, 0),) * 4 + (Array(WHOLE, 0),)


def names() -> dict[str, Any]:
    """What the text of a density may call."""
    return {
        **vars(special),
        **vars(functions),
        **vars(matrices),
        "math": math,
        "simd_math": simd_math,
        "lane": intrinsics.lane,
    }


def llvm_text(text: Text) -> str:
    """The module of a density."""
    unit = Unit()
    unit.entry(NAME, parsed(text.source, names(), FLAGS), ARGUMENTS, apart=True)
    return unit.text()


def address_of(text: Text) -> tuple[int, Any]:
    """The address of a compiled density, and what keeps it alive.  Raises whatever the compiler raises."""
    code = llvm.loaded("density", (text.source,), lambda: llvm_text(text), (NAME,))
    return code.addresses[NAME], code
