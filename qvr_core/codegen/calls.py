"""Compiled functions that Python calls: numbers and numpy's arrays as what C takes.

A call releases the interpreter's lock, so chains of one process run beside each other in threads.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.codegen.definitions import definition
from qvr_core.codegen.kinds import NOTHING, REAL, SINGLE, WHOLE, Array, Kind
from qvr_core.codegen.llvm import loaded
from qvr_core.codegen.subset import Unit

ELEMENTS = {np.dtype(np.float64): REAL, np.dtype(np.float32): SINGLE, np.dtype(np.int64): WHOLE}
RESULTS = {REAL: ctypes.c_double, WHOLE: ctypes.c_int64, NOTHING: None}


class Compiled:
    """A function of the subset, compiled for each combination of kinds that it is called with."""

    def __init__(self, function: Callable[..., Any], result: str = NOTHING) -> None:
        assert isinstance(function, FunctionType)
        self.function, self.result = function, result
        self._addresses: dict[tuple[Kind, ...], Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Run it."""
        return self.bound(*arguments)()

    def bound(self, *arguments: Any) -> Callable[[], Any]:
        """It on these arguments: arrays are those at hand, numbers stay what they are now."""
        kinds: list[Kind] = []
        given: list[Any] = []
        for argument in arguments:
            array: NDArray[Any] = argument
            match argument:
                case np.ndarray():
                    assert array.flags.c_contiguous
                    kinds.append(Array(ELEMENTS[array.dtype], array.ndim))
                    given += [ctypes.c_void_p(array.ctypes.data), *map(ctypes.c_int64, array.shape)]
                case float():
                    kinds.append(REAL)
                    given.append(ctypes.c_double(argument))
                case _:
                    kinds.append(WHOLE)
                    given.append(ctypes.c_int64(int(argument)))
        call = functools.partial(self.ready(tuple(kinds)), *given)
        # the arrays must outlive the pointers
        call.__dict__["arrays"] = arguments
        return call

    def ready(self, kinds: tuple[Kind, ...]) -> Callable[..., Any]:
        """It for arguments of these kinds, as a function of C."""
        if kinds not in self._addresses:
            name = self.function.__name__
            written = Path(self.function.__code__.co_filename).read_text(encoding="utf-8")
            parts = (written, name, repr(kinds), self.result)
            code = loaded("function", parts, functools.partial(self._text, kinds), (name,))
            self._addresses[kinds] = _of_c(code.addresses[name], kinds, self.result)
        return self._addresses[kinds]

    def _text(self, kinds: tuple[Kind, ...]) -> str:
        unit = Unit()
        result = unit.entry(self.function.__name__, definition(self.function), kinds)
        assert result == self.result
        return unit.text()


def _of_c(address: int, kinds: tuple[Kind, ...], result: str) -> Callable[..., Any]:
    types: list[Any] = []
    for kind in kinds:
        if isinstance(kind, Array):
            types += [ctypes.c_void_p, *([ctypes.c_int64] * kind.rank)]
        else:
            types.append(ctypes.c_double if kind == REAL else ctypes.c_int64)
    return ctypes.CFUNCTYPE(RESULTS[result], *types)(address)
