"""Steps that were written out one behind the other, back in a loop.

A recurrence is traced step by step: the same statements again and again, at other places and with other numbers.
Where they repeat, one turn is kept, and what differs between turns is counted up with the loop or looked up in a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.codegen.loops import (
    Buffer,
    Call,
    Expression,
    Linear,
    Literal,
    Load,
    Nest,
    Placed,
    Statement,
    fused,
)

TURN = "r"
"""The loop variable."""
LONGEST = 600
"""Statements of a turn, at most."""
FEWEST = 4
"""Turns that are worth a loop."""
ARENA = Buffer("w", 0)
"""The whole room, for places that are counted from its beginning."""

OnPlace = Callable[[Buffer, Linear], tuple[Buffer, Linear]]
OnLiteral = Callable[[float], Expression]
Array = NDArray[Any]


@dataclass(slots=True)
class Tables:
    """Numbers that differ between turns, behind the constants of the program."""

    reals: list[float]
    wholes: list[int]
    real_buffer: Buffer
    whole_buffer: Buffer
    _kept: dict[tuple[Any, ...], int] = field(default_factory=dict[tuple[Any, ...], int])

    def real(self, values: Array) -> Expression:
        """A number of each turn."""
        return Load(self.real_buffer, Linear(self._place(self.reals, values, float), ((TURN, 1),)))

    def whole(self, values: Array) -> Linear:
        """A whole number of each turn."""
        place = Linear(self._place(self.wholes, values, int), ((TURN, 1),))
        return Linear(0, ((Load(self.whole_buffer, place), 1),))

    def _place(self, into: list[Any], values: Array, kind: type) -> int:
        row = tuple(kind(value) for value in values)
        if (kind, row) not in self._kept:
            self._kept[(kind, row)] = len(into)
            into.extend(row)
        return self._kept[(kind, row)]


@dataclass(slots=True)
class Roll:
    """Statements that repeat: of each turn as many, alike but for places and numbers."""

    start: int
    turns: list[list[Placed]]

    @property
    def stop(self) -> int:
        """The number of the statement behind the last."""
        return self.start + len(self.turns) * len(self.turns[0])

    def nests(self) -> list[Nest]:
        """The first turn in nests."""
        return fused(self.turns[0])

    def locals(self, readers: dict[Buffer, list[int]], own: set[Buffer]) -> list[list[Buffer]]:
        """Of the buffers `own` to their nest in the first turn, those that are so in all; each with its fellows."""
        found: list[list[Buffer]] = []
        size = len(self.turns[0])
        for slot, (_, statement) in enumerate(self.turns[0]):
            if statement.target not in own:
                continue
            fellows = [turn[slot][1].target for turn in self.turns]
            inside = all(
                self.start + at * size <= reader < self.start + (at + 1) * size
                for at, buffer in enumerate(fellows)
                for reader in readers.get(buffer, ())
            )
            if inside and len(set(fellows)) == len(fellows):
                found.append(fellows)
        return found

    def form(self, offsets: dict[Buffer, int], local: set[Buffer], tables: Tables) -> list[Nest]:
        """The nests of one turn for all: places as forms of `TURN` where they are not local."""
        forms = {id(self.turns[0][slot][1]): self._form(slot, offsets, local, tables) for slot in self._slots()}
        found: list[Nest] = []
        for nest in self.nests():
            made = Nest(nest.extents, [])
            for statement in nest.statements:
                made.take(forms[id(statement)])
            found.append(made)
        return found

    def _slots(self) -> range:
        return range(len(self.turns[0]))

    def _form(self, slot: int, offsets: dict[Buffer, int], local: set[Buffer], tables: Tables) -> Statement:
        each = [list(_leaves(turn[slot][1], offsets)) for turn in self.turns]
        columns = iter(zip(*each, strict=True))

        def on_place(buffer: Buffer, place: Linear) -> tuple[Buffer, Linear]:
            column = np.array(next(columns))
            if buffer in local:
                return buffer, Linear()
            whole = _counted(column, tables)
            return ARENA if buffer.kind == "w" else buffer, Linear(0, place.terms) + whole

        def on_literal(_: float) -> Expression:
            column = np.array(next(columns))
            alike = bool((column == column[0]).all() or np.isnan(column).all())
            return Literal(float(column[0])) if alike else tables.real(column)

        return mapped(self.turns[0][slot][1], on_place, on_literal)


def _counted(column: Array, tables: Tables) -> Linear:
    steps = np.diff(column)
    if bool((steps == steps[0]).all()):
        step = int(steps[0])
        return Linear(int(column[0]), ((TURN, step),) if step else ())
    return tables.whole(column)


def mapped(statement: Statement, on_place: OnPlace, on_literal: OnLiteral) -> Statement:
    """A statement with other places and numbers, met in one order."""

    def place(buffer: Buffer, where: Linear) -> tuple[Buffer, Linear]:
        terms = tuple((atom if isinstance(atom, str) else load(atom), factor) for atom, factor in where.terms)
        return on_place(buffer, Linear(where.constant, terms))

    def load(given: Load) -> Load:
        return Load(*place(given.buffer, given.place))

    def expression(given: Expression) -> Expression:
        match given:
            case Load():
                return load(given)
            case Literal(value):
                return on_literal(value)
            case Call(name, arguments):
                return Call(name, tuple(map(expression, arguments)))

    if statement.kind == "routine":
        assert isinstance(statement.value, Call)
        arguments = tuple(a if isinstance(a, Literal) else expression(a) for a in statement.value.arguments)
        value: Expression = Call(statement.value.name, arguments)
    else:
        value = expression(statement.value)
    target, where = place(statement.target, statement.place)
    return Statement(statement.kind, target, where, value, statement.inner, statement.joined_by)


def _leaves(statement: Statement, offsets: dict[Buffer, int]) -> Iterator[float]:
    """The constants of its places, counted from the beginning of the room, and its numbers."""
    found: list[float] = []

    def on_place(buffer: Buffer, place: Linear) -> tuple[Buffer, Linear]:
        found.append(place.constant + offsets.get(buffer, 0))
        return buffer, place

    def on_literal(value: float) -> Expression:
        found.append(value)
        return Literal(value)

    mapped(statement, on_place, on_literal)
    return iter(found)


# ------------------------------------------------------------ finding what repeats


def rolled(statements: Sequence[Placed]) -> list[list[Placed] | Roll]:
    """The statements in order, those that repeat as rolls."""
    ids: dict[Any, int] = {}
    kinds = np.array([ids.setdefault(_kind(extents, s), len(ids)) for extents, s in statements])
    writers: dict[Buffer, list[int]] = {}
    for number, (_, statement) in enumerate(statements):
        writers.setdefault(statement.target, []).append(number)
    return list(_parts(statements, kinds, writers, 0, len(statements)))


def _parts(
    statements: Sequence[Placed], kinds: Array, writers: dict[Buffer, list[int]], start: int, stop: int
) -> Iterator[list[Placed] | Roll]:
    found = _longest(kinds[start:stop])
    if found is not None:
        first, period, count = found
        roll = _alike(statements, writers, start + first, period, count)
        if roll is not None:
            yield from _parts(statements, kinds, writers, start, roll.start)
            yield roll
            yield from _parts(statements, kinds, writers, roll.stop, stop)
            return
    if start < stop:
        yield list(statements[start:stop])


def _longest(kinds: Array) -> tuple[int, int, int] | None:
    """Where the most statements are saved by a loop: the first, how many a turn, how many turns."""
    best, saved = None, 0
    for period in range(1, min(LONGEST, len(kinds) // FEWEST) + 1):
        same = np.concatenate([[False], kinds[:-period] == kinds[period:], [False]])
        edges = np.flatnonzero(same[1:] != same[:-1])
        if not len(edges):
            continue
        starts, lengths = edges[::2], edges[1::2] - edges[::2]
        at = int(lengths.argmax())
        count = int(lengths[at]) // period + 1
        if count >= FEWEST and (count - 1) * period > saved:
            best, saved = (int(starts[at]), period, count), (count - 1) * period
    return best


def _alike(
    statements: Sequence[Placed], writers: dict[Buffer, list[int]], start: int, period: int, count: int
) -> Roll | None:
    """The most turns in a row whose statements read one another in the same way."""
    turns = [statements[start + at * period : start + (at + 1) * period] for at in range(count)]
    wirings = [_wiring(turn, writers, start + at * period) for at, turn in enumerate(turns)]
    best, begin = (0, 0), 0
    for at in range(count):
        if wirings[at] != wirings[begin]:
            begin = at
        best = max(best, (at - begin + 1, -begin))
    length, first = best[0], -best[1]
    if length < FEWEST:
        return None
    return Roll(start + first * period, [list(turn) for turn in turns[first : first + length]])


def _wiring(turn: Sequence[Placed], writers: dict[Buffer, list[int]], start: int) -> list[Any]:
    """For each number read: the statements of this turn that make its buffer, and how far from theirs its place is."""
    found: list[Any] = []
    for _, statement in turn:
        for load in statement.reads():
            inside = [at - start for at in writers.get(load.buffer, ()) if start <= at < start + len(turn)]
            found.append([(at, load.place.constant - turn[at][1].place.constant) for at in inside])
    return found


def _kind(extents: Any, statement: Statement) -> Any:
    """What is equal in all turns."""
    routine = statement.kind == "routine"

    def of_place(buffer: Buffer, place: Linear) -> Any:
        terms = (
            (atom, factor) if isinstance(atom, str) else (of_place(atom.buffer, atom.place), factor)
            for atom, factor in place.terms
        )
        return (buffer.kind, *terms)

    def of(expression: Expression) -> Any:
        match expression:
            case Load(buffer, place):
                return of_place(buffer, place)
            case Literal(value):
                return value if routine else "number"
            case Call(name, arguments):
                return (name, *map(of, arguments))

    target = statement.target
    where = (target.size, target.zeroed, of_place(target, statement.place))
    return (extents, statement.kind, statement.inner, statement.joined_by, where, of(statement.value))
