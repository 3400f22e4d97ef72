"""Axes of what linear algebra makes of matrices whose axes are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from qvr_core.semantics.arithmetic.broadcasting import Axis, Clash, axes, broadcast, from_axes, is_data, with_axes
from qvr_core.semantics.types.axes import indexed
from qvr_core.semantics.types.model.expressions import ValueType
from qvr_core.semantics.types.spaces import REAL_LINE, Unknown

Shape = list[Axis]

_SQUARE = frozenset({"cholesky", "inverse", "matrix_exp", "det", "logdet", "eigh"})


def _same(shape: Shape, own: int) -> Shape | None:
    return shape if own >= 2 else None


def _number(shape: Shape, own: int) -> Shape | None:
    return shape[:-2] if own >= 2 else None


def _embedded(shape: Shape, own: int) -> Shape | None:
    return [*shape, shape[-1]] if own >= 1 else None


def _diagonal(shape: Shape, own: int) -> Shape | None:
    if own == 1:
        return _embedded(shape, own)
    return shape[:-1] if own >= 2 and shape[-1] == shape[-2] else None


_RULES: Mapping[str, Callable[[Shape, int], Shape | None]] = {
    "cholesky": _same,
    "inverse": _same,
    "matrix_exp": _same,
    "det": _number,
    "logdet": _number,
    "diag_embed": _embedded,
    "diag": _diagonal,
}


def not_square(name: str, kind: ValueType) -> str | None:
    """What is wrong with the argument of a function of square matrices; None where nothing is, or nobody knows."""
    shape = None if is_data(kind) or isinstance(kind.space, Unknown) else axes(kind)
    if name not in _SQUARE or shape is None:
        return None
    own = [axis for axis in shape if not indexed(axis[1] or "")]
    if len(own) < 2:
        return f"`{name}` wants a matrix, and this is {'one number' if not own else 'a vector'}"
    (rows, set_of_rows), (columns, set_of_columns) = own[-2:]
    if None not in (set_of_rows, set_of_columns) and set_of_rows != set_of_columns:
        this = f"is over {set_of_rows} and {set_of_columns}"
    elif isinstance(rows, int) and isinstance(columns, int) and int(rows) != int(columns):
        this = f"has {int(rows)} rows and {int(columns)} columns"
    else:
        return None
    return f"`{name}` wants {'a symmetric' if name == 'eigh' else 'a square'} matrix, and this {this}"


def own_rank(shape: Sequence[Axis]) -> int:
    """How many axes one element has, besides those that indices run along."""
    return sum(not indexed(name or "") for _, name in shape)


def matrix_type(name: str, kind: ValueType) -> ValueType | None:
    """The type of a function of a matrix; None for other functions, and where the axes are not known."""
    shape, rule = axes(kind), _RULES.get(name)
    if rule is None or shape is None or is_data(kind):
        return None
    found = rule(shape, own_rank(shape))
    return None if found is None else with_axes(found, REAL_LINE, like=[kind])


def outer_type(left: ValueType, right: ValueType) -> ValueType | None:
    """The type of every product of two entries; None where the axes are not known."""
    a, b = axes(left), axes(right)
    if not a or not b or is_data(left) or is_data(right):
        return None
    front = broadcast([from_axes(shape[:-1], len(shape) - 1, like=[kind]) for shape, kind in ((a, left), (b, right))])
    if isinstance(front, Clash):
        return None
    return with_axes([*(axes(front) or []), a[-1], b[-1]], REAL_LINE, like=[left, right])
