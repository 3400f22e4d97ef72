"""Lowering of reductions, running sums and matrix products."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import fx

from qvr_core.codegen.loops import Call, Expression, Index, Linear, Literal, Value
from qvr_core.codegen.pointwise import call
from qvr_core.inference.machine.elementwise import broadcast
from qvr_core.inference.machine.lowering import MOST_PRODUCTS, Lowering, Unknown, lowers, viewed


def _axes(node: fx.Node, rank: int, place: int = 1) -> tuple[int, ...]:
    given = node.args[place] if len(node.args) > place else None
    if given is None or given == []:
        return tuple(range(rank))
    axes = given if isinstance(given, list | tuple) else [given]
    return tuple(sorted(int(axis) % rank for axis in axes)) if rank else ()  # pyright: ignore[reportArgumentType]


def reduce(
    lowering: Lowering, value: Value, axes: tuple[int, ...], shape: tuple[int, ...], joined_by: str = "+"
) -> Value:
    """A value joined along axes, as a tensor of `shape` (which may keep them as ones)."""
    if joined_by == "+" and value.pieces and (summed := _summed_pieces(value, axes)) is not None:
        return summed if summed.shape == shape else _reshaped(lowering.stored(summed), shape)
    value = lowering.stored(value) if value.pieces else value
    rest = [axis for axis in range(len(value.shape)) if axis not in axes]

    def at(kept: Index, summed: Index) -> Expression:
        places = dict(zip(rest, kept, strict=True)) | dict(zip(axes, summed, strict=True))
        return value.at(tuple(places[axis] for axis in range(len(value.shape))))

    kept = [value.shape[axis] for axis in rest]
    made = lowering.reduced(kept, [value.shape[axis] for axis in axes], at, joined_by)
    return _reshaped(made, shape)


def _reshaped(value: Value, shape: tuple[int, ...]) -> Value:
    """With axes of one element put in."""
    if value.shape == shape:
        return value
    rest = [axis for axis, size in enumerate(shape) if size != 1]
    own = [axis for axis, size in enumerate(value.shape) if size != 1]

    def where(index: Index) -> Index:
        places = dict(zip(own, (index[axis] for axis in rest), strict=True))
        return tuple(places.get(axis, Linear()) for axis in range(len(value.shape)))

    return viewed(value, shape, where)


def _summed_pieces(value: Value, axes: tuple[int, ...]) -> Value | None:
    """Pieces added into a sum are added into what is left of their places."""
    rest = [axis for axis in range(len(value.shape)) if axis not in axes]
    shape = tuple(value.shape[axis] for axis in rest)
    if math.prod(shape) == value.numel:
        return None
    pieces = tuple(
        type(piece)(piece.source, lambda index, where=piece.where: tuple(where(index)[axis] for axis in rest))
        for piece in value.pieces
    )
    return Value(shape, "real", value.at, 1, None, pieces)


@lowers("sum")
def _sum(lowering: Lowering, node: fx.Node) -> Value:
    value = lowering.raw(node.args[0])
    made = _as_number(value)
    # how many are true is exact as a real number
    if lowering.seen[node].dtype != torch.float64 and value.kind != "truth":
        raise Unknown("a sum of whole numbers")
    return reduce(lowering, made, _axes(node, len(value.shape)), lowering.shape(node))


def _as_number(value: Value) -> Value:
    if value.kind != "truth":
        return value
    return Value(value.shape, "real", lambda index: Call("number", (value.at(index),)), value.cost + 1)


@lowers("mean")
def _mean(lowering: Lowering, node: fx.Node) -> Value:
    value = lowering.raw(node.args[0])
    axes = _axes(node, len(value.shape))
    total = reduce(lowering, _as_number(value), axes, lowering.shape(node))
    total = lowering.stored(total)
    count = Literal(float(math.prod(value.shape[axis] for axis in axes)))
    return Value(total.shape, "real", lambda index: Call("div", (total.at(index), count)), 1)


@lowers("amax", "amin")
def _extreme(lowering: Lowering, node: fx.Node) -> Value:
    value = lowering.raw(node.args[0])
    word = "max" if "amax" in str(node.target) else "min"
    return reduce(lowering, value, _axes(node, len(value.shape)), lowering.shape(node), word)


@lowers("all", "any")
def _truths(lowering: Lowering, node: fx.Node) -> Value:
    value = lowering.read(node.args[0])
    word = "min" if str(node.target).startswith("aten.all") else "max"
    made = reduce(lowering, _as_number(value), _axes(node, len(value.shape)), lowering.shape(node), word)
    return Value(made.shape, "truth", lambda index: Call("truth", (made.at(index),)), 1)


@lowers("logsumexp")
def _logsumexp(lowering: Lowering, node: fx.Node) -> Value:
    value = lowering.cheap(lowering.read(node.args[0]), 2)
    shape, rank = lowering.shape(node), len(value.shape)
    axes = _axes(node, rank)
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(value.shape))
    largest = reduce(lowering, value, axes, kept, "max")
    # a row of −∞ alone: −∞ − (−∞) would be NaN
    finite = lowering.stored(Value(kept, "real", lambda index: _finite(largest.at(index)), 1))
    reader = broadcast(finite, value.shape)
    shifted = Value(
        value.shape, "real", lambda index: Call("exp", (call("sub", value.at(index), reader(index)),)), value.cost + 2
    )
    total = reduce(lowering, shifted, axes, shape)
    shift = _reshaped(finite, shape)
    return Value(shape, "real", lambda index: call("add", Call("log", (total.at(index),)), shift.at(index)), 2)


def _finite(x: Expression) -> Expression:
    return Call("where", (Call("eq", (Call("abs", (x,)), Literal(math.inf))), Literal(0.0), x))


@lowers("_log_softmax")
def _log_softmax(lowering: Lowering, node: fx.Node) -> Value:
    value = lowering.cheap(lowering.read(node.args[0]), 2)
    axis = int(node.args[1]) % max(len(value.shape), 1)  # pyright: ignore[reportArgumentType]
    kept = tuple(1 if place == axis else size for place, size in enumerate(value.shape))
    largest = broadcast(reduce(lowering, value, (axis,), kept, "max"), value.shape)
    shifted = Value(value.shape, "real", lambda index: call("sub", value.at(index), largest(index)), 1)
    exp = Value(value.shape, "real", lambda index: Call("exp", (shifted.at(index),)), 2)
    total = reduce(lowering, exp, (axis,), kept)
    log = lowering.stored(Value(kept, "real", lambda index: Call("log", (total.at(index),)), 1))
    reader = broadcast(log, value.shape)
    return Value(value.shape, "real", lambda index: call("sub", shifted.at(index), reader(index)), 2)


@lowers("_log_softmax_backward_data")
def _log_softmax_backward(lowering: Lowering, node: fx.Node) -> Value:
    gradient = lowering.cheap(lowering.read(node.args[0]), 2)
    output = lowering.cheap(lowering.read(node.args[1]), 2)
    axis = int(node.args[2]) % max(len(output.shape), 1)  # pyright: ignore[reportArgumentType]
    kept = tuple(1 if place == axis else size for place, size in enumerate(output.shape))
    total = broadcast(reduce(lowering, gradient, (axis,), kept), output.shape)
    return Value(
        output.shape,
        "real",
        lambda i: call("sub", gradient.at(i), call("mul", Call("exp", (output.at(i),)), total(i))),
        3,
    )


@lowers("_softmax")
def _softmax(lowering: Lowering, node: fx.Node) -> Value:
    value = lowering.cheap(lowering.read(node.args[0]), 2)
    axis = int(node.args[1]) % max(len(value.shape), 1)  # pyright: ignore[reportArgumentType]
    kept = tuple(1 if place == axis else size for place, size in enumerate(value.shape))
    largest = broadcast(reduce(lowering, value, (axis,), kept, "max"), value.shape)
    exp = lowering.stored(Value(value.shape, "real", lambda i: Call("exp", (call("sub", value.at(i), largest(i)),)), 2))
    total = broadcast(reduce(lowering, exp, (axis,), kept), value.shape)
    return Value(value.shape, "real", lambda i: call("div", exp.at(i), total(i)), 1)


@lowers("_softmax_backward_data")
def _softmax_backward(lowering: Lowering, node: fx.Node) -> Value:
    gradient = lowering.cheap(lowering.read(node.args[0]), 2)
    output = lowering.cheap(lowering.read(node.args[1]), 2)
    axis = int(node.args[2]) % max(len(output.shape), 1)  # pyright: ignore[reportArgumentType]
    kept = tuple(1 if place == axis else size for place, size in enumerate(output.shape))
    product = Value(output.shape, "real", lambda i: call("mul", gradient.at(i), output.at(i)), 1)
    total = broadcast(reduce(lowering, product, (axis,), kept), output.shape)
    return Value(output.shape, "real", lambda i: call("mul", output.at(i), call("sub", gradient.at(i), total(i))), 2)


@lowers("prod")
def _prod(lowering: Lowering, node: fx.Node) -> Value:
    value = lowering.read(node.args[0])
    if lowering.seen[node].dtype != torch.float64:
        raise Unknown("a product of whole numbers")
    return reduce(lowering, value, _axes(node, len(value.shape)), lowering.shape(node), "*")


@lowers("var", "std")
def _spread(lowering: Lowering, node: fx.Node) -> Value:
    """Squares about the mean, by `correction` fewer than there are numbers."""
    value = lowering.cheap(lowering.read(node.args[0]), 2)
    axes, shape = _axes(node, len(value.shape)), lowering.shape(node)
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(value.shape))
    count = math.prod(value.shape[axis] for axis in axes)
    less: Any = node.kwargs.get("correction", 1)
    total = lowering.stored(reduce(lowering, value, axes, kept))
    mean = Value(kept, "real", lambda index: call("div", total.at(index), Literal(float(count))), 1)
    centre = broadcast(lowering.stored(mean), value.shape)
    squares = Value(
        value.shape, "real", lambda i: Call("square", (call("sub", value.at(i), centre(i)),)), value.cost + 2
    )
    summed = lowering.stored(reduce(lowering, squares, axes, shape))
    divisor = Literal(float(count) - float(1 if less is None else less))
    root = "std" in str(node.target)

    def at(index: Index) -> Expression:
        variance = call("div", summed.at(index), divisor)
        return Call("sqrt", (variance,)) if root else variance

    return Value(shape, "real", at, 2)


@lowers("linalg_vector_norm")
def _norm(lowering: Lowering, node: fx.Node) -> Value:
    if tuple(node.args[1:2]) not in ((), (2,), (2.0,)):
        raise Unknown("a norm other than the Euclidean one")
    value = lowering.cheap(lowering.read(node.args[0]), 2)
    squares = Value(value.shape, "real", lambda index: Call("square", (value.at(index),)), value.cost + 1)
    total = reduce(lowering, squares, _axes(node, len(value.shape), 2), lowering.shape(node))
    return Value(total.shape, "real", lambda index: Call("sqrt", (total.at(index),)), 1)


@lowers("cumsum", "cumprod")
def _running(lowering: Lowering, node: fx.Node) -> Value:
    value = lowering.read(node.args[0])
    if not value.shape or lowering.seen[node].dtype != torch.float64:
        raise Unknown("a running sum of whole numbers")
    (axis,) = _axes(node, len(value.shape))
    return lowering.scanned(value, axis, "*" if "cumprod" in str(node.target) else "+")


@lowers("bmm", "mm", "mv", "dot")
def _product(lowering: Lowering, node: fx.Node) -> Value:
    left, right = (lowering.read(argument) for argument in node.args)
    shape = lowering.shape(node)
    count = left.shape[-1]
    if math.prod(shape) * count > MOST_PRODUCTS:
        raise Unknown("a large matrix product")
    rows = left.shape[-2] if len(left.shape) > 1 else 1
    columns = right.shape[-1] if len(right.shape) > 1 else 1
    left, right = lowering.cheap(left, columns), lowering.cheap(right, rows)
    lead = shape[:-2] if len(left.shape) == 3 else ()

    def at(kept: Index, summed: Index) -> Expression:
        batch = kept[: len(lead)]
        own = list(kept[len(lead) :])
        one = (*batch, own.pop(0), *summed) if len(left.shape) > 1 else summed
        two = (*batch, *summed, own.pop(0)) if len(right.shape) > 1 else (*batch, *summed)
        return call("mul", left.at(one), right.at(two))

    return lowering.reduced(shape, [count], at)


@lowers("addmm")
def _addmm(lowering: Lowering, node: fx.Node) -> Value:
    if node.kwargs:
        raise Unknown("addmm with a factor")
    bias, left, right = (lowering.read(argument) for argument in node.args)
    left, right = lowering.cheap(left, 2), lowering.cheap(right, 2)
    shape = lowering.shape(node)
    if math.prod(shape) * left.shape[-1] > MOST_PRODUCTS:
        raise Unknown("a large matrix product")
    made = lowering.reduced(
        shape, [left.shape[-1]], lambda i, k: call("mul", left.at((i[0], k[0])), right.at((k[0], i[1])))
    )
    start = broadcast(lowering.cheap(bias, 2), shape)
    return Value(shape, "real", lambda index: call("add", made.at(index), start(index)), 1)
