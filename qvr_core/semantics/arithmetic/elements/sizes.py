"""`x[0, 1, 2]` of `x : Real 3 28 28`: a space of several sizes has an axis for each.

The value itself is flat, `x : (…, 3 · 28 · 28)`; what is indexed is its numbers in their shape.
"""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.semantics.arithmetic.broadcasting import Axis, plate_axes, with_axes
from qvr_core.semantics.types.axes import indexed
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.expressions import Builtin, Constant, Expr, ValueType
from qvr_core.semantics.types.spaces import REAL_LINE, Dim, Linear, Real, Space


def with_sizes(base: Expr, indices: int, origin: Origin) -> Expr:
    """A value of several sizes with an axis for each behind its plates, where that many indices reach them; any other
    value is itself."""
    space = _of_several(base.type.space)
    plates = plate_axes(base.type)
    if space is None or _behind(base.type, indices) <= 0 or sum(not isinstance(size, int) for size, _ in plates) > 1:
        return base
    own: list[Axis] = [(size, None) for size in space.shape]
    kind = with_axes([*plates, *own], Real((1,), space.low, space.high), like=[base.type])
    return _reshaped(base, [size for size, _ in (*plates, *own)], kind, origin)


def without_sizes(picked: Expr, base: ValueType, indices: int, origin: Origin) -> Expr:
    """What indices leave of the sizes of a value of type `base`, `x[0] : Real 28 28`, as one element again."""
    space = _of_several(base.space)
    if space is None:
        return picked
    left = space.shape[_behind(base, indices) :]
    found = plate_axes(picked.type)
    front = found[: len(found) - len(left)]
    whole = [size for size, _ in found[len(front) :]] == list(left)
    if not left or not whole or sum(not isinstance(size, int) for size, _ in front) > 1:
        return picked
    element = Real(left, space.low, space.high)
    kind = with_axes(front, element, like=[picked.type])
    numbers = 1
    for size in element.shape:
        numbers *= int(size) if isinstance(size, int) else 1
    return _reshaped(picked, [*(size for size, _ in front), numbers], kind, origin)


def _behind(kind: ValueType, indices: int) -> int:
    """How many of the indices stand for sizes: those that plates leave, of which an index that runs has its own."""
    return indices - sum(name is None or not indexed(name) for _, name in plate_axes(kind))


def _of_several(space: Space | None) -> Real | None:
    """A space of several sizes, all of them known."""
    if not isinstance(space, Real) or len(space.shape) < 2 or any(isinstance(size, Linear) for size in space.shape):
        return None
    return space


def _reshaped(value: Expr, sizes: Sequence[Dim | None], kind: ValueType, origin: Origin) -> Expr:
    numbers = [int(size) if isinstance(size, int) else -1 for size in sizes]
    shape = (Constant(type=ValueType(REAL_LINE), origin=origin, value=number) for number in numbers)
    return Builtin(type=kind, origin=origin, function="reshape", args=(value, *shape))
