"""What stands at several places of an expression, as the `let` of a function does, is computed once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.indexed import Evaluate
from qvr_core.runtime.values.cells import Cell
from qvr_core.semantics.types.model.expressions import (
    Bound,
    Constant,
    Data,
    Expr,
    FactorTable,
    Function,
    IndexValue,
    Solve,
)
from qvr_core.semantics.types.walk import operands


class Compiler(Protocol):
    """What makes the closure of an expression that stands at one place only."""

    def __call__(self, expr: Expr, parts: Any, /) -> Evaluate: ...


class Shared:
    """The parts of a program, while an expression is compiled some of whose nodes stand at several places."""

    def __init__(self, parts: Any, places: Mapping[int, int], compiled: Compiler) -> None:
        self.parts = parts
        self._places = places
        self._compiled = compiled
        self._made: dict[int, Evaluate] = {}
        self._values: dict[int, dict[int, Cell]] = {}

    def arrow(self, node: Any) -> Any:
        """The module of an arrow."""
        return self.parts.arrow(node)

    def deduction(self, name: str) -> Any:
        """The module of a deduction."""
        return self.parts.deduction(name)

    def closure(self, expr: Expr) -> Evaluate:
        """The closure of one node: where the node stands at several places, its value is kept while the whole runs."""
        key = id(expr)
        if self._places.get(key, 1) < 2:
            return self._compiled(expr, self)
        if key not in self._made:
            self._made[key] = self._once(key, self._compiled(expr, self))
        return self._made[key]

    def _once(self, key: int, compute: Evaluate) -> Evaluate:
        def run(frame: Frame) -> Cell:
            values = self._values[id(frame)]
            if key not in values:
                values[key] = compute(frame)
            return values[key]

        return run

    def whole(self, expr: Expr) -> Evaluate:
        """The closure of all of the expression."""
        compute = self._compiled(expr, self)

        def run(frame: Frame) -> Cell:
            self._values[id(frame)] = {}
            try:
                return compute(frame)
            finally:
                del self._values[id(frame)]

        return run


def places(expr: Expr) -> dict[int, int]:
    """At how many places each node stands that does anything, by its identity; bodies that run on frames of their own
    are not looked into."""
    found: dict[int, int] = {}
    pending = [expr]
    while pending:
        one = pending.pop()
        if isinstance(one, Bound | Constant | Data | IndexValue):
            continue
        found[id(one)] = found.get(id(one), 0) + 1
        if found[id(one)] == 1:
            pending += _operands(one)
    return found


def _operands(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Function() | FactorTable():
            return ()
        case Solve():
            return (expr.initial, *expr.arguments, expr.start, expr.at)
        case _:
            return operands(expr)
