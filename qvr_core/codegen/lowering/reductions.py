"""Rules for reductions, running sums and matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qvr_core.arrays.graph import Array
from qvr_core.codegen.loops import Call, Expression, Index, Linear, Literal, Piece, Value
from qvr_core.codegen.lowering.elementwise import broadcast
from qvr_core.codegen.lowering.lowering import Lowering, NoLoops, lowers, viewed
from qvr_core.codegen.scalar_operations import call

MOST_PRODUCTS = 2_000_000
"""Multiplications of one matrix product; larger ones are better done by a library."""


def reduce(
    lowering: Lowering, value: Value, axes: Sequence[int], shape: tuple[int, ...], joined_by: str = "+"
) -> Value:
    """A value joined along axes, of `shape`, which may keep them as ones."""
    if joined_by == "+" and value.pieces and (summed := _summed_pieces(value, axes)) is not None:
        return summed if summed.shape == shape else _with_ones(lowering.stored(summed), shape)
    value = lowering.stored(value) if value.pieces else value
    rest = [axis for axis in range(len(value.shape)) if axis not in axes]

    def at(kept: Index, summed: Index) -> Expression:
        places = dict(zip(rest, kept, strict=True)) | dict(zip(axes, summed, strict=True))
        return value.at(tuple(places[axis] for axis in range(len(value.shape))))

    kept = [value.shape[axis] for axis in rest]
    made = lowering.reduced(kept, [value.shape[axis] for axis in axes], at, joined_by)
    return _with_ones(made, shape)


def _with_ones(value: Value, shape: tuple[int, ...]) -> Value:
    """With axes of one element put in."""
    if value.shape == shape:
        return value
    rest = [axis for axis, size in enumerate(shape) if size != 1]
    own = [axis for axis, size in enumerate(value.shape) if size != 1]

    def where(index: Index) -> Index:
        places = dict(zip(own, (index[axis] for axis in rest), strict=True))
        return tuple(places.get(axis, Linear()) for axis in range(len(value.shape)))

    return viewed(value, shape, where)


def _summed_pieces(value: Value, axes: Sequence[int]) -> Value | None:
    """Pieces added into a sum are added into what is left of their places."""
    rest = [axis for axis in range(len(value.shape)) if axis not in axes]
    shape = tuple(value.shape[axis] for axis in rest)
    if math.prod(shape) == value.numel:
        return None
    pieces = tuple(
        Piece(piece.source, lambda index, where=piece.where: tuple(where(index)[axis] for axis in rest))
        for piece in value.pieces
    )
    return Value(shape, "real", value.at, 1, None, pieces)


_JOINED = {"sum": "+", "prod": "*", "amax": "max", "amin": "min"}


@lowers(*_JOINED)
def _reduction(lowering: Lowering, node: Array) -> Value:
    value = lowering.raw(node.args[0])
    return reduce(lowering, value, node.params[0], tuple(node.shape), _JOINED[node.op])


def _reduced_shape(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape))


@lowers("logsumexp")
def _logsumexp(lowering: Lowering, node: Array) -> Value:
    value = lowering.cheap(lowering.read(node.args[0]), 2)
    (axes,), shape = node.params, tuple(node.shape)
    kept = _reduced_shape(value.shape, axes)
    largest = reduce(lowering, value, axes, kept, "max")
    # a row of −∞ alone: −∞ − (−∞) would be NaN
    finite = lowering.stored(Value(kept, "real", lambda index: _finite(largest.at(index)), 1))
    reader = broadcast(finite, value.shape)
    shifted = Value(
        value.shape, "real", lambda index: Call("exp", (call("sub", value.at(index), reader(index)),)), value.cost + 2
    )
    total = reduce(lowering, shifted, axes, shape)
    shift = viewed_without(finite, axes, shape)
    return Value(shape, "real", lambda index: call("add", Call("log", (total.at(index),)), shift.at(index)), 2)


def viewed_without(value: Value, axes: Sequence[int], shape: tuple[int, ...]) -> Value:
    """Without axes of one element."""

    def where(index: Index) -> Index:
        rest = iter(index)
        return tuple(Linear() if axis in axes else next(rest) for axis in range(len(value.shape)))

    return viewed(value, shape, where)


def _finite(x: Expression) -> Expression:
    return Call("where", (Call("eq", (Call("abs", (x,)), Literal(math.inf))), Literal(0.0), x))


@lowers("log_softmax")
def _log_softmax(lowering: Lowering, node: Array) -> Value:
    value = lowering.cheap(lowering.read(node.args[0]), 2)
    axes = node.params if value.shape else ()
    kept = _reduced_shape(value.shape, axes)
    largest = broadcast(reduce(lowering, value, axes, kept, "max"), value.shape)
    shifted = Value(value.shape, "real", lambda index: call("sub", value.at(index), largest(index)), 1)
    exp = Value(value.shape, "real", lambda index: Call("exp", (shifted.at(index),)), 2)
    total = reduce(lowering, exp, axes, kept)
    log = lowering.stored(Value(kept, "real", lambda index: Call("log", (total.at(index),)), 1))
    reader = broadcast(log, value.shape)
    return Value(value.shape, "real", lambda index: call("sub", shifted.at(index), reader(index)), 2)


@lowers("cumsum", "cumprod")
def _running(lowering: Lowering, node: Array) -> Value:
    value = lowering.read(node.args[0])
    return lowering.scanned(value, node.params[0], "*" if node.op == "cumprod" else "+")


@lowers("matmul")
def _matmul(lowering: Lowering, node: Array) -> Value:
    shape = tuple(node.shape)
    left, right = (lowering.read(arg) for arg in node.args)
    count, lead = left.shape[-1], len(shape) - 2
    if math.prod(shape) * count > MOST_PRODUCTS:
        raise NoLoops("a large matrix product")
    left, right = lowering.cheap(left, shape[-1]), lowering.cheap(right, shape[-2])

    def at(kept: Index, summed: Index) -> Expression:
        batch, (row, column) = kept[:lead], kept[lead:]
        return call("mul", left.at((*batch, row, *summed)), right.at((*batch, *summed, column)))

    return lowering.reduced(shape, [count], at)
