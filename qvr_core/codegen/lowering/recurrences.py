"""The rule for loops over turns: what earlier turns have made lies in rows of one buffer, as the loop gives it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from qvr_core.arrays.graph import Array
from qvr_core.arrays.recurrences import Body
from qvr_core.codegen.loops import (
    TURN,
    Buffer,
    Index,
    Linear,
    Literal,
    Load,
    Plan,
    Statement,
    Strided,
    Turns,
    Value,
    contiguous,
    counters,
    variable,
)
from qvr_core.codegen.lowering.lowering import Lowering, NoLoops, lowers


@lowers("loop")
def _loop(lowering: Lowering, node: Array) -> Value:
    body: Body = node.params[0]
    given = iter(node.args)
    starts = [[lowering.read(next(given)) for _ in state.back] for state in body.states]
    rows = [lowering.stored(lowering.read(next(given))) for _ in body.items]
    for each in body.captured:
        value = lowering.read(each)
        lowering.values[each.number] = lowering.stored(value) if value.cost else value
    target = Buffer("w", node.size)
    places = list(_places(body))
    outer, lowering.plan = lowering.plan, Plan()
    for state, first, own in zip(body.states, starts, places, strict=False):
        size = math.prod(state.made.shape)
        for at, value in enumerate(first):
            _put(lowering, value, target, Linear(own + at * size))
    before, lowering.plan = lowering.plan, Plan()
    turn = variable(TURN)
    row = turn * -1 + (body.count - 1) if body.reverse else turn
    for item, value in zip(body.items, rows, strict=True):
        lowering.values[item.number] = _row(value, row)
    for state, own in zip(body.states, places, strict=False):
        size = math.prod(state.made.shape)
        for back, one in enumerate(state.back, 1):
            place = (turn + (len(state.back) - back)) * size + own
            lowering.values[one.number] = _at(target, place, tuple(one.shape))
    outputs = [(state.made, turn + len(state.back)) for state in body.states]
    outputs += [(each, row) for each in (*body.emitted, *body.kept)]
    outputs += [(each, Linear()) for each in body.summed]
    live = _live(lowering, node, body)
    lowering.uses.update(arg.number for inner in body.nodes for arg in inner.args)
    lowering.uses.update(each.number for (each, _), own in zip(outputs, places, strict=True) if own in live)
    for inner in body.nodes:
        if inner.op in ("loop", "until"):
            raise NoLoops("a loop in a loop")
        lowering.lower(inner)
    made = [lowering.raw(each) for each, _ in outputs]
    zeros: list[tuple[int, int]] = []
    for value, (each, at), shape, own in zip(made, outputs, body.shapes, places, strict=True):
        if own in live:
            if value.pieces or not at.terms:
                # first elements have their own rows
                first = at.constant * math.prod(each.shape) if at.terms and at is not row else 0
                zeros.append((own + first, math.prod(shape) - first))
            _put(lowering, value, target, at * math.prod(each.shape) + own, add=not at.terms)
    inside, lowering.plan = lowering.plan, outer
    for own, size in zeros:
        _put(lowering, Value((size,), "real", lambda _: Literal(0.0)), target, Linear(own))
    lowering.plan.statements += before.statements
    statements = [each for each in inside.statements if not isinstance(each, Turns)]
    scratch = dict.fromkeys(s.target for _, s in statements if s.target.zeroed)
    lowering.plan.statements.append(Turns(body.count, statements, list(scratch)))
    return lowering.lying(target, tuple(node.shape), "real")


def _places(body: Body) -> Iterator[int]:
    start = 0
    for shape in body.shapes:
        yield start
        start += math.prod(shape)


def _live(lowering: Lowering, node: Array, body: Body) -> set[int]:
    """Where the live parts begin: what something reads, and the series of states."""
    found = {own for own, _ in zip(_places(body), body.states, strict=False)}
    for reader in lowering.nodes:
        if any(arg is node for arg in reader.args):
            if reader.op != "slice":
                return set(_places(body))
            found.add(reader.params[1])
    return found


def _row(rows: Value, row: Linear) -> Value:
    """A row of (T, …)."""
    return Value(rows.shape[1:], rows.kind, lambda index: rows.at((row, *index)))


def _at(buffer: Buffer, place: Linear, shape: tuple[int, ...]) -> Value:
    """Numbers that lie one behind the other from a place on that moves with the turns."""

    def at(index: Index) -> Load:
        return Load(buffer, Strided(buffer, 0, contiguous(shape)).place(index) + place)

    return Value(shape, "real", at)


def _put(lowering: Lowering, value: Value, target: Buffer, place: Linear, *, add: bool = False) -> None:
    """Store a value from a place on, or add it there; pieces are added into zeros."""
    lying = Strided(target, 0, contiguous(value.shape))
    for piece in value.pieces:
        loops, index = counters("i", piece.source.shape)
        where = lying.place(piece.where(index)) + place
        lowering.plan.put(loops, Statement("add", target, where, piece.source.at(index)))
    if not value.pieces:
        loops, index = counters("i", value.shape)
        kind = "add" if add else "store"
        lowering.plan.put(loops, Statement(kind, target, lying.place(index) + place, value.at(index)))
