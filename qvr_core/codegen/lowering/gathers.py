"""Rules for gathers by constant indices, and for what adds into places that they name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qvr_core.arrays.graph import Array
from qvr_core.codegen.loops import Index, Linear, Literal, Load, Piece, Value
from qvr_core.codegen.lowering.lowering import Lowering, assembled, gathered, lowers

Where = Callable[[Index], Index]


def _lookup(lowering: Lowering, index: Array) -> Callable[[Index], Linear]:
    """The stored index at a place of the index's own shape."""
    value = lowering.read(index)

    def at(place: Index) -> Linear:
        number = value.at(place)
        if isinstance(number, Literal):
            return Linear(int(number.value))
        assert isinstance(number, Load)
        return Linear(0, ((number, 1),))

    return at


def _by_indices(lowering: Lowering, first: int, indices: Sequence[Array]) -> Where:
    lookups = [_lookup(lowering, index) for index in indices]
    rank = indices[0].rank

    def where(index: Index) -> Index:
        own = index[first : first + rank]
        return (*index[:first], *(lookup(own) for lookup in lookups), *index[first + rank :])

    return where


def _along(lowering: Lowering, axis: int, index: Array) -> Where:
    lookup = _lookup(lowering, index)
    return lambda place: (*place[:axis], lookup(place), *place[axis + 1 :])


@lowers("index")
def _index(lowering: Lowering, node: Array) -> Value:
    value = lowering.cheap(lowering.read(node.args[0]), 2)
    return gathered(value, tuple(node.shape), _by_indices(lowering, node.params[0], node.args[1:]))


@lowers("take_along")
def _take_along(lowering: Lowering, node: Array) -> Value:
    value = lowering.cheap(lowering.read(node.args[0]), 2)
    return gathered(value, tuple(node.shape), _along(lowering, node.params[0], node.args[1]))


def _with_base(lowering: Lowering, base: Array, piece: Piece) -> Value:
    """A piece added to an array, which is a piece itself unless it is zero."""
    value = lowering.read(base)
    if value.at((Linear(),) * len(value.shape)) == Literal(0.0):
        return assembled(value.shape, piece)
    whole = Piece(value, lambda index: index, tuple((0, size) for size in value.shape))
    return assembled(value.shape, whole, piece)


@lowers("index_add")
def _index_add(lowering: Lowering, node: Array) -> Value:
    base, source, *indices = node.args
    where = _by_indices(lowering, node.params[0], indices)
    return _with_base(lowering, base, Piece(lowering.read(source), where))


@lowers("add_along")
def _add_along(lowering: Lowering, node: Array) -> Value:
    base, source, index = node.args
    return _with_base(lowering, base, Piece(lowering.read(source), _along(lowering, node.params[0], index)))
