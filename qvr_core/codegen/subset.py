"""Functions in a subset of Python, as LLVM text.

The sampler, what the generated loops call, and the loops themselves are plain Python, which tests can run, and which
reads like the sampler in numpy beside it.  The subset: functions of whole and real numbers and of arrays whose numbers
lie row by row; assignments, `if`, `while`, `for … in range(…)`, `return`; arithmetic, comparisons, `x if c else y`;
numbers and tables of the module; calls of `math`, of `intrinsics`, and of other functions in it.  A variable has one
kind: a whole number that becomes a real one somewhere is real everywhere.  A function is compiled for each combination
of kinds that it is called with.

A module says in `FLAGS` how far LLVM may go with its arithmetic, and in `INLINE` that each call is written out, or that
none is: a large function in many places costs the compiler more than its calls cost a run.
"""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.codegen.definitions import Definition
from qvr_core.codegen.kinds import NOTHING, Kind, Value, literal, types_of
from qvr_core.codegen.llvm_text import Lines
from qvr_core.codegen.statements import Functions

WRITTEN_OUT = '!0 = distinct !{!0, !1}\n!1 = !{!"llvm.loop.unroll.full"}'


class Unit(Functions):
    """One module of LLVM: functions for the kinds that they are called with, tables, and names of the C library."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[str] = []
        self._declared: dict[str, str] = {}

    def entry(self, name: str, wanted: Definition, kinds: Sequence[Kind], *, apart: bool = False) -> str:
        """Define `name` with C's calling convention, an array as its pointer and extents; what kind it returns.
        `apart`: what its pointers point to overlaps nowhere."""
        return self._define(name, wanted, kinds, "", "noalias " if apart else "")

    def instance(self, name: str, wanted: Definition, kinds: Sequence[Kind]) -> str:
        return self._define(name, wanted, kinds, "internal ", "")

    def text(self) -> str:
        """The whole."""
        tables = (
            f"@{name} = private unnamed_addr constant [{len(numbers)} x {element}] "
            f"[{', '.join(f'{element} {literal(number)}' for number in numbers)}]"
            for name, element, numbers in self._tables.values()
        )
        return "\n".join([*tables, *self._declared.values(), *self._parts, WRITTEN_OUT, ""])

    def _define(self, name: str, wanted: Definition, kinds: Sequence[Kind], linkage: str, pointers: str) -> str:
        heads: list[str] = []
        arguments: list[Value] = []
        for kind in kinds:
            types = types_of(kind)
            parts = tuple(f"%arg.{len(heads) + at}" for at in range(len(types)))
            heads += [f"{one} {pointers if one == 'ptr' else ''}{part}" for one, part in zip(types, parts, strict=True)]
            arguments.append(Value(kind, parts))
        to, result = self.filled(wanted, lambda: (Lines(wanted.flags), arguments))
        if not to.ended:
            to.emit("ret void" if result == NOTHING else "unreachable")
        inline = wanted.inline if linkage else ""
        head = f"define {linkage}{result} @{name}({', '.join(heads)}) {inline}nounwind {{"
        self._parts.append("\n".join([head, "entry:", *to.stack, *to.lines, "}", ""]))
        self._declared |= to.declared
        return result
