"""Typed arithmetic as closures: an expression is compiled once and evaluated on each frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Protocol

from qvr_core.arrays.engine import Tensor, arrays, broadcasting
from qvr_core.runtime.families.soundness import asked
from qvr_core.runtime.programs import indexed
from qvr_core.runtime.programs.chains import equations
from qvr_core.runtime.programs.declared.shared_values import Shared, places
from qvr_core.runtime.programs.deduction import ComposedDeduction
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.functions import function
from qvr_core.runtime.values.arrow import ArrowModule, is_product
from qvr_core.runtime.values.cells import Cell, align, as_argument, as_one
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.indices import IndexCheck
from qvr_core.runtime.values.layout import factors, take_factor, width
from qvr_core.runtime.values.precision import at_least, precision
from qvr_core.semantics.types.model.arrows import Arrow
from qvr_core.semantics.types.model.expressions import (
    COLUMN,
    Apply,
    Arrange,
    Bound,
    Builtin,
    Constant,
    Contract,
    Data,
    DeductionRef,
    Expr,
    FactorTable,
    FieldOf,
    Function,
    Index,
    IndexValue,
    ListOf,
    Matrix,
    Method,
    Scatter,
    Solve,
    TermValue,
    Window,
)
from qvr_core.semantics.types.spaces import Finite, Real, Seq, Space

Evaluate = indexed.Evaluate


class Parts(Protocol):
    """Where a program gets what it is made of; what it takes becomes part of it, parameters included."""

    def arrow(self, node: Arrow) -> ArrowModule:
        """The module of an arrow."""
        ...

    def deduction(self, name: str) -> Any:
        """The module of a deduction."""
        ...


def compile_expr(expr: Expr, parts: Parts) -> Evaluate:
    """A closure that computes `expr` on a frame; what stands in it at several places is computed once."""
    if isinstance(parts, Shared):
        return parts.closure(expr)
    found = places(expr)
    if max(found.values(), default=0) < 2:
        return _compiled(expr, parts)
    return Shared(parts, found, _compiled).whole(expr)


def _own(parts: Parts) -> Parts:
    """The parts for a body that runs on frames of its own."""
    return parts.parts if isinstance(parts, Shared) else parts


def _compiled(expr: Expr, parts: Parts) -> Evaluate:
    match expr:
        case Constant(value=value):
            return _literal(value)
        case Bound(name=name):
            return lambda frame: frame[name]
        case Data(name=name):
            return lambda frame: frame.datum(name)
        case Matrix(arrow=arrow):
            module = parts.arrow(arrow)
            # a tensor arrow: the arrow layer has the class, this one must not import it
            matrix: Callable[[], Tensor] = getattr(module, "matrix")  # noqa: B009
            return lambda frame: Cell(at_least(matrix(), precision()), False)
        case Apply():
            return _apply(expr, parts)
        case Builtin(function="parse"):
            return _parse(expr, parts)
        case Builtin(function="compose"):
            return _compose(expr, parts)
        case Builtin():
            return _builtin(expr, parts)
        case Index():
            return _index(expr, parts)
        case IndexValue():
            return indexed.index_value(expr)
        case Window(base=base):
            return indexed.window(expr, compile_expr(base, parts))
        case Contract(factors=factors):
            return indexed.contract(expr, [compile_expr(factor, parts) for factor in factors])
        case Scatter(body=summed, index=by):
            return indexed.scatter(expr, compile_expr(summed, parts), compile_expr(by, parts))
        case Arrange(base=base, axes=order) if order == COLUMN and isinstance(expr.type.space, Seq):
            return _column(compile_expr(base, parts))
        case Arrange(base=base, axes=order):
            return _arrange(compile_expr(base, parts), order)
        case FieldOf(base=base, index=index):
            return _field(compile_expr(base, parts), base, index)
        case Method():
            return _method(expr, parts)
        case ListOf(items=entries):
            items = [compile_expr(entry, parts) for entry in entries]
            return lambda frame: stack([item(frame) for item in items])
        case Function(parameter=parameter, body=body):
            return _lambda(parameter, compile_expr(body, _own(parts)))
        case FactorTable():
            return _factor(expr, parts)
        case Solve(rate=rate):
            given = [compile_expr(value, parts) for value in (expr.initial, *expr.arguments, expr.start, expr.at)]
            return equations.solution(expr, compile_expr(rate, _own(parts)), given)
        case DeductionRef(name=name):
            deduction = Cell(parts.deduction(name), False)
            return lambda frame: deduction
        case TermValue(text=text):
            term = Cell(text, False)
            return lambda frame: term


def _literal(value: Any) -> Evaluate:
    """A literal, on the device of the program that runs."""
    if isinstance(value, str):
        text = Cell(value, False)
        return lambda frame: text
    made: dict[arrays.dtype, Cell] = {}

    def literal(frame: Frame) -> Cell:
        dtype = precision()
        cell = made.get(dtype)
        if cell is None:
            kind = dtype if isinstance(value, float) else None
            cell = made[dtype] = Cell(arrays.tensor(value, dtype=kind, device="cpu"), False)
        return cell if frame.device is None else Cell(cell.value.to(frame.device), False)

    return literal


def _builtin(expr: Builtin, parts: Parts) -> Evaluate:
    plain = function(expr.function)

    def operation(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
        result = plain(args, keywords)
        computed = asked()
        if computed is not None:
            computed.values[id(expr)] = (list(args), result)
        return result

    items = [compile_expr(arg, parts) for arg in expr.args]
    named = [(key, compile_expr(value, parts)) for key, value in expr.keywords]
    if not named:
        if len(items) == 2:
            left, right = items
            return lambda frame: operation((left(frame), right(frame)), {})
        return lambda frame: operation([part(frame) for part in items], {})
    return lambda frame: operation([part(frame) for part in items], {key: value(frame) for key, value in named})


def _apply(expr: Apply, parts: Parts) -> Evaluate:
    module = parts.arrow(expr.arrow)
    domain = expr.arrow.domain.space
    items = [compile_expr(arg, parts) for arg in expr.args]
    if module.sampled:

        def draw(frame: Frame) -> Cell:
            assert frame.draw is not None
            return Cell(frame.draw(expr, as_argument([part(frame) for part in items], domain, frame.rows)), True)

        return draw
    codomain = expr.arrow.codomain.space
    scalar = isinstance(codomain, Real) and width(codomain) == 1

    def run(frame: Frame) -> Cell:
        cells = [part(frame) for part in items]
        if expr.own:
            return _apply_over_axes(module, cells, expr.own, domain, scalar)
        if any(cell.rows for cell in cells):
            return Cell(module(as_argument(cells, domain, frame.rows)), True)
        return _apply_to_data(module, cells, domain)

    return run


def _apply_over_axes(
    module: ArrowModule, cells: Sequence[Cell], own: Sequence[int], domain: Space, scalar: bool
) -> Cell:
    """All axes but the last `own` of each value are as rows to the arrow."""
    values = [as_one(cell) for cell in cells]
    split = [cell.value.ndim - rank for cell, rank in zip(values, own, strict=True)]
    fronts = [cell.value.shape[:at] for cell, at in zip(values, split, strict=True)]
    rows = any(cell.rows for cell in values)
    depth = max(len(front) - cell.rows for front, cell in zip(fronts, values, strict=True))
    laid = [
        front[: cell.rows] + (1,) * (depth - len(front) + cell.rows) + front[cell.rows :] if cell.rows else front
        for front, cell in zip(fronts, values, strict=True)
    ]
    front = broadcasting.broadcast_shapes(*laid)
    flat = [_spread(cell.value, shape, front, at) for cell, shape, at in zip(values, laid, split, strict=True)]
    result = module(as_argument([Cell(value, True) for value in flat], domain, prod(front)))
    parts = result if is_product(result) else (result,)
    shaped = tuple(part.reshape(*front, *part.shape[1 + (scalar and part.ndim > 1) :]) for part in parts)
    return Cell(shaped if is_product(result) else shaped[0], rows)


def _spread(value: Tensor, shape: Sequence[int], front: Sequence[int], at: int) -> Tensor:
    own = value.shape[at:]
    return value.reshape(*shape, *own).expand(*front, *own).reshape(-1, *own)


def _apply_to_data(module: ArrowModule, cells: Sequence[Cell], domain: Space) -> Cell:
    """Data has no row axis, but usually one of its own that an arrow may take for rows."""
    first, space = cells[0], factors(domain)[0]
    item = space.item if isinstance(space, Seq) else space
    rank = (1 if isinstance(item, Finite) else 2) + isinstance(space, Seq)
    if first.value.ndim >= rank or (first.value.ndim == rank - 1 and first.value.shape[-1:] != (1,) and rank == 2):
        wide = first.value.ndim >= rank or getattr(item, "shape", ()) == (1,)
        if wide:
            rows = first.value.shape[0]
            return Cell(module(as_argument([Cell(cell.value, True) for cell in cells], domain, rows)), False)
    result = module(as_argument(cells, domain, 1))
    return Cell(tuple(r[0] for r in result) if is_product(result) else result[0], False)


# ---------------------------------------------------------------- gathers


def _index(expr: Index, parts: Parts) -> Evaluate:
    base = compile_expr(expr.base, parts)
    indices = [compile_expr(index, parts) for index in expr.indices]
    literal = expr.indices[0].value if len(indices) == 1 and isinstance(expr.indices[0], Constant) else None
    if isinstance(literal, int):

        def select(frame: Frame) -> Cell:
            cell = base(frame)
            axis = 1 if cell.rows else 0
            if cell.rank == 0 or not -cell.value.shape[axis] <= literal < cell.value.shape[axis]:
                raise _out_of_range(frame, cell, literal)
            return Cell(cell.value.select(axis, literal), cell.rows)

        return select

    checks = [IndexCheck(index.name if isinstance(index, Data) else None) for index in expr.indices]

    def take(frame: Frame) -> Cell:
        cell = base(frame)
        found = [index(frame) for index in indices]
        if isinstance(cell.value, indexed.Growing):
            cell = Cell(cell.value.whole(), cell.rows)
        if expr.whole and cell.rank != len(found):
            raise _out_of_range(frame, cell, f"of {len(found)} axes")
        if cell.rank >= len(found):
            shape = cell.value.shape[cell.rows :]
            for check, index, size in zip(checks, found, shape, strict=False):
                check(frame.program, index.value, size)
        try:
            return gather(cell, found)
        except IndexError as error:
            raise _out_of_range(frame, cell, str(error)) from error

    return take


def _out_of_range(frame: Frame, cell: Cell, found: object) -> InputProblem:
    shape = tuple(cell.value.shape[1:]) if cell.rows else tuple(cell.value.shape)
    return InputProblem(f"program `{frame.program}`: index {found} does not fit a value of shape {shape}")


def gather(base: Cell, indices: Sequence[Cell]) -> Cell:
    """`base[i, j, …]`: the leading axes of `base` (after rows) are indexed, the indices broadcast with each other."""
    tensors, rows = align(indices)
    tensors = [index if not index.is_floating_point() else index.long() for index in tensors]
    flat = all(index.ndim == 0 for index in tensors)
    if flat:
        tensors = [index.reshape(1) for index in tensors]
    value = base.value
    if not base.rows:
        result = value[tuple(tensors)]
        return Cell(result.squeeze(0) if flat else result, rows)
    if rows:
        rank = max(index.ndim for index in tensors)
        row = arrays.arange(value.shape[0], device=value.device).reshape(-1, *([1] * (rank - 1)))
        return Cell(value[(row, *tensors)], True)
    result = value[(slice(None), *tensors)]
    return Cell(result.squeeze(1) if flat else result, True)


def _arrange(base: Evaluate, order: tuple[int | None, ...]) -> Evaluate:
    """The axes behind rows in another order, new ones of length 1 where `order` has None.

    Axes are counted from the last: a value may lack leading ones, as in a block whose plate has become rows.
    """
    moved = [at for at in order if at is not None]
    new = [place - len(order) for place, at in reversed([*enumerate(order)]) if at is None]
    stays = moved == sorted(moved)

    def run(frame: Frame) -> Cell:
        cell = base(frame)
        cell = Cell(cell.value.whole(), cell.rows) if isinstance(cell.value, indexed.Growing) else as_one(cell)
        rows, value = int(cell.rows), cell.value
        if not stays:
            if cell.rank < len(moved):
                value = value.reshape(*value.shape[:rows], *(1,) * (len(moved) - cell.rank), *value.shape[rows:])
            value = value.permute(*range(rows), *(at + rows for at in moved))
        for place in new:
            if value.ndim - rows + 1 >= -place:
                value = value.unsqueeze(place)
        return Cell(value, cell.rows)

    return run


def _column(base: Evaluate) -> Evaluate:
    """Numbers one a position, (L,) or (L, 1) behind rows, as (L, 1)."""

    def run(frame: Frame) -> Cell:
        cell = as_one(base(frame))
        return Cell(cell.value.unsqueeze(-1), cell.rows) if cell.rank == 1 else cell

    return run


def _field(base: Evaluate, expr: Expr, index: int) -> Evaluate:
    space = expr.type.space
    if space is None:
        return lambda frame: Cell(base(frame).value[index], base(frame).rows)

    def take(frame: Frame) -> Cell:
        cell = base(frame)
        return Cell(take_factor(space, cell.value, index), cell.rows)

    return take


# ---------------------------------------------------------------- lists, functions, tables


def stack(cells: Sequence[Cell]) -> Cell:
    """`[a, b, …]`: scalars to a vector, vectors to rows of a matrix, words to a list."""
    if any(isinstance(cell.value, str) for cell in cells):
        return Cell([cell.value for cell in cells], False)
    tensors, rows = align(cells)
    shape = broadcasting.broadcast_shapes(*(t.shape for t in tensors))
    return Cell(arrays.stack([t.expand(shape) for t in tensors], 1 if rows else 0), rows)


def _lambda(parameter: str, body: Evaluate) -> Evaluate:
    def make(frame: Frame) -> Cell:
        def call(argument: Cell) -> Cell:
            inner = frame.inner(1)
            inner.bound[parameter] = argument
            return body(inner)

        return Cell(call, False)

    return make


def _factor(expr: FactorTable, shared: Parts) -> Evaluate:
    parts = _own(shared)
    if expr.body is None:
        cases = [compile_expr(value, parts) for _, value in sorted(expr.cases, key=lambda case: case[0])]
        return lambda frame: stack([case(frame) for case in cases])
    body = compile_expr(expr.body, parts)
    names = [name for name, _ in expr.indices]
    sizes = [_size(space) for _, space in expr.indices]

    def table(frame: Frame) -> Cell:
        has_rows = False

        def entry(*indices: Tensor) -> Any:
            nonlocal has_rows
            inner = frame.inner(1)
            inner.bound.update({name: Cell(index, False) for name, index in zip(names, indices, strict=True)})
            cell = body(inner)
            has_rows = cell.rows
            return cell.value

        mapped: Callable[..., Tensor] = entry
        for position in reversed(range(len(names))):
            mapped = arrays.vmap(mapped, in_dims=tuple(0 if i == position else None for i in range(len(names))))
        value = mapped(*(arrays.arange(size) for size in sizes))
        return Cell(value.movedim(len(names), 0) if has_rows else value, has_rows)

    return table


def _size(space: Space) -> int:
    if isinstance(space, Finite) and isinstance(space.size, int):
        return space.size
    raise TypeError(f"a factor runs over a finite set of known size, not {space}")


# ---------------------------------------------------------------- charts


def _parse(expr: Builtin, parts: Parts) -> Evaluate:
    deduction, sentence = (compile_expr(arg, parts) for arg in expr.args)
    return lambda frame: Cell(deduction(frame).value.parse(sentence(frame).value), False)


def _compose(expr: Builtin, parts: Parts) -> Evaluate:
    items = [compile_expr(arg, parts) for arg in expr.args]
    return lambda frame: Cell(ComposedDeduction([item(frame).value for item in items]), False)


def _method(expr: Method, parts: Parts) -> Evaluate:
    base = compile_expr(expr.base, parts)
    items = [compile_expr(arg, parts) for arg in expr.args]

    def call(frame: Frame) -> Cell:
        found = getattr(base(frame).value, expr.method)(*(part(frame).value for part in items))
        return Cell(found.to(frame.device), False)

    return call
