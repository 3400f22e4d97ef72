"""Rules for views: the same numbers at other indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from qvr_core.arrays.graph import Array
from qvr_core.codegen.loops import Index, Linear, Piece, Strided, Value, contiguous
from qvr_core.codegen.lowering.lowering import Lowering, assembled, lowers, strided, viewed


@lowers("reshape")
def _reshape(lowering: Lowering, node: Array) -> Value:
    return reshaped(lowering, lowering.read(node.args[0]), tuple(node.shape))


def reshaped(lowering: Lowering, value: Value, shape: tuple[int, ...]) -> Value:
    """The same numbers in another shape: a view where axes are split, put in or left out, else stored first."""
    if value.shape == shape:
        return value
    old = [(axis, size) for axis, size in enumerate(value.shape) if size != 1]
    rest = [(axis, size) for axis, size in enumerate(shape) if size != 1]
    groups: list[tuple[int, list[tuple[int, int]]]] = []
    for axis, size in old:
        group: list[tuple[int, int]] = []
        while rest and math.prod(s for _, s in group) < size:
            group.append(rest.pop(0))
        if math.prod(s for _, s in group) != size:
            break
        groups.append((axis, group))
    else:
        if not rest:
            return viewed(value, shape, lambda index: _split(index, groups, len(value.shape)))
    lying = lowering.stored(value).strided
    assert lying is not None
    if lying.strides != contiguous(value.shape):
        lying = lowering.stored(Value(value.shape, value.kind, value.at, value.cost)).strided
        assert lying is not None
    return strided(Strided(lying.buffer, lying.offset, contiguous(shape)), shape, value.kind)


def _split(index: Index, groups: Sequence[tuple[int, list[tuple[int, int]]]], rank: int) -> Index:
    places = [Linear()] * rank
    for axis, group in groups:
        place = Linear()
        for own, size in group:
            place = place * size + index[own]
        places[axis] = place
    return tuple(places)


@lowers("expand")
def _expand(lowering: Lowering, node: Array) -> Value:
    shape = tuple(node.shape)
    value = lowering.read(node.args[0])
    value = lowering.cheap(value, 1 if value.numel == math.prod(shape) else 2)
    lead = len(shape) - len(value.shape)
    return viewed(
        value,
        shape,
        lambda index: tuple(Linear() if size == 1 else i for size, i in zip(value.shape, index[lead:], strict=True)),
    )


@lowers("permute")
def _permute(lowering: Lowering, node: Array) -> Value:
    order: tuple[int, ...] = node.params[0]
    places = [order.index(axis) for axis in range(len(order))]
    return viewed(lowering.read(node.args[0]), tuple(node.shape), lambda index: tuple(index[at] for at in places))


@lowers("flip")
def _flip(lowering: Lowering, node: Array) -> Value:
    axes: tuple[int, ...] = node.params[0]
    last = [size - 1 for size in node.shape]

    def where(index: Index) -> Index:
        return tuple(i * -1 + last[axis] if axis in axes else i for axis, i in enumerate(index))

    return viewed(lowering.read(node.args[0]), tuple(node.shape), where)


@lowers("slice")
def _slice(lowering: Lowering, node: Array) -> Value:
    axis, start, step, _ = node.params
    return viewed(lowering.read(node.args[0]), tuple(node.shape), _moved(axis, start, step))


def _moved(axis: int, start: int, step: int) -> Callable[[Index], Index]:
    def where(index: Index) -> Index:
        return (*index[:axis], index[axis] * step + start, *index[axis + 1 :])

    return where


@lowers("place")
def _place(lowering: Lowering, node: Array) -> Value:
    axis: int = node.params[0]
    start: int = node.params[1]
    step: int = node.params[2]
    source = lowering.read(node.args[0])
    stop = start + node.args[0].shape[axis]
    box = tuple((start, stop) if own == axis else (0, size) for own, size in enumerate(node.shape))
    return assembled(tuple(node.shape), Piece(source, _moved(axis, start, step), box if step == 1 else None))


@lowers("cat")
def _cat(lowering: Lowering, node: Array) -> Value:
    axis: int = node.params[0]
    pieces: list[Piece] = []
    start = 0
    for arg in node.args:
        source = lowering.read(arg)
        stop = start + source.shape[axis]
        box = tuple((start, stop) if own == axis else (0, size) for own, size in enumerate(node.shape))
        pieces.append(Piece(source, _moved(axis, start, 1), box))
        start = stop
    return assembled(tuple(node.shape), *pieces)


@lowers("diagonal")
def _diagonal(lowering: Lowering, node: Array) -> Value:
    return viewed(lowering.read(node.args[0]), tuple(node.shape), lambda index: (*index, index[-1]))


@lowers("diagonal_embed")
def _diagonal_embed(lowering: Lowering, node: Array) -> Value:
    return assembled(tuple(node.shape), Piece(lowering.read(node.args[0]), lambda index: (*index, index[-1])))
