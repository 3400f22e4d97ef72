"""Lowering of views: the same numbers at other indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, fx

from qvr_core.codegen.loops import Call, Index, Linear, Literal, Strided, Value, contiguous
from qvr_core.inference.machine.elementwise import broadcast
from qvr_core.inference.machine.lowering import Lowering, Unknown, lowers, strided, viewed


def listed(argument: Any) -> Any:
    """A list of sizes or axes."""
    return argument


def whole(argument: Any) -> int:
    if not isinstance(argument, int):
        raise Unknown(f"a size that is {argument!r}")
    return argument


@lowers("detach", "alias", "clone", "contiguous", "lift_fresh_copy", "lift_fresh")
def _same(lowering: Lowering, node: fx.Node) -> Value:
    return lowering.raw(node.args[0])


@lowers("view", "reshape", "_unsafe_view", "_reshape_copy", "squeeze", "unsqueeze")
def _reshape(lowering: Lowering, node: fx.Node) -> Value:
    return reshaped(lowering, lowering.read(node.args[0]), lowering.shape(node))


def reshaped(lowering: Lowering, value: Value, shape: tuple[int, ...]) -> Value:
    """The same numbers in another shape: a view where axes are split, put in or left out, else stored first."""
    if value.shape == shape:
        return value
    old = [(axis, size) for axis, size in enumerate(value.shape) if size != 1]
    new = [(axis, size) for axis, size in enumerate(shape) if size != 1]
    groups: list[tuple[int, list[tuple[int, int]]]] = []
    rest = list(new)
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
        found = Linear()
        for own, size in group:
            found = found * size + index[own]
        places[axis] = found
    return tuple(places)


@lowers("expand")
def _expand(lowering: Lowering, node: fx.Node) -> Value:
    value, shape = lowering.read(node.args[0]), lowering.shape(node)
    value = lowering.cheap(value, 1 if value.numel == math.prod(shape) else 2)
    lead = len(shape) - len(value.shape)
    return viewed(
        value,
        shape,
        lambda index: tuple(Linear() if size == 1 else i for size, i in zip(value.shape, index[lead:], strict=True)),
    )


@lowers("permute")
def _permute(lowering: Lowering, node: fx.Node) -> Value:
    value = lowering.read(node.args[0])
    order = [whole(axis) % len(value.shape) for axis in listed(node.args[1])]
    return _permuted(value, order)


def _permuted(value: Value, order: Sequence[int]) -> Value:
    shape = tuple(value.shape[axis] for axis in order)
    return viewed(value, shape, lambda index: tuple(index[order.index(axis)] for axis in range(len(shape))))


@lowers("transpose")
def _transpose(lowering: Lowering, node: fx.Node) -> Value:
    value = lowering.read(node.args[0])
    order = list(range(len(value.shape)))
    one, two = (whole(axis) % len(order) for axis in node.args[1:3])
    order[one], order[two] = two, one
    return _permuted(value, order)


@lowers("t")
def _t(lowering: Lowering, node: fx.Node) -> Value:
    value = lowering.read(node.args[0])
    return _permuted(value, list(reversed(range(len(value.shape)))))


@lowers("flip")
def _flip(lowering: Lowering, node: fx.Node) -> Value:
    value = lowering.read(node.args[0])
    axes = {whole(axis) % len(value.shape) for axis in listed(node.args[1])}
    return viewed(
        value,
        value.shape,
        lambda index: tuple(i * -1 + (value.shape[axis] - 1) if axis in axes else i for axis, i in enumerate(index)),
    )


@lowers("slice")
def _slice(lowering: Lowering, node: fx.Node) -> Value:
    value = lowering.read(node.args[0])
    axis, start, _, step = bounds(node, value.shape, 1)
    shape = lowering.shape(node)
    return viewed(value, shape, lambda index: (*index[:axis], index[axis] * step + start, *index[axis + 1 :]))


def bounds(node: fx.Node, shape: Sequence[int], first: int) -> tuple[int, int, int, int]:
    """axis, start, stop and step of a slice whose arguments begin at `first`."""
    given = [*node.args[first:], *([None] * 4)]
    axis = whole(given[0] or 0) % len(shape)
    size = shape[axis]
    start, stop, step = slice(given[1], given[2], given[3]).indices(size)  # pyright: ignore[reportArgumentType]
    return axis, start, max(stop, start), step


@lowers("select")
def _select(lowering: Lowering, node: fx.Node) -> Value:
    value = lowering.read(node.args[0])
    axis = whole(node.args[1]) % len(value.shape)
    place = Linear(whole(node.args[2]) % value.shape[axis])
    return viewed(value, lowering.shape(node), lambda index: (*index[:axis], place, *index[axis:]))


@lowers("unbind")
def _unbind(lowering: Lowering, node: fx.Node) -> tuple[Value, ...]:
    value = lowering.read(node.args[0])
    axis = whole(node.args[1] if len(node.args) > 1 else 0) % len(value.shape)
    value = lowering.cheap(value, 2)
    shape = value.shape[:axis] + value.shape[axis + 1 :]
    return tuple(
        viewed(value, shape, lambda index, place=place: (*index[:axis], Linear(place), *index[axis:]))
        for place in range(value.shape[axis])
    )


@lowers("split", "split_with_sizes")
def _splits(lowering: Lowering, node: fx.Node) -> tuple[Value, ...]:
    value = lowering.cheap(lowering.read(node.args[0]), 2)
    axis = whole(node.args[2] if len(node.args) > 2 else 0) % len(value.shape)
    made: list[Value] = []
    start = 0
    for part in lowering.seen[node]:
        made.append(
            viewed(
                value,
                tuple(part.shape),
                lambda index, start=start: (*index[:axis], index[axis] + start, *index[axis + 1 :]),
            )
        )
        start += part.shape[axis]
    return tuple(made)


@lowers("diagonal")
def _diagonal(lowering: Lowering, node: fx.Node) -> Value:
    value, shape = lowering.read(node.args[0]), lowering.shape(node)
    where = on_diagonal(node, 1, len(value.shape))
    return viewed(value, shape, where)


def on_diagonal(node: fx.Node, first: int, rank: int) -> Any:
    offset, one, two = (whole(a) for a in (*node.args[first:], *(0, 0, 1)[len(node.args) - first :]))
    one, two = one % rank, two % rank
    others = [axis for axis in range(rank) if axis not in (one, two)]

    def where(index: Index) -> Index:
        places = dict(zip(others, index[:-1], strict=True))
        places[one] = index[-1] + max(-offset, 0)
        places[two] = index[-1] + max(offset, 0)
        return tuple(places[axis] for axis in range(rank))

    return where


@lowers("tril", "triu")
def _triangle(lowering: Lowering, node: fx.Node) -> Value:
    value = lowering.read(node.args[0])
    offset = whole(node.args[1]) if len(node.args) > 1 else 0
    ones = torch.ones(value.shape[-2:], dtype=torch.bool)
    mask = ones.tril(offset) if "tril" in str(node.target) else ones.triu(offset)
    return masked(lowering, value, mask)


def masked(lowering: Lowering, value: Value, mask: Tensor) -> Value:
    """The value where a constant mask is true, else 0."""
    kept = broadcast(lowering.constant(f"mask {len(lowering.wholes)}", mask), value.shape)
    return Value(
        value.shape,
        value.kind,
        lambda index: Call("where", (kept(index), value.at(index), Literal(0.0))),
        value.cost + 1,
    )
