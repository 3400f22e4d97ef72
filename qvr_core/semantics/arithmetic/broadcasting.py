"""Shapes of values in arithmetic: plates in front, the element's own axes behind, right-aligned like torch's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.model.expressions import Expr, ValueType
from qvr_core.semantics.types.spaces import (
    REAL_LINE,
    Constrained,
    Dim,
    Finite,
    Linear,
    Product,
    Real,
    Seq,
    Space,
    Unknown,
    is_real,
    linear,
    width,
)
from qvr_core.syntax.immutable import immutable

Axis = tuple[Dim | None, str | None]
"""An axis: its length (None where data decides) and the set it runs over."""

DATA = ValueType(None)
SCALAR = ValueType(REAL_LINE)
ROW_SCALAR = ValueType(REAL_LINE, rows=True)


@immutable
class Clash:
    """Two axes that cannot be broadcast."""

    left: Dim
    right: Dim


def is_data(value: ValueType) -> bool:
    """True where the shape depends on data, or could not be typed."""
    return value.space is None or isinstance(element(value), Unknown)


def element(value: ValueType) -> Space | None:
    """The space at one position of a sequence."""
    return value.space.item if isinstance(value.space, Seq) else value.space


def event_axes(value: ValueType) -> list[Axis] | None:
    """The element's own axes: [] for a scalar; None where they are not known or the value is no array."""
    space = element(value)
    if space is None or isinstance(space, Unknown):
        return None
    if isinstance(space, Finite):
        return []
    if isinstance(space, Real):
        size = width(space)
        return [] if size == 1 else [(size, value.event)]
    if isinstance(space, Constrained):
        axis: Axis = (space.size, value.event)
        return [axis] if space.vector else [axis, axis]
    if isinstance(space, Product) and is_real(space):
        return [(width(space), None)]
    return None


def by_place(value: Expr, rank: int, size: Dim | None) -> bool:
    """Whether an argument gives each place of an ordered vector of `size` numbers its own: its last axis in front of
    the `rank` ones of its parameter is no set, and as long."""
    found = axes(value.type) or []
    own = found[: max(0, len(found) - rank)]
    return bool(own) and own[-1][1] is None and isinstance(size, int) and own[-1][0] == size


def plate_axes(value: ValueType) -> list[Axis]:
    return [*zip(value.sizes, value.indexed, strict=False)]


def axes(value: ValueType) -> list[Axis] | None:
    """All axes but rows and length, outermost first."""
    own = event_axes(value)
    return None if own is None else [*plate_axes(value), *own]


def with_axes(
    plates: Sequence[Axis], space: Space, *, like: Sequence[ValueType], event: str | None = None
) -> ValueType:
    """A value of `space` behind `plates`; a sequence or per row where one of `like` is."""
    sequence = any(isinstance(value.space, Seq) for value in like)
    return ValueType(
        Seq(space) if sequence and not isinstance(space, Seq) else space,
        tuple(name for _, name in plates),
        any(value.rows for value in like),
        tuple(size for size, _ in plates),
        event,
    )


def from_axes(found: Sequence[Axis], plates: int, *, like: Sequence[ValueType]) -> ValueType:
    """The value with these axes, the first `plates` of which are plates; the rest is one real vector."""
    own = found[plates:]
    if not own:
        return with_axes(found, REAL_LINE, like=like)
    sizes = [size for size, _ in own if size is not None]
    if len(sizes) < len(own):
        return ValueType(None, rows=any(value.rows for value in like))
    return with_axes(found[:plates], Real(tuple(sizes)), like=like, event=own[-1][1] if len(own) == 1 else None)


def data_like(values: Sequence[ValueType]) -> ValueType:
    """A value whose shape only data can tell, per row where one of `values` is."""
    return ValueType(None, rows=any(value.rows for value in values))


def data_along(values: Sequence[ValueType]) -> ValueType:
    """The same, at every position where one of `values` is a sequence of such."""
    along = any(isinstance(value.space, Seq) and isinstance(value.space.item, Unknown) for value in values)
    return replace(data_like(values), space=Seq(Unknown()) if along else None)


def broadcast(values: Sequence[ValueType]) -> ValueType | Clash:
    """The shape of elementwise arithmetic on `values`; unequal unknown widths count as equal."""
    return broadcast_shapes(values, [axes(value) for value in values])


def all_scalars(values: Sequence[ValueType]) -> bool:
    """True where every value is one plain real number."""
    for value in values:
        if not isinstance(value.space, Real) or value.indexed or value.space.shape != (1,):
            return False
    return True


def broadcast_shapes(values: Sequence[ValueType], shapes: Sequence[list[Axis] | None]) -> ValueType | Clash:
    """The same where the axes of `values` are known already."""
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        tails = [tail(value, shape) for value, shape in zip(values, shapes, strict=True)]
        joined = _broadcast_axes(tails)
        return joined if isinstance(joined, Clash) else with_last(data_along(values), joined)
    joined = _broadcast_axes(known)
    if isinstance(joined, Clash):
        return joined
    plates = max(
        (len(value.indexed) for value, shape in zip(values, known, strict=True) if len(shape) == len(joined)), default=0
    )
    return _with_sizes(from_axes(joined, plates, like=values), values)


def _with_sizes(kind: ValueType, values: Sequence[ValueType]) -> ValueType:
    """A value as wide as the one operand that has several sizes has them, too: `relu(x)` of `x : Real 3 28 28`."""
    several = {space for value in values if isinstance(space := element(value), Real) and len(space.shape) > 1}
    own = element(kind)
    if len({space.shape for space in several}) != 1 or not isinstance(own, Real):
        return kind
    made = Real(next(iter(several)).shape, own.low, own.high)
    if own.shape == made.shape or linear(width(own)) != linear(width(made)):
        return kind
    return replace(kind, space=Seq(made) if isinstance(kind.space, Seq) else made)


def tail(value: ValueType, shape: Sequence[Axis] | None) -> Sequence[Axis]:
    """The axes of a value, or what is known of the last where data decides the others."""
    if shape is not None:
        return shape
    return [] if value.last is None else [value.last]


def with_last(value: ValueType, shape: Sequence[Axis]) -> ValueType:
    """A value whose axes data decides, but for the last one of `shape`."""
    size, name = shape[-1] if shape else (None, None)
    return value if size is None or size == 1 else replace(value, last=(size, name))


def _broadcast_axes(shapes: Sequence[Sequence[Axis]]) -> list[Axis] | Clash:
    joined: list[Axis] = []
    for shape in sorted(shapes, key=len, reverse=True):
        if not joined:
            joined = list(shape)
            continue
        offset = len(joined) - len(shape)
        for position, (size, name) in enumerate(shape):
            merged = _merge(joined[offset + position], (size, name))
            if isinstance(merged, Clash):
                return merged
            joined[offset + position] = merged
    return joined


def _merge(left: Axis, right: Axis) -> Axis | Clash:
    (a, name_a), (b, name_b) = left, right
    name = name_a or name_b
    if a is None or b is None:
        return (b if a is None else a), name
    if a == 1 or b == 1:
        return (b if a == 1 else a), name
    if isinstance(a, Linear) or isinstance(b, Linear):
        return (b if isinstance(a, Linear) else a), name
    return (a, name) if int(a) == int(b) else Clash(a, b)


def met_apart(shapes: Sequence[Sequence[Axis]]) -> tuple[str, str] | None:
    """Two sets that broadcasting from the last axis would bring together by their places alone."""
    met: dict[int, str] = {}
    for shape in shapes:
        for place, (_, name) in enumerate(reversed(shape)):
            if name is not None and set_of(met.setdefault(place, name)) != set_of(name):
                return set_of(met[place]), set_of(name)
    return None


def tied_pairs(shapes: Sequence[list[Axis] | None]) -> list[tuple[Dim, Dim]]:
    """Last axes that must be equal though different sizes name them."""
    last: list[Dim] = []
    for shape in shapes:
        if shape and shape[-1][0] is not None and shape[-1][0] != 1:
            last.append(shape[-1][0])
    return [(left, right) for left, right in pairwise(last) if linear(left) != linear(right)]


def flattened(value: ValueType) -> Space | None:
    """The space of all elements together: a plate of scalars over I is `Real |I|`; None where it has no name."""
    if not value.indexed:
        return value.space
    shape = axes(value)
    if shape is None or any(size is None for size, _ in shape) or isinstance(element(value), Finite | Constrained):
        return None
    real = Real(tuple(size for size, _ in shape if size is not None))
    return Seq(real) if isinstance(value.space, Seq) else real


def drop_last(value: ValueType) -> ValueType:
    """The value after a reduction over its last axis."""
    shape = axes(value)
    if shape is None:
        return data_like([value])
    if not shape:
        return with_axes([], REAL_LINE, like=[value])
    kept = shape[:-1]
    return from_axes(kept, min(len(value.indexed), len(kept)), like=[value])


def joint_axes(values: Sequence[Expr]) -> list[Axis]:
    """The axes that values broadcast to."""
    shapes = [axes(value.type) or [] for value in values]
    depth = max(map(len, shapes), default=0)
    found: list[Axis] = []
    for place in range(depth, 0, -1):
        options = [shape[-place] for shape in shapes if len(shape) >= place]
        found.append(max(options, key=lambda axis: (axis[1] is not None, axis[0] != 1)))
    return found
