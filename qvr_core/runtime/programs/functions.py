"""The builtin functions of arithmetic on cells (`qvr_core.semantics.language.builtins` lists them)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qvr_core.arrays.engine import Tensor, arrays, broadcasting, linalg, special
from qvr_core.arrays.engine import functional as nnf
from qvr_core.operations.table import having
from qvr_core.runtime.values.arrow import is_product
from qvr_core.runtime.values.bases import bspline, hsgp, hsgp_frequencies
from qvr_core.runtime.values.cells import Cell, align, as_one
from qvr_core.runtime.values.decompositions import cholesky, eigh, inverse, matrix_exp, solve_lower
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.language.builtins import BUILTINS, COMPARISONS, canonical

Function = Callable[[Sequence[Cell], Mapping[str, Cell]], Cell]


def _where(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return arrays.where(condition.bool(), a, b)


_RENAMED: Mapping[str, Callable[..., Tensor]] = {
    "ndtr": special.ndtr,
    "log_ndtr": special.log_ndtr,
    "ndtri": special.ndtri,
    "where": _where,
}


def _torch_function(name: str) -> Callable[..., Tensor]:
    if name in _RENAMED:
        return _RENAMED[name]
    found = getattr(arrays, name, None) or getattr(nnf, name, None)
    if found is None:
        raise LookupError(f"no runtime function `{name}`")
    return found


_OF_WHOLE_NUMBERS = having("whole")
"""Functions that whole numbers stay whole numbers under.  Of others torch takes whole numbers for single precision, or
not at all."""


def _numbers(name: str, value: Tensor) -> Tensor:
    """What a function is computed of: in the precision of the run, but where whole numbers give whole ones."""
    return value if value.is_floating_point() or name in _OF_WHOLE_NUMBERS else value.to(precision())


def _pointwise(name: str) -> Function:
    function = _torch_function(name)

    def apply(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
        tensors, rows = align(args)
        if not any(tensor.is_floating_point() for tensor in tensors):
            tensors = [_numbers(name, tensor) for tensor in tensors]
        return Cell(function(*tensors), rows)

    return apply


def _compare(name: str) -> Function:
    function: Callable[..., Tensor] = getattr(arrays, name)

    def apply(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
        tensors, rows = align(args)
        return Cell(function(*tensors).long(), rows)

    return apply


# ---------------------------------------------------------------- reductions and what goes along the last axis


def _axis(cell: Cell, rest: Sequence[Cell], keywords: Mapping[str, Cell]) -> int:
    """The axis meant by `dim`, counted without the row axis; the last by default."""
    given = keywords.get("dim", rest[0] if rest else None)
    axis = -1 if given is None else int(given.value)
    return axis + 1 if axis >= 0 and cell.rows else axis


_VALUES = frozenset(("median", "max", "min", "sort"))
_ITSELF = having("itself")


def _reduction(name: str) -> Function:
    function: Callable[..., Any] = linalg.vector_norm if name == "norm" else getattr(arrays, name)

    def apply(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
        cell = as_one(args[0])
        if cell.rank == 0:
            return cell if name in _ITSELF else Cell(function(cell.value.unsqueeze(-1), dim=-1), cell.rows)
        value = cell.value
        if name in ("mean", "std", "var", "logsumexp", "norm") and not value.is_floating_point():
            value = value.to(precision())
        keep = "keepdim" in keywords and bool(keywords["keepdim"].value)
        result = function(value, dim=_axis(cell, args[1:], keywords), keepdim=keep)
        if name in _VALUES:
            result = result.values
        return Cell(result.long() if name in ("any", "all") else result, cell.rows)

    return apply


def _along(name: str) -> Function:
    function = nnf.normalize if name == "normalize" else _along_function(name)

    def apply(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
        cell = as_one(args[0])
        result = function(_numbers(name, cell.value), dim=_axis(cell, args[1:], keywords))
        return Cell(result.values if name in _VALUES else result, cell.rows)

    return apply


def _flip(value: Tensor, dim: int) -> Tensor:
    return arrays.flip(value, (dim,))


def _along_function(name: str) -> Callable[..., Any]:
    if name == "flip":
        return _flip
    return nnf.softmin if name == "softmin" else getattr(arrays, name)


def _activation(name: str) -> Function:
    function: Callable[..., Tensor] = getattr(nnf, name)

    def apply(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
        first = as_one(args[0])
        options = [float(cell.value) for cell in args[1:]]
        named = {k: float(c.value) for k, c in keywords.items()}
        return Cell(function(_numbers(name, first.value), *options, **named), first.rows)

    return apply


def _clamp(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    named = dict(zip(("min", "max"), args[1:], strict=False)) | dict(keywords)
    tensors, rows = align([args[0], *named.values()])
    return Cell(arrays.clamp(tensors[0], **dict(zip(named, tensors[1:], strict=True))), rows)


def _layer_norm(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    cell = as_one(args[0])
    eps = float(keywords["eps"].value) if "eps" in keywords else 1e-5
    return Cell(nnf.layer_norm(_numbers("layer_norm", cell.value), cell.value.shape[-1:], eps=eps), cell.rows)


# ---------------------------------------------------------------- shapes and linear algebra


def _concat(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    items = [Cell(t, cell.rows) for cell in args for t in _listed(cell)]
    columns = [Cell(cell.value.unsqueeze(-1), cell.rows) if cell.rank == 0 else cell for cell in items]
    tensors, rows = align(columns)
    if rows:
        count = max(t.shape[0] for t, cell in zip(tensors, columns, strict=True) if cell.rows)
        tensors = [t if c.rows else t.expand(count, *t.shape) for t, c in zip(tensors, columns, strict=True)]
        tensors = [t.reshape(count, *([1] * (tensors[0].ndim - t.ndim)), *t.shape[1:]) for t in tensors]
    axis = _axis(Cell(tensors[0], rows), (), keywords)
    if axis in (-1, tensors[0].ndim - 1):
        leading = broadcasting.broadcast_shapes(*(t.shape[:-1] for t in tensors))
        tensors = [t.expand(*leading, t.shape[-1]) for t in tensors]
    return Cell(arrays.cat(tensors, axis), rows)


def _listed(cell: Cell) -> tuple[Tensor, ...]:
    return cell.value if is_product(cell.value) else (cell.value,)


def _chunk(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    cell = as_one(args[0])
    return Cell(tuple(arrays.chunk(cell.value, int(args[1].value), _axis(cell, (), keywords))), cell.rows)


def _dot(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    tensors, rows = align(args)
    product = tensors[0] * tensors[1]
    return Cell(product.sum(-1) if product.ndim > rows else product, rows)


def _matmul(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    left, right = as_one(args[0]), as_one(args[1])
    rows = left.rows or right.rows
    a, b = _floats(left.value, right.value)
    if left.rank == 0 or right.rank == 0:
        return _pointwise("mul")(args, keywords)
    if left.rank == 1 and right.rank == 1:
        return _dot(args, keywords)
    if right.rank == 1 and not left.rows and left.rank == 2:
        # one product for all rows
        return Cell(arrays.nn.functional.linear(b, a), rows)
    if right.rank == 1:
        return Cell((a @ _under(b, left.rank).unsqueeze(-1)).squeeze(-1), rows)
    if left.rank == 1:
        return Cell((_under(a, right.rank).unsqueeze(-2) @ b).squeeze(-2), rows)
    tensors, _ = align([Cell(a, left.rows), Cell(b, right.rows)])
    return Cell(tensors[0] @ tensors[1], rows)


def _under(vector: Tensor, rank: int) -> Tensor:
    """A vector, or one of each row, beside what has `rank` axes behind the rows."""
    return vector.reshape(*vector.shape[:-1], *[1] * (rank - 2), vector.shape[-1])


def _floats(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    dtype = arrays.promote_types(a.dtype, b.dtype)
    return a.to(dtype), b.to(dtype)


def _outer(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    a, b = args
    return Cell(a.value.unsqueeze(-1) * b.value.unsqueeze(-2), a.rows or b.rows)


def _on_first(function: Callable[[Tensor], Tensor]) -> Function:
    def apply(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
        cell = as_one(args[0])
        return Cell(function(cell.value), cell.rows)

    return apply


def _transpose(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    cell = args[0]
    axes = [int(arg.value) for arg in args[1:]] or [-2, -1]
    if len(axes) == 1:
        axes = [-2, -1]
    first, second = (axis + 1 if axis >= 0 and cell.rows else axis for axis in axes)
    return Cell(cell.value.transpose(first, second), cell.rows)


def _diag(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    cell = args[0]
    if cell.rank <= 1:
        return Cell(arrays.diag_embed(cell.value), cell.rows)
    return Cell(arrays.diagonal(cell.value, dim1=-2, dim2=-1), cell.rows)


def _solve_triangular(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    left, right = as_one(args[0]), as_one(args[1])
    vector = bool(keywords["vector"].value) if "vector" in keywords else right.rank < left.rank
    a, b = _floats(_numbers("solve_triangular", left.value), _numbers("solve_triangular", right.value))
    tensors, rows = align([Cell(a, left.rows), Cell(b.unsqueeze(-1) if vector else b, right.rows)])
    found = solve_lower(*tensors)
    return Cell(found.squeeze(-1) if vector else found, rows)


def _cumulative_trapezoid(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    (y, x), rows = align(args)
    y, x = _floats(_numbers("cumulative_trapezoid", y), _numbers("cumulative_trapezoid", x))
    areas = 0.5 * (y[..., 1:] + y[..., :-1]) * (x[..., 1:] - x[..., :-1])
    return Cell(nnf.pad(areas.cumsum(-1), (1, 0)), rows)


def _bspline(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    x, knots = as_one(args[0]), [float(knot) for knot in arrays.as_tensor(args[1].value)]
    return Cell(bspline(_numbers("bspline", x.value), knots, int(keywords["degree"].value)), x.rows)


def _hilbert(function: Callable[[Tensor, int, float, int], Tensor]) -> Function:
    def apply(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
        x, m, c = as_one(args[0]), int(keywords["m"].value), float(keywords["c"].value)
        return Cell(function(_numbers("hsgp", x.value), m, c, int(x.rows)), x.rows)

    return apply


def _constructor(make: Callable[..., Tensor]) -> Function:
    def apply(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
        return Cell(make(*(int(arg.value) for arg in args), dtype=precision()), False)

    return apply


def _arange(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    return Cell(arrays.arange(*(int(arg.value) for arg in args)), False)


def _linspace(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    start, end, count = args
    return Cell(arrays.linspace(float(start.value), float(end.value), int(count.value), dtype=precision()), False)


def _one_hot(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    given = keywords.get("num_classes", args[1] if len(args) > 1 else None)
    size = -1 if given is None else int(given.value)
    return Cell(nnf.one_hot(args[0].value.long(), size).to(precision()), args[0].rows)


def _unsqueeze(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    return Cell(args[0].value.unsqueeze(_axis(args[0], args[1:], keywords)), args[0].rows)


def _squeeze(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    return Cell(args[0].value.squeeze(_axis(args[0], args[1:], keywords)), args[0].rows)


def _reshape(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    cell = as_one(args[0])
    sizes = [int(n) for arg in args[1:] for n in arrays.as_tensor(arg.value).reshape(-1)]
    return Cell(cell.value.reshape(*((cell.value.shape[0],) if cell.rows else ()), *sizes), cell.rows)


def _flatten(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    cell = as_one(args[0])
    return Cell(cell.value.flatten(1) if cell.rows and cell.rank > 0 else cell.value.flatten(), cell.rows)


def _roll(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    return Cell(arrays.roll(args[0].value, int(args[1].value), -1), args[0].rows)


def _size(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    return Cell(arrays.tensor(args[0].value.shape[_axis(args[0], args[1:], keywords)]), False)


def _numel(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    cell = args[0]
    return Cell(arrays.tensor(cell.value[0].numel() if cell.rows else cell.value.numel()), False)


def _full_like(args: Sequence[Cell], keywords: Mapping[str, Cell]) -> Cell:
    return Cell(arrays.full_like(args[0].value, float(args[1].value)), args[0].rows)


_OWN: Mapping[str, Function] = {
    "clamp": _clamp, "layer_norm": _layer_norm,
    "concat": _concat, "chunk": _chunk,
    "dot": _dot, "matmul": _matmul, "mv": _matmul, "mm": _matmul, "bmm": _matmul, "outer": _outer,
    "transpose": _transpose, "diag": _diag, "diag_embed": _on_first(arrays.diag_embed),
    "inverse": _on_first(inverse), "cholesky": _on_first(cholesky),
    "matrix_exp": _on_first(lambda value: matrix_exp(_numbers("matrix_exp", value))),
    "bspline": _bspline, "hsgp": _hilbert(hsgp), "hsgp_frequencies": _hilbert(hsgp_frequencies),
    "eigh": _on_first(lambda value: eigh(_numbers("eigh", value))[0]),
    "eigenvectors": _on_first(lambda value: eigh(_numbers("eigh", value))[1]),
    "solve_triangular": _solve_triangular, "cumulative_trapezoid": _cumulative_trapezoid,
    "det": _on_first(linalg.det), "logdet": _on_first(arrays.logdet),
    "eye": _constructor(arrays.eye), "zeros": _constructor(arrays.zeros), "ones": _constructor(arrays.ones),
    "arange": _arange,
    "linspace": _linspace, "one_hot": _one_hot, "zeros_like": _on_first(arrays.zeros_like),
    "ones_like": _on_first(arrays.ones_like), "full_like": _full_like, "detach": _on_first(arrays.detach),
    "tril": _on_first(arrays.tril), "triu": _on_first(arrays.triu), "diff": _on_first(arrays.diff),
    "unsqueeze": _unsqueeze, "squeeze": _squeeze, "reshape": _reshape, "flatten": _flatten, "roll": _roll,
    "size": _size, "numel": _numel,
}  # fmt: skip


def function(name: str) -> Function:
    """The builtin or operator called `name`."""
    name = canonical(name)
    if name in _OWN:
        return _OWN[name]
    if name in COMPARISONS:
        return _compare(name)
    builtin = BUILTINS.get(name)
    rule = builtin.rule if builtin is not None else "pointwise"
    if rule == "reduce":
        return _reduction(name)
    if rule == "keep":
        return _activation(name) if builtin is not None and "dim" not in builtin.keywords else _along(name)
    return _pointwise(name)
