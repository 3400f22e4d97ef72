"""The rules for loops that end where a turn says so: states lie in buffers of their own, written over after a turn."""

from __future__ import annotations

import math

from qvr_core.arrays.graph import Array
from qvr_core.arrays.while_loops import Turn
from qvr_core.codegen.loops import (
    Buffer,
    Index,
    Linear,
    Load,
    Plan,
    Statement,
    Strided,
    Turns,
    Value,
    contiguous,
    counters,
)
from qvr_core.codegen.lowering.lowering import Lowering, NoLoops, lowers


@lowers("until")
def _until(lowering: Lowering, node: Array) -> Value:
    turn: Turn = node.params[0]
    given = iter(node.args)
    held: dict[int, Strided] = {}
    for read, _ in turn.states:
        first = lowering.read(next(given))
        held[read.number] = _own(lowering, first)
    series = [lowering.stored(lowering.read(next(given))) for _ in turn.items]
    for each in turn.captured:
        value = lowering.read(each)
        lowering.values[each.number] = lowering.stored(value) if value.cost else value
    for read, _ in turn.states:
        buffer = held[read.number].buffer
        lowering.values[read.number] = lowering.lying(buffer, tuple(read.shape), "real")
    place = held[turn.place.number]
    for item, whole in zip(turn.items, series, strict=True):
        lowering.values[item.number] = _element(whole, place)
    outer, lowering.plan = lowering.plan, Plan()
    lowering.uses.update(arg.number for inner in turn.nodes for arg in inner.args)
    lowering.uses.update(made.number for _, made in turn.states)
    lowering.uses.update(each.number for each in (*turn.put, turn.going))
    for inner in turn.nodes:
        if inner.op in ("loop", "until"):
            raise NoLoops("a loop in a loop")
        lowering.lower(inner)
    going = lowering.stored(lowering.read(turn.going), Buffer("w", 1)).at(())
    target, start = Buffer("w", node.size), 0
    for each, shape in zip(turn.put, turn.shapes, strict=True):
        _put(lowering, lowering.read(each), target, start, place, turn.length)
        start += math.prod(shape)
    made = [(held[read.number], _own(lowering, lowering.read(new))) for read, new in turn.states]
    inside, lowering.plan = lowering.plan, Plan()
    for (read, _), (old, new) in zip(turn.states, made, strict=True):
        loops, index = counters("i", tuple(read.shape))
        at = old.place(index)
        lowering.plan.put(loops, Statement("store", old.buffer, at, Load(new.buffer, new.place(index))))
    after, lowering.plan = lowering.plan, outer
    statements = [each for each in inside.statements if not isinstance(each, Turns)]
    scratch = dict.fromkeys(s.target for _, s in statements if s.target.zeroed)
    copies = [each for each in after.statements if not isinstance(each, Turns)]
    lowering.plan.statements.append(Turns(turn.most, statements, list(scratch), copies, going))
    return lowering.lying(target, tuple(node.shape), "real")


@lowers("tied")
def _tied(lowering: Lowering, node: Array) -> Value:
    return lowering.read(node.args[0])


def _own(lowering: Lowering, value: Value) -> Strided:
    """A value in a buffer that nothing else is in."""
    found = lowering.stored(Value(value.shape, value.kind, value.at), Buffer("w", value.numel)).strided
    assert found is not None
    return found


def _at(place: Strided, row: Linear) -> Linear:
    """The stored place of a row, as an index."""
    return Linear(0, ((Load(place.buffer, place.place((row,))), 1),))


def _element(whole: Value, place: Strided) -> Value:
    """Of (B, T, …) the element of each row at its place."""

    def at(index: Index) -> Load:
        found = whole.at((index[0], _at(place, index[0]), *index[1:]))
        assert isinstance(found, Load)
        return found

    return Value((whole.shape[0], *whole.shape[2:]), whole.kind, at)


def _put(lowering: Lowering, value: Value, target: Buffer, start: int, place: Strided, length: int) -> None:
    """Store (B, …) at the places of the rows of a series (B, T, …), which begins at `start`."""
    loops, index = counters("i", value.shape)
    size = math.prod(value.shape[1:])
    whole = Strided(target, start, (length * size, size, *contiguous(value.shape[1:])))
    lowering.plan.put(
        loops, Statement("store", target, whole.place((index[0], _at(place, index[0]), *index[1:])), value.at(index))
    )
