"""From loops to the text of a Python function that numba compiles.

A buffer that only the nest that makes it reads, at the same turn, is a local variable; a number that no loop variable
moves is read before the loops.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from qvr_core.inference.machine.loops import (
    Buffer,
    Call,
    Expression,
    Linear,
    Literal,
    Load,
    Loops,
    Nest,
    Plan,
    Statement,
    loads,
)
from qvr_core.inference.machine.pointwise import WRITTEN

NAME = "log_density"
STARTS = {"+": "0.0", "*": "1.0", "max": "-math.inf", "min": "math.inf"}
JOINS = {"+": "{} + {}", "*": "{} * {}", "max": "at_least({}, {})", "min": "at_most({}, {})"}
INDENT = "    "


@dataclass(slots=True)
class Text:
    """The text of a density, and how many numbers of room it wants."""

    source: str
    room: int


@dataclass(slots=True)
class Layout:
    """Where each buffer lies in the room, and which are local."""

    offsets: dict[Buffer, int] = field(default_factory=dict[Buffer, int])
    local: dict[Buffer, str] = field(default_factory=dict[Buffer, str])
    zeroed: int = 0
    size: int = 0


def written(plan: Plan, value: Expression, width: int) -> Text:
    """The function of a plan: `log_density(q, g, w, d, k)` fills the gradient and returns the value."""
    layout = _laid_out(plan, value)
    lines = [f"def {NAME}(q, g, w, d, k):"]
    if layout.zeroed:
        lines += [f"{INDENT}for i in range({layout.zeroed}):", f"{INDENT * 2}w[i] = 0.0"]
    gradient = [b for nest in plan.nests for b in nest.written if b.kind == "g"]
    if any(buffer.zeroed for buffer in gradient):
        lines += [f"{INDENT}for i in range({width}):", f"{INDENT * 2}g[i] = 0.0"]
    for number, nest in enumerate(plan.nests):
        lines += [INDENT + line for line in _Writer(layout, nest, number).lines()]
    writer = _Writer(layout, Nest((), []), len(plan.nests))
    lines.append(f"{INDENT}return {writer.text(value)}")
    return Text("\n".join(lines) + "\n", layout.size)


def _laid_out(plan: Plan, value: Expression) -> Layout:
    layout = Layout()
    elsewhere = {load.buffer for load in loads(value)}
    for nest in plan.nests:
        own = _own(nest)
        elsewhere |= {b for s in nest.statements for b in _foreign(s, own)}
    made = [buffer for nest in plan.nests for buffer in nest.written if buffer.kind == "w"]
    buffers = list(dict.fromkeys(made))
    for nest in plan.nests:
        for buffer in _own(nest):
            if buffer.kind == "w" and buffer not in elsewhere:
                layout.local[buffer] = f"t{len(layout.local)}"
    # zeroed ones stand together in front
    for buffer in sorted((b for b in buffers if b not in layout.local), key=lambda b: not b.zeroed):
        layout.offsets[buffer] = layout.size
        layout.size += buffer.size
        layout.zeroed += buffer.size if buffer.zeroed else 0
    return layout


def _own(nest: Nest) -> dict[Buffer, Linear]:
    """Buffers that a nest makes number by number, and the place of each turn."""
    return {s.target: s.place for s in nest.statements if s.kind in ("store", "reduce") and not s.target.zeroed}


def _foreign(statement: Statement, own: dict[Buffer, Linear]) -> Iterator[Buffer]:
    for load in statement.reads():
        if own.get(load.buffer) != load.place:
            yield load.buffer


class _Writer:
    """The lines of one nest."""

    def __init__(self, layout: Layout, nest: Nest, number: int) -> None:
        self.layout, self.nest, self.number = layout, nest, number
        self.hoisted: dict[Load, str] = {}
        self.sums: dict[Buffer, str] = {}

    def lines(self) -> list[str]:
        depth = len(self.nest.extents)
        for statement in self.nest.statements:
            if statement.kind == "add" and depth and statement.place.fixed and not statement.inner:
                self.sums.setdefault(statement.target, f"s{self.number}_{len(self.sums)}")
        body = [line for statement in self.nest.statements for line in self._statement(statement)]
        loops = [f"{INDENT * at}for i{at} in range({size}):" for at, size in enumerate(self.nest.extents)]
        before = [f"{name} = {self._place(load.buffer, load.place)}" for load, name in self.hoisted.items()]
        before += [f"{name} = 0.0" for name in self.sums.values()]
        after: list[str] = []
        for statement in self.nest.statements:
            if statement.target in self.sums and statement.kind == "add":
                name, place = self.sums[statement.target], self._place(statement.target, statement.place)
                if (line := f"{place} += {name}") not in after:
                    after.append(line)
        return [*before, *loops, *(INDENT * depth + line for line in body), *after]

    def _statement(self, statement: Statement) -> list[str]:
        if statement.kind == "routine":
            return [self._routine(statement.value)]
        value = self.text(statement.value)
        local = self.layout.local.get(statement.target)
        place = local or self._place(statement.target, statement.place)
        match statement.kind:
            case "store":
                return [f"{place} = {value}"]
            case "add":
                name = self.sums.get(statement.target, place)
                return _looped(statement.inner, [f"{name} += {value}"])
            case "reduce":
                # the same name in every nest would mix the types and lives of variables
                total = local or f"r{self.number}_{self.nest.statements.index(statement)}"
                step = f"{total} = {JOINS[statement.joined_by].format(total, value)}"
                lines = [f"{total} = {STARTS[statement.joined_by]}", *_looped(statement.inner, [step])]
                return lines if local else [*lines, f"{place} = {total}"]
            case _:
                total = f"r{self.number}_{self.nest.statements.index(statement)}"
                steps = [f"{total} += {value}", f"{place} = {total}"]
                return [f"{total} = 0.0", *_looped(statement.inner, steps)]

    def _routine(self, expression: Expression) -> str:
        """A call of a function of `matrices`, which takes places and whole numbers."""
        assert isinstance(expression, Call)
        arguments = (
            self._address(a.buffer, a.place) if isinstance(a, Load) else str(int(a.value))
            for a in expression.arguments
            if isinstance(a, Load | Literal)
        )
        return f"{expression.name}(w, {', '.join(arguments)})"

    def _place(self, buffer: Buffer, place: Linear) -> str:
        return f"{buffer.kind}[{self._address(buffer, place)}]"

    def _address(self, buffer: Buffer, place: Linear) -> str:
        return self._index(place + self.layout.offsets.get(buffer, 0))

    def _index(self, place: Linear) -> str:
        terms: list[str] = []
        for atom, factor in place.terms:
            name = atom if isinstance(atom, str) else self.text(atom)
            terms.append(name if factor == 1 else f"{name} * {factor}")
        if place.constant or not terms:
            terms.append(str(place.constant))
        return " + ".join(terms)

    def text(self, expression: Expression) -> str:
        """An expression as Python."""
        match expression:
            case Literal(value):
                return repr(value) if abs(value) < float("inf") else _infinite(value)
            case Load(buffer, place):
                if buffer in self.layout.local:
                    return self.layout.local[buffer]
                if place.fixed and self.nest.extents and buffer not in self.nest.written:
                    return self.hoisted.setdefault(expression, f"h{self.number}_{len(self.hoisted)}")
                return self._place(buffer, place)
            case Call(name, arguments):
                return WRITTEN[name].format(*map(self.text, arguments))


def _infinite(value: float) -> str:
    return "math.nan" if math.isnan(value) else "math.inf" if value > 0 else "(-math.inf)"


def _looped(loops: Loops, body: list[str]) -> list[str]:
    lines = [f"{INDENT * at}for {name} in range({size}):" for at, (name, size) in enumerate(loops)]
    return [*lines, *(INDENT * len(loops) + line for line in body)]
