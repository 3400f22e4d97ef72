"""One WebAssembly module: a density with the sampler, or whatever functions of the subset are asked for."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from types import FunctionType
from typing import Any

from qvr_core.codegen.build import ARGUMENTS, names
from qvr_core.codegen.definitions import Definition, definition, parsed
from qvr_core.codegen.kernels import elementary, pcg64
from qvr_core.codegen.kinds import NOTHING, WHOLE, Kind, Unsupported
from qvr_core.codegen.source import NAME, Text
from qvr_core.codegen.statements import Functions
from qvr_core.codegen.wasm import encoding
from qvr_core.codegen.wasm.trees import TYPES, Trees, types_of

FIRST_ADDRESS = 64
"""No array of a caller lies at 0."""


class Module(Functions):
    """Functions for the kinds that they are called with, in one memory."""

    def __init__(self) -> None:
        super().__init__()
        self._functions: list[encoding.Function] = []
        self._numbers: dict[str, int] = {}
        self._types: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        self._exports: list[tuple[str, int]] = []
        self._data: dict[str, tuple[int, bytes]] = {}
        self._used = FIRST_ADDRESS

    def entry(self, name: str, wanted: Definition, kinds: Sequence[Kind]) -> str:
        """Define and export `name`, an array as its pointer and extents; what kind it returns."""
        result = self.instance(name, wanted, kinds)
        self._exports.append((name, self._numbers[name]))
        return result

    def take(self, function: Any, kinds: Sequence[Kind]) -> str:
        """Export a function of the subset."""
        return self.entry(function.__name__, definition(function), kinds)

    def take_loops(self, text: Text, name: str = NAME) -> None:
        """Export the loops of a text; a density under its own name is what the sampler calls."""
        self.entry(name, parsed(text.source, names(), ""), ARGUMENTS)

    def encoded(self) -> bytes:
        """The whole."""
        return encoding.module(self._types, self._functions, self._exports, list(self._data.values()), self._used)

    def instance(self, name: str, wanted: Definition, kinds: Sequence[Kind]) -> str:
        def begun() -> tuple[Trees, Sequence[Any]]:
            to = Trees(self, kinds)
            return to, to.arguments

        to, result = self.filled(wanted, begun)
        given = tuple(one for kind in kinds for one in types_of(kind))
        of = (given, () if result == NOTHING else (TYPES[result],))
        self._numbers[name] = len(self._functions)
        number = self._types.setdefault(of, len(self._types))
        self._functions.append(encoding.Function(number, to.locals, to.finished(result)))
        return result

    def of_c(self, name: str) -> FunctionType:
        """The function of the subset for one of C's."""
        return elementary.OF_C[name]

    def random(self) -> FunctionType:
        """What gives the next bits of a generator."""
        return pcg64.following  # type: ignore[return-value]

    def number(self, name: str) -> int:
        """Of a function that is there."""
        return self._numbers[name]

    def density(self) -> int:
        """The number of the module's density."""
        if NAME not in self._numbers:
            raise Unsupported("a density in a module that has none")
        return self._numbers[NAME]

    def address(self, table: str) -> int:
        """Where a table of the module lies."""
        if table not in self._data:
            element, numbers = next((e, n) for name, e, n in self._tables.values() if name == table)
            held = struct.pack(f"<{len(numbers)}{'q' if element == WHOLE else 'd'}", *numbers)
            self._data[table] = (self.reserved(len(held)), held)
        return self._data[table][0]

    def reserved(self, size: int) -> int:
        """Where so many bytes are free."""
        at = self._used
        self._used += -(-size // 16) * 16
        return at
