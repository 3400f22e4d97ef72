"""Lowering of Cholesky factors, triangular solutions, inverses and determinants: calls of `matrices`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import fx

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
from qvr_core.codegen.pointwise import call
from qvr_core.inference.machine.lowering import Lowering, Unknown, lowers, strided, viewed
from qvr_core.inference.machine.reductions import reduce

MOST_ROWS = 150
"""Of a matrix; LAPACK is faster with larger ones."""


def _matrix(lowering: Lowering, argument: Any) -> Value:
    """A tensor of matrices that lies in the room."""
    value = lowering.stored(lowering.read(argument))
    if value.shape[-1] > MOST_ROWS or value.shape[-2] > MOST_ROWS:
        raise Unknown(f"matrices of {value.shape[-2]} × {value.shape[-1]}")
    return _in_room(lowering, value)


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


def _made(lowering: Lowering, lead: tuple[int, ...], each: int, name: str, arguments: Any) -> Buffer:
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


@lowers("linalg_cholesky_ex")
def _cholesky(lowering: Lowering, node: fx.Node) -> tuple[Value, Value]:
    if node.kwargs.get("upper") or node.args[1:2] == (True,):
        raise Unknown("an upper Cholesky factor")
    source = _matrix(lowering, node.args[0])
    lead, size = source.shape[:-2], source.shape[-1]
    each = size * size + 1
    buffer = _made(lowering, lead, each, "cholesky", lambda i, out: (*_address(source, i), out, _whole(size)))
    return _part(buffer, lead, each, 0, (size, size)), _part(buffer, lead, each, size * size, ())


@lowers("linalg_solve_triangular")
def _substituted(lowering: Lowering, node: fx.Node) -> Value:
    factor, right = (_matrix(lowering, argument) for argument in node.args[:2])
    upper, left = bool(node.kwargs["upper"]), bool(node.kwargs.get("left", True))
    unit = bool(node.kwargs.get("unitriangular", False))
    shape = lowering.shape(node)
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

    return _part(_made(lowering, shape[:-2], each, "substituted", arguments), shape[:-2], each, 0, shape[-2:])


def _eliminated(lowering: Lowering, source: Value) -> tuple[Value, Value, Value, Value]:
    """L and U in one matrix, the row of the source in each place, the sign of the permutation, and the failed pivot."""
    lead, size = source.shape[:-2], source.shape[-1]
    each = size * size + size + 2

    def arguments(index: Index, out: Expression) -> tuple[Expression, ...]:
        return (*_address(source, index), out, _whole(size))

    buffer = _made(lowering, lead, each, "eliminated", arguments)
    shapes = ((0, (size, size)), (size * size, (size,)), (each - 2, ()), (each - 1, ()))
    factor, rows, sign, failed = (_part(buffer, lead, each, offset, own) for offset, own in shapes)
    return factor, rows, sign, failed


def _solved(lowering: Lowering, factor: Value, rows: Value, right: Value, *, adjoint: bool) -> Value:
    """X of A X = B, or of Aᵀ X = B, from what `_eliminated` made of A."""
    size, columns = right.shape[-2:]
    lead = tuple(torch.broadcast_shapes(factor.shape[:-2], right.shape[:-2]))
    each = size * columns + size

    def arguments(index: Index, out: Expression) -> tuple[Expression, ...]:
        places = (*_address(factor, index), _address(_columns(rows), index)[0], *_address(right, index))
        return (*places, out, *map(_whole, (size, columns, int(adjoint))))

    return _part(_made(lowering, lead, each, "solved", arguments), lead, each, 0, (size, columns))


def _columns(value: Value) -> Value:
    return viewed(value, (*value.shape, 1), lambda index: index[:-1])


@lowers("linalg_inv_ex")
def _inverse(lowering: Lowering, node: fx.Node) -> tuple[Value, Value]:
    source = _matrix(lowering, node.args[0])
    factor, rows, _, failed = _eliminated(lowering, source)
    size = source.shape[-1]
    identity = lowering.constant(f"identity {size}", torch.eye(size, dtype=torch.float64))
    return _solved(lowering, factor, rows, _in_room(lowering, identity), adjoint=False), failed


@lowers("_linalg_det")
def _determinant(lowering: Lowering, node: fx.Node) -> tuple[Value, Value, Value]:
    factor, rows, sign, _ = _eliminated(lowering, _taken(lowering, node))
    product = reduce(lowering, _diagonal(factor), (len(factor.shape) - 2,), sign.shape, "*")
    value = Value(sign.shape, "real", lambda index: call("mul", sign.at(index), product.at(index)), 1)
    return lowering.stored(value), factor, rows


@lowers("_linalg_slogdet")
def _log_determinant(lowering: Lowering, node: fx.Node) -> tuple[Value, Value, Value, Value]:
    factor, rows, sign, _ = _eliminated(lowering, _taken(lowering, node))
    diagonal, axes = _diagonal(factor), (len(factor.shape) - 2,)
    signs = Value(diagonal.shape, "real", lambda index: Call("sign", (diagonal.at(index),)), 1)
    logs = Value(diagonal.shape, "real", lambda i: Call("log", (Call("abs", (diagonal.at(i),)),)), 2)
    product = reduce(lowering, signs, axes, sign.shape, "*")
    value = Value(sign.shape, "real", lambda index: call("mul", sign.at(index), product.at(index)), 1)
    return lowering.stored(value), reduce(lowering, logs, axes, sign.shape), factor, rows


def _taken(lowering: Lowering, node: fx.Node) -> Value:
    """The matrix that torch eliminates: the transpose where the source lies row by row."""
    source = _matrix(lowering, node.args[0])
    given: Any = node.args[0]
    rank = len(source.shape)
    if not lowering.seen[given].is_contiguous():
        return source
    return viewed(source, source.shape, lambda index: (*index[: rank - 2], index[-1], index[-2]))


def _diagonal(value: Value) -> Value:
    return viewed(value, value.shape[:-1], lambda index: (*index, index[-1]))


@lowers("linalg_lu_solve")
def _lu_solve(lowering: Lowering, node: fx.Node) -> Value:
    if not node.kwargs.get("left", True):
        raise Unknown("a solution from the right")
    factor, right = _matrix(lowering, node.args[0]), _matrix(lowering, node.args[2])
    rows = lowering.read(node.args[1])
    return _solved(lowering, factor, rows, right, adjoint=bool(node.kwargs.get("adjoint", False)))
