"""Lowering of gathers, and of what puts or adds pieces into a larger tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, fx

from qvr_core.codegen.loops import Call, Expression, Index, Linear, Literal, Piece, Value
from qvr_core.codegen.pointwise import call
from qvr_core.inference.machine.elementwise import broadcast, pointwise
from qvr_core.inference.machine.lowering import Lowering, Unknown, gathered, lowers, viewed
from qvr_core.inference.machine.views import bounds, masked, on_diagonal, whole


def _indices(lowering: Lowering, node: fx.Node, rank: int) -> tuple[int, list[Tensor], tuple[int, ...]]:
    """The first indexed axis, the indices of it and the following, and the shape they have together."""
    given: Any = node.args[1]
    places = [place for place, item in enumerate(given) if item is not None]
    if not places or any(right - left != 1 for left, right in pairwise(places)):
        raise Unknown("an index with gaps")
    tensors = [lowering.whole_constant(given[place]) for place in places]
    if any(t.dtype == torch.bool for t in tensors):
        raise Unknown("a mask as an index")
    return places[0], tensors, tuple(torch.broadcast_shapes(*(t.shape for t in tensors)))


def _lookup(lowering: Lowering, tensor: Tensor, size: int, shape: Sequence[int]) -> Any:
    """The stored index at a place of the index's shape, counted from the front."""
    name = f"index {id(tensor)} {size}"
    value = lowering.constant(name, torch.where(tensor < 0, tensor + size, tensor).long())
    lowering.held.append(tensor)
    reader = broadcast(value, tuple(shape))

    def at(index: Index) -> Linear:
        found = reader(index)
        if isinstance(found, Literal):
            return Linear(int(found.value))
        return Linear(0, ((found, 1),))  # pyright: ignore[reportArgumentType]

    return at


def _by_indices(lowering: Lowering, node: fx.Node, shape: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """Where the numbers of an indexed tensor of `shape` lie in it, and the shape of what the index gives."""
    first, tensors, lead = _indices(lowering, node, len(shape))
    lookups = [_lookup(lowering, t, shape[first + n], lead) for n, t in enumerate(tensors)]

    def where(index: Index) -> Index:
        own = index[first : first + len(lead)]
        return (*index[:first], *(lookup(own) for lookup in lookups), *index[first + len(lead) :])

    return where, (*shape[:first], *lead, *shape[first + len(tensors) :])


@lowers("index")
def _index(lowering: Lowering, node: fx.Node) -> Value:
    value = lowering.cheap(lowering.read(node.args[0]), 2)
    where, shape = _by_indices(lowering, node, value.shape)
    return gathered(value, shape, where)


@lowers("index_select")
def _index_select(lowering: Lowering, node: fx.Node) -> Value:
    value = lowering.cheap(lowering.read(node.args[0]), 2)
    axis = whole(node.args[1]) % len(value.shape)
    tensor = lowering.whole_constant(node.args[2])
    lookup = _lookup(lowering, tensor, value.shape[axis], tensor.shape)
    return gathered(
        value, lowering.shape(node), lambda index: (*index[:axis], lookup((index[axis],)), *index[axis + 1 :])
    )


def _along(lowering: Lowering, node: fx.Node, shape: Sequence[int]) -> Any:
    """Where gather and scatter_add along an axis look."""
    axis = whole(node.args[1]) % len(shape)
    tensor = lowering.whole_constant(node.args[2])
    lookup = _lookup(lowering, tensor, shape[axis], tensor.shape)
    return lambda index: (*index[:axis], lookup(index), *index[axis + 1 :])


@lowers("gather")
def _gather(lowering: Lowering, node: fx.Node) -> Value:
    value = lowering.cheap(lowering.read(node.args[0]), 2)
    return gathered(value, lowering.shape(node), _along(lowering, node, value.shape))


def _assembled(shape: tuple[int, ...], *pieces: Piece) -> Value:
    def at(_: Index) -> Expression:
        raise Unknown("pieces read before they are put together")

    return Value(shape, "real", at, 1, None, pieces)


def _with_base(lowering: Lowering, base: Value, *pieces: Piece) -> Value:
    """Pieces added to a tensor, which is a piece itself unless it is zero."""
    if base.at((Linear(),) * len(base.shape)) == Literal(0.0):
        return _assembled(base.shape, *pieces)
    whole = Piece(base, lambda index: index, tuple((0, size) for size in base.shape))
    return _assembled(base.shape, whole, *pieces)


def _box(shape: Sequence[int], axis: int, start: int, stop: int) -> tuple[tuple[int, int], ...]:
    return tuple((start, stop) if own == axis else (0, size) for own, size in enumerate(shape))


@lowers("slice_backward")
def _slice_backward(lowering: Lowering, node: fx.Node) -> Value:
    source, shape = lowering.read(node.args[0]), lowering.shape(node)
    axis, start, stop, step = bounds(node, shape, 2)
    box = _box(shape, axis, start, stop) if step == 1 else None
    return _assembled(
        shape,
        Piece(source, lambda index: (*index[:axis], index[axis] * step + start, *index[axis + 1 :]), box),
    )


@lowers("select_backward")
def _select_backward(lowering: Lowering, node: fx.Node) -> Value:
    source, shape = lowering.read(node.args[0]), lowering.shape(node)
    axis = whole(node.args[2]) % len(shape)
    place = whole(node.args[3]) % shape[axis]
    return _assembled(
        shape,
        Piece(
            source,
            lambda index: (*index[:axis], Linear(place), *index[axis:]),
            _box(shape, axis, place, place + 1),
        ),
    )


@lowers("cat")
def _cat(lowering: Lowering, node: fx.Node) -> Value:
    shape = lowering.shape(node)
    given: Any = node.args[0]
    axis = whole(node.args[1] if len(node.args) > 1 else 0) % len(shape)
    pieces: list[Piece] = []
    start = 0
    for value in map(lowering.read, given):
        size = value.shape[axis]
        pieces.append(
            Piece(
                value,
                lambda index, start=start: (*index[:axis], index[axis] + start, *index[axis + 1 :]),
                _box(shape, axis, start, start + size),
            )
        )
        start += size
    return _assembled(shape, *pieces)


@lowers("stack")
def _stack(lowering: Lowering, node: fx.Node) -> Value:
    shape = lowering.shape(node)
    given: Any = node.args[0]
    axis = whole(node.args[1] if len(node.args) > 1 else 0) % len(shape)
    return _assembled(
        shape,
        *(
            Piece(
                lowering.read(item),
                lambda index, place=place: (*index[:axis], Linear(place), *index[axis:]),
                _box(shape, axis, place, place + 1),
            )
            for place, item in enumerate(given)
        ),
    )


@lowers("constant_pad_nd")
def _pad(lowering: Lowering, node: fx.Node) -> Value:
    source, shape = lowering.read(node.args[0]), lowering.shape(node)
    widths: Any = node.args[1]
    if len(node.args) > 2 and node.args[2] != 0:
        raise Unknown("padding by other than zeros")
    before, after = [0] * len(shape), [0] * len(shape)
    for number, (one, two) in enumerate(zip(widths[::2], widths[1::2], strict=True)):
        before[len(shape) - 1 - number], after[len(shape) - 1 - number] = one, two
    # less than none takes away
    cut, put = [max(-b, 0) for b in before], [max(b, 0) for b in before]
    left = tuple(size + min(b, 0) + min(a, 0) for size, b, a in zip(source.shape, before, after, strict=True))
    part = viewed(source, left, lambda index: tuple(i + c for i, c in zip(index, cut, strict=True)))
    if left == shape:
        return part
    box = tuple((b, b + size) for b, size in zip(put, left, strict=True))
    return _assembled(shape, Piece(part, lambda index: tuple(i + b for i, b in zip(index, put, strict=True)), box))


@lowers("diag_embed")
def _diag_embed(lowering: Lowering, node: fx.Node) -> Value:
    source, shape = lowering.read(node.args[0]), lowering.shape(node)
    rank = len(shape)
    offset, one, two = (whole(a) for a in (*node.args[1:], *(0, -2, -1)[len(node.args) - 1 :]))
    if (offset, one % rank, two % rank) != (0, rank - 2, rank - 1):
        raise Unknown("diag_embed off the main diagonal")
    return _assembled(shape, Piece(source, lambda index: (*index, index[-1])))


@lowers("diagonal_backward")
def _diagonal_backward(lowering: Lowering, node: fx.Node) -> Value:
    source, shape = lowering.read(node.args[0]), lowering.shape(node)
    return _assembled(shape, Piece(source, on_diagonal(node, 2, len(shape))))


@lowers("scatter_add")
def _scatter_add(lowering: Lowering, node: fx.Node) -> Value:
    base, source = lowering.read(node.args[0]), lowering.read(node.args[3])
    tensor = lowering.whole_constant(node.args[2])
    if tuple(tensor.shape) != source.shape:
        source = viewed(source, tuple(tensor.shape), lambda index: index)
    return _with_base(lowering, base, Piece(source, _along(lowering, node, base.shape)))


@lowers("index_add")
def _index_add(lowering: Lowering, node: fx.Node) -> Value:
    if node.kwargs:
        raise Unknown("index_add with a factor")
    base, source = lowering.read(node.args[0]), lowering.read(node.args[3])
    axis = whole(node.args[1]) % len(base.shape)
    tensor = lowering.whole_constant(node.args[2])
    lookup = _lookup(lowering, tensor, base.shape[axis], tensor.shape)
    return _with_base(
        lowering,
        base,
        Piece(source, lambda index: (*index[:axis], lookup((index[axis],)), *index[axis + 1 :])),
    )


@lowers("index_copy")
def _index_copy(lowering: Lowering, node: fx.Node) -> Value:
    base, source = lowering.read(node.args[0]), lowering.read(node.args[3])
    axis = whole(node.args[1]) % len(base.shape)
    tensor = lowering.whole_constant(node.args[2])
    if len(tensor.unique()) != tensor.numel():
        raise Unknown("an index that puts twice into one place")
    kept = torch.ones(base.shape, dtype=torch.bool).index_fill(axis, tensor, False)
    lookup = _lookup(lowering, tensor, base.shape[axis], tensor.shape)
    piece = Piece(source, lambda index: (*index[:axis], lookup((index[axis],)), *index[axis + 1 :]))
    return _with_base(lowering, _cleared(lowering, base, kept), piece)


@lowers("index_fill")
def _index_fill(lowering: Lowering, node: fx.Node) -> Value:
    axis, tensor = whole(node.args[1]), lowering.whole_constant(node.args[2])
    shape = lowering.shape(node)
    mask = torch.zeros(shape, dtype=torch.bool).index_fill(axis, tensor, True)
    filled = broadcast(lowering.constant(f"mask {len(lowering.wholes)}", mask), shape)
    value, fill = (lowering.read(argument) for argument in (node.args[0], node.args[3]))
    number = broadcast(fill, shape)
    return Value(shape, value.kind, lambda i: Call("where", (filled(i), number(i), value.at(i))), value.cost + 1)


@lowers("index_put", "_unsafe_index_put")
def _index_put(lowering: Lowering, node: fx.Node) -> Value:
    base, values = lowering.read(node.args[0]), lowering.read(node.args[2])
    where, shape = _by_indices(lowering, node, base.shape)
    reader = broadcast(lowering.cheap(values, 1 if values.shape == shape else 2), shape)
    source = Value(shape, "real", reader, values.cost)
    if not (len(node.args) > 3 and node.args[3]):
        base = _without(lowering, node, base, math.prod(shape))
    return _with_base(lowering, base, Piece(source, where))


def _without(lowering: Lowering, node: fx.Node, base: Value, count: int) -> Value:
    """A tensor with zeros where an index will put something, each place once."""
    given: Any = node.args[1]
    index = tuple(slice(None) if item is None else lowering.whole_constant(item) for item in given)
    times = torch.zeros(base.shape, dtype=torch.int64)
    times[index] = 1
    if int(times.sum()) != count:
        raise Unknown("an index that puts twice into one place")
    return _cleared(lowering, base, times == 0)


def _cleared(lowering: Lowering, base: Value, kept: Tensor) -> Value:
    """A tensor with zeros where something else will stand."""
    if base.at((Linear(),) * len(base.shape)) == Literal(0.0):
        return base
    return masked(lowering, base, kept)


@lowers("select_scatter")
def _select_scatter(lowering: Lowering, node: fx.Node) -> Value:
    base, source = lowering.read(node.args[0]), lowering.read(node.args[1])
    axis = whole(node.args[2]) % len(base.shape)
    place = whole(node.args[3]) % base.shape[axis]
    kept = torch.ones(base.shape, dtype=torch.bool)
    kept.select(axis, place).fill_(False)
    piece = Piece(source, lambda index: (*index[:axis], Linear(place), *index[axis:]))
    return _with_base(lowering, _cleared(lowering, base, kept), piece)


@lowers("slice_scatter")
def _slice_scatter(lowering: Lowering, node: fx.Node) -> Value:
    base, source = lowering.read(node.args[0]), lowering.read(node.args[1])
    axis, start, stop, step = bounds(node, base.shape, 2)
    kept = torch.ones(base.shape, dtype=torch.bool)
    kept[(*[slice(None)] * axis, slice(start, stop, step))] = False
    piece = Piece(source, lambda index: (*index[:axis], index[axis] * step + start, *index[axis + 1 :]))
    return _with_base(lowering, _cleared(lowering, base, kept), piece)


@lowers("masked_fill")
def _masked_fill(lowering: Lowering, node: fx.Node) -> Value:
    return pointwise(
        lowering, node, (node.args[1], node.args[2], node.args[0]), lambda m, v, x: Call("where", (m, v, x))
    )


def _targets(lowering: Lowering, node: fx.Node, place: int, shape: tuple[int, ...]) -> Any:
    """Where the number of each row's class lies in (rows, classes, …), for an index into (rows, …)."""
    rest: Any = node.args[place + 1 :]
    tensor = lowering.whole_constant(node.args[place])
    if rest[0] is not None or rest[1] != 0 or bool((tensor == rest[2]).any()):
        raise Unknown("a loss by classes with weights, sums or gaps")
    axis = max(len(shape) - tensor.ndim, 0) and int(len(shape) > 1)
    lookup = _lookup(lowering, tensor, shape[axis], tensor.shape)
    return lambda index: (*index[:axis], lookup(index), *index[axis:])


@lowers("nll_loss_forward", "nll_loss2d_forward")
def _class_loss(lowering: Lowering, node: fx.Node) -> tuple[Value, Value]:
    value = lowering.cheap(lowering.read(node.args[0]), 2)
    where = _targets(lowering, node, 1, value.shape)
    shape = tuple(lowering.seen[node][0].shape)
    found = Value(shape, "real", lambda index: call("neg", value.at(where(index))), 1)
    return found, Value((), "real", lambda _: Literal(0.0))


@lowers("nll_loss_backward", "nll_loss2d_backward")
def _class_loss_backward(lowering: Lowering, node: fx.Node) -> Value:
    gradient, shape = lowering.read(node.args[0]), lowering.shape(node)
    where = _targets(lowering, node, 2, shape)
    source = Value(gradient.shape, "real", lambda index: call("neg", gradient.at(index)), gradient.cost + 1)
    return _assembled(shape, Piece(source, where))
