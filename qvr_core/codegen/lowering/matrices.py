"""Rules for Cholesky factors, triangular solutions, inverses and determinants: calls of routines."""

from __future__ import annotations

import math
from collections.abc import Callable

from qvr_core.arrays.graph import Array
from qvr_core.codegen.loops import (
    Buffer,
    Call,
    Expression,
    Index,
    Linear,
    Literal,
    Load,
    Statement,
    Strided,
    Value,
    contiguous,
    counters,
)
from qvr_core.codegen.lowering.lowering import Lowering, NoLoops, lowers, strided, viewed
from qvr_core.codegen.lowering.reductions import reduce
from qvr_core.codegen.scalar_operations import call

MOST_ROWS = 150
"""Of a matrix; LAPACK is faster with larger ones."""
Arguments = Callable[[Index, Expression], tuple[Expression, ...]]


def _matrix(lowering: Lowering, node: Array) -> Value:
    """Matrices that lie in the room."""
    if max(node.shape[-2:]) > MOST_ROWS:
        raise NoLoops(f"matrices of {node.shape[-2]} × {node.shape[-1]}")
    return _in_room(lowering, lowering.stored(lowering.read(node)))


def _in_room(lowering: Lowering, value: Value) -> Value:
    if value.strided is not None and value.strided.buffer.kind == "w":
        return value
    return lowering.stored(Value(value.shape, value.kind, value.at), Buffer("w", value.numel))


def _address(value: Value, lead: Index) -> tuple[Expression, Literal, Literal]:
    """Where the matrix at `lead` begins, and the strides of its rows and columns."""
    lying = value.strided
    assert lying is not None
    own = lead[len(lead) - (len(value.shape) - 2) :]
    index = tuple(Linear() if size == 1 else i for size, i in zip(value.shape[:-2], own, strict=True))
    row, column = lying.strides[-2:]
    return Load(lying.buffer, lying.place((*index, Linear(), Linear()))), _whole(row), _whole(column)


def _whole(value: int) -> Literal:
    return Literal(float(value))


def _filled(lowering: Lowering, lead: tuple[int, ...], each: int, name: str, arguments: Arguments) -> Buffer:
    """Room of `each` numbers at every place of `lead`, filled by a routine; arguments(index, address of the room)."""
    buffer = Buffer("w", max(math.prod(lead), 1) * each)
    loops, index = counters("i", lead)
    place = Strided(buffer, 0, tuple(step * each for step in contiguous(lead))).place(index)
    lowering.plan.put(loops, Statement("routine", buffer, place, Call(name, arguments(index, Load(buffer, place)))))
    return buffer


def _part(buffer: Buffer, lead: tuple[int, ...], each: int, offset: int, own: tuple[int, ...]) -> Value:
    """Numbers at `offset` of every place, of shape `own`."""
    strides = (*(step * each for step in contiguous(lead)), *contiguous(own))
    return strided(Strided(buffer, offset, strides), (*lead, *own), "real")


def _once(lowering: Lowering, name: str, node: Array, make: Callable[[], Buffer]) -> Buffer:
    """What a routine makes of a node, made once for all who read parts of it."""
    key = (name, node.number)
    if key not in lowering.buffers:
        lowering.buffers[key] = make()
    return lowering.buffers[key]


@lowers("cholesky", "cholesky_failed")
def _cholesky(lowering: Lowering, node: Array) -> Value:
    (source,) = node.args
    lead, size = tuple(source.shape[:-2]), source.shape[-1]
    each = size * size + 1

    def make() -> Buffer:
        value = _matrix(lowering, source)
        return _filled(lowering, lead, each, "cholesky", lambda i, out: (*_address(value, i), out, _whole(size)))

    buffer = _once(lowering, "cholesky", source, make)
    if node.op == "cholesky":
        return _part(buffer, lead, each, 0, (size, size))
    return _part(buffer, lead, each, size * size, ())


@lowers("cholesky_pulled")
def _cholesky_pulled(lowering: Lowering, node: Array) -> Value:
    factor, d = (_matrix(lowering, arg) for arg in node.args)
    lead, size = tuple(node.shape[:-2]), node.shape[-1]
    # the factor is that of a routine, and so lies row by row
    assert factor.strided is not None and factor.strided.strides[-2:] == (size, 1)

    def arguments(index: Index, out: Expression) -> tuple[Expression, ...]:
        return (_address(factor, index)[0], *_address(d, index), out, _whole(size))

    buffer = _filled(lowering, lead, size * size, "cholesky_pulled", arguments)
    return _part(buffer, lead, size * size, 0, (size, size))


@lowers("solve_triangular")
def _solve_triangular(lowering: Lowering, node: Array) -> Value:
    factor, right = (_matrix(lowering, arg) for arg in node.args)
    upper, left, unit = node.params
    shape = tuple(node.shape)
    each = shape[-1] * shape[-2]
    size, columns = shape[-2:] if left else shape[:-3:-1]
    steps = (shape[-1], 1) if left else (1, shape[-1])
    # X A = B is Aᵀ Xᵀ = Bᵀ
    below = upper if left else not upper

    def arguments(index: Index, out: Expression) -> tuple[Expression, ...]:
        one, two = _address(factor, index), _address(right, index)
        if not left:
            one, two = (one[0], *one[:0:-1]), (two[0], *two[:0:-1])
        rest = (*steps, size, columns, int(below), int(unit))
        return (*one, *two, out, *map(_whole, rest))

    buffer = _filled(lowering, shape[:-2], each, "substituted", arguments)
    return _part(buffer, shape[:-2], each, 0, shape[-2:])


def _eliminated(lowering: Lowering, source: Array) -> tuple[Value, Value, Value]:
    """L and U in one matrix, the row of the source in each place, and the sign of the permutation."""
    lead, size = tuple(source.shape[:-2]), source.shape[-1]
    each = size * size + size + 2

    def make() -> Buffer:
        value = _matrix(lowering, source)
        return _filled(lowering, lead, each, "eliminated", lambda i, out: (*_address(value, i), out, _whole(size)))

    buffer = _once(lowering, "eliminated", source, make)
    shapes = ((0, (size, size)), (size * size, (size,)), (each - 2, ()))
    factor, rows, sign = (_part(buffer, lead, each, offset, own) for offset, own in shapes)
    return factor, rows, sign


@lowers("inverse")
def _inverse(lowering: Lowering, node: Array) -> Value:
    factor, rows, _ = _eliminated(lowering, node.args[0])
    lead, size = tuple(node.shape[:-2]), node.shape[-1]
    each = size * size + size
    identity = _matrix(lowering, node.args[1])
    columns = viewed(rows, (*rows.shape, 1), lambda index: index[:-1])

    def arguments(index: Index, out: Expression) -> tuple[Expression, ...]:
        places = (*_address(factor, index), _address(columns, index)[0], *_address(identity, index))
        return (*places, out, *map(_whole, (size, size, 0)))

    buffer = _filled(lowering, lead, each, "solved", arguments)
    return _part(buffer, lead, each, 0, (size, size))


@lowers("det", "slogdet")
def _determinant(lowering: Lowering, node: Array) -> Value:
    factor, _, sign = _eliminated(lowering, node.args[0])
    diagonal = viewed(factor, factor.shape[:-1], lambda index: (*index, index[-1]))
    axes, shape = (len(diagonal.shape) - 1,), tuple(node.shape)
    if node.op == "det":
        product = reduce(lowering, diagonal, axes, shape, "*")
        return Value(shape, "real", lambda index: call("mul", sign.at(index), product.at(index)), 1)
    logs = Value(diagonal.shape, "real", lambda i: Call("log", (Call("abs", (diagonal.at(i),)),)), 2)
    return reduce(lowering, logs, axes, shape)
