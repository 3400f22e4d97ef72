"""From loops to the text of a function in the subset of Python that is compiled.

A buffer that only the nest that makes it reads, at the same turn, is a local variable; a number that no loop variable
moves is read before the loops.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from qvr_core.codegen.intrinsics import BLOCK
from qvr_core.codegen.loops import (
    TURN,
    Buffer,
    Call,
    Expression,
    Linear,
    Literal,
    Load,
    Loops,
    Nest,
    Placed,
    Program,
    Statement,
    Turns,
    fused,
    loads,
)
from qvr_core.codegen.scalar_operations import WRITTEN
from qvr_core.codegen.vector_blocks import WIDE, Phase, crossing, phases

NAME = "log_density"
STARTS = {"+": "0.0", "*": "1.0", "max": "-math.inf", "min": "math.inf"}
JOINS = {"+": "{} + {}", "*": "{} * {}", "max": "at_least({}, {})", "min": "at_most({}, {})"}
INDENT = "    "


@dataclass(slots=True)
class Text:
    """The text of a density, how many numbers of room it wants, and the constants that it reads."""

    source: str
    room: int
    reals: list[float]
    wholes: list[int]
    adaptive: bool = False
    """Whether it has loops that end by themselves: as a function of the position its value has small jumps."""

    @property
    def lines(self) -> int:
        """How long it is."""
        return self.source.count("\n")


@dataclass(slots=True)
class Layout:
    """Where each buffer lies in the room, and which are local."""

    offsets: dict[Buffer, int] = field(default_factory=dict[Buffer, int])
    local: dict[Buffer, str] = field(default_factory=dict[Buffer, str])
    zeroed: int = 0
    size: int = 0


@dataclass(slots=True)
class _Part:
    """Statements between two loops over turns, or those of one."""

    statements: list[Placed]
    nests: list[Nest]
    turns: Turns | None
    ends: Turns | None = None
    """Whose turn ends behind these statements."""


def written(program: Program) -> Text:
    """The function of a program: `log_density(q, g, w, d, k)` fills the gradient and returns the value."""
    parts = list(_parts(program.plan.statements))
    layout = _laid_out(program, parts)
    lines = [f"def {NAME}(q, g, w, d, k):"]
    if layout.zeroed:
        lines += [f"{INDENT}for i in range({layout.zeroed}):", f"{INDENT * 2}w[i] = 0.0"]
    if any(
        statement.target.kind == "g" and statement.target.zeroed for part in parts for _, statement in part.statements
    ):
        lines += [f"{INDENT}for i in range({program.width}):", f"{INDENT * 2}g[i] = 0.0"]
    number = lanes = 0
    start = len(lines)
    for part in parts:
        deep = INDENT
        if part.turns is not None:
            lines.append(f"{INDENT}for {TURN} in range({part.turns.count}):")
            deep = INDENT * 2
            for buffer in part.turns.scratch:
                first = layout.offsets[buffer]
                lines += [f"{deep}for i in range({first}, {first + buffer.size}):", f"{deep}{INDENT}w[i] = 0.0"]
        elif part.ends is not None:
            deep = INDENT * 2
        for nest in part.nests:
            writer = _Writer(layout, nest, number)
            lines += [deep + line for line in writer.lines()]
            number, lanes = number + 1, max(lanes, len(writer.lanes))
        if part.ends is not None and part.ends.going is not None:
            going = _Writer(layout, Nest((), []), number).text(part.ends.going)
            lines += [f"{deep}if not ({going} > 0.0):", f"{deep}{INDENT}break"]
    lines[start:start] = [f"{INDENT}lane{lane} = lane()" for lane in range(lanes)]
    writer = _Writer(layout, Nest((), []), number)
    lines.append(f"{INDENT}return {writer.text(program.value)}")
    adaptive = any(part.ends is not None for part in parts)
    return Text("\n".join(lines) + "\n", layout.size, program.reals, program.wholes, adaptive)


def _parts(statements: Sequence[Placed | Turns]) -> Iterator[_Part]:
    plain: list[Placed] = []
    for each in statements:
        if isinstance(each, Turns):
            yield _Part(plain, fused(plain), None)
            yield _Part(each.statements, fused(each.statements), each)
            if each.going is not None:
                yield _Part(each.after, fused(each.after), None, each)
            plain = []
        else:
            plain.append(each)
    yield _Part(plain, fused(plain), None)


def _laid_out(program: Program, parts: Sequence[_Part]) -> Layout:
    layout = Layout()
    elsewhere = {load.buffer for load in loads(program.value)}
    goings = (part.ends.going for part in parts if part.ends is not None)
    elsewhere |= {load.buffer for going in goings if going is not None for load in loads(going)}
    for nest in chain.from_iterable(part.nests for part in parts):
        own = _own(nest)
        elsewhere |= {b for s in nest.statements for b in _foreign(s, own)}
    readers: dict[Buffer, set[int]] = {}
    for number, part in enumerate(parts):
        for _, statement in part.statements:
            for load in statement.reads():
                readers.setdefault(load.buffer, set()).add(number)
    for number, part in enumerate(parts):
        own = dict.fromkeys(b for nest in part.nests for b in _own(nest) if b.kind == "w" and b not in elsewhere)
        alone = [b for b in own if readers.get(b, {number}) == {number}]
        layout.local |= {b: f"t{len(layout.local) + at}" for at, b in enumerate(alone)}
    made = dict.fromkeys(statement.target for part in parts for _, statement in part.statements)
    scratch = {buffer for part in parts if part.turns is not None for buffer in part.turns.scratch}
    zeroed = {buffer for buffer in made if buffer.zeroed and buffer not in scratch}
    # zeroed ones stand together in front
    for buffer in sorted((b for b in made if b.kind == "w" and b not in layout.local), key=lambda b: b not in zeroed):
        layout.offsets[buffer] = layout.size
        layout.size += buffer.size
        layout.zeroed += buffer.size if buffer in zeroed else 0
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
        self.hoisted: dict[Load, tuple[str, str]] = {}
        self.sums: dict[tuple[Buffer, Linear], str] = {}
        self.lanes: dict[Buffer, str] = {}
        self.wide = False

    def lines(self) -> list[str]:
        for statement in self.nest.statements:
            if statement.kind == "add" and self.nest.extents and _still(statement.place) and not statement.inner:
                self.sums.setdefault((statement.target, statement.place), f"s{self.number}_{len(self.sums)}")
        found = phases(self.nest, self.layout.local)
        body = self._phase(found[0], "") if len(found) == 1 and found[0].kind == "plain" else self._blocks(found)
        after = [f"{self._place(*where)} += {name}" for where, name in self.sums.items()]
        before = [f"{name} = {text}" for name, text in self.hoisted.values()]
        before += [f"{name} = 0.0" for name in self.sums.values()]
        outer = self.nest.extents[:-1]
        loops = [f"{INDENT * at}for i{at} in range({size}):" for at, size in enumerate(outer)]
        return [*before, *loops, *(INDENT * len(outer) + line for line in body), *after]

    def _blocks(self, found: list[Phase]) -> list[str]:
        """The phases one behind the other, for each block of rows."""
        rows = self.nest.extents[-1]
        lanes = crossing(found, self.layout.local)
        block = f"b{self.number}"
        self.lanes = {buffer: f"lane{lane}[{{}} - {block}]" for buffer, lane in lanes.items()}
        span = f"{block}, min({block} + {BLOCK}, {rows})"
        body = [line for phase in found for line in self._phase(phase, span)]
        return [f"for {block} in range(0, {rows}, {BLOCK}):", *(INDENT + line for line in body)]

    def _phase(self, phase: Phase, span: str) -> list[str]:
        self.wide = phase.kind != "plain"
        extents = self.nest.extents
        if phase.kind == "turned":
            return [line for statement in phase.statements for line in self._turned(statement, span)]
        body = [line for statement in phase.statements for line in self._statement(statement)]
        if not extents:
            return body
        return [f"for {self._row()} in range({span or extents[-1]}):", *(INDENT + line for line in body)]

    def _row(self) -> str:
        return f"i{len(self.nest.extents) - 1}"

    def _turned(self, statement: Statement, span: str) -> list[str]:
        """The rows inside, so that they are summed as vectors."""
        total = f"r{self.number}_{self.nest.statements.index(statement)}"
        rows = [f"{INDENT}{total} += {self.text(statement.value)}"]
        lines = [f"{total} = 0.0", f"for {self._row()} in range({span}):", *rows]
        return _looped(statement.inner, [*lines, f"{self._place(statement.target, statement.place)} += {total}"])

    def _statement(self, statement: Statement) -> list[str]:
        if statement.kind == "routine":
            return [self._routine(statement.value)]
        value = self.text(statement.value)
        local = self._local(statement.target)
        place = local or self._place(statement.target, statement.place)
        match statement.kind:
            case "store":
                return [f"{place} = {value}"]
            case "add":
                name = self.sums.get((statement.target, statement.place), place)
                return _looped(statement.inner, [f"{name} += {value}"])
            case "reduce":
                # the same name in every nest would mix the types and lives of variables
                kept = local is not None and statement.target not in self.lanes
                total = local if kept else f"r{self.number}_{self.nest.statements.index(statement)}"
                step = f"{total} = {JOINS[statement.joined_by].format(total, value)}"
                lines = [f"{total} = {STARTS[statement.joined_by]}", *_looped(statement.inner, [step])]
                return lines if kept else [*lines, f"{place} = {total}"]
            case _:
                total = f"r{self.number}_{self.nest.statements.index(statement)}"
                joined = JOINS[statement.joined_by].format(total, value)
                steps = [f"{total} = {joined}", f"{place} = {total}"]
                return [f"{total} = {STARTS[statement.joined_by]}", *_looped(statement.inner, steps)]

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
            if isinstance(atom, Load) and atom.buffer.kind != "k":
                name = f"int({name})"
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
                if (name := self._local(buffer)) is not None:
                    return name
                if _still(place) and self.nest.extents and buffer not in self.nest.written:
                    if expression not in self.hoisted:
                        # its own place may read numbers that come before it
                        text = self._place(buffer, place)
                        self.hoisted[expression] = (f"h{self.number}_{len(self.hoisted)}", text)
                    return self.hoisted[expression][0]
                return self._place(buffer, place)
            case Call("whole_power", (base, Load() as exponent)):
                return self.text(Call("pow", (base, exponent)))
            case Call(name, arguments):
                written = WIDE.get(name, WRITTEN[name]) if self.wide else WRITTEN[name]
                return written.format(*map(self.text, arguments))

    def _local(self, buffer: Buffer) -> str | None:
        """The variable, or the place in a lane, of a number that only this nest reads."""
        lane = self.lanes.get(buffer)
        return self.layout.local.get(buffer) if lane is None else lane.format(self._row())


def _still(place: Linear) -> bool:
    """Whether no loop of a nest moves it."""
    return all(_still(atom.place) if isinstance(atom, Load) else atom == TURN for atom, _ in place.terms)


def _infinite(value: float) -> str:
    return "math.nan" if math.isnan(value) else "math.inf" if value > 0 else "(-math.inf)"


def _looped(loops: Loops, body: list[str]) -> list[str]:
    lines = [f"{INDENT * at}for {name} in range({size}):" for at, (name, size) in enumerate(loops)]
    return [*lines, *(INDENT * len(loops) + line for line in body)]
