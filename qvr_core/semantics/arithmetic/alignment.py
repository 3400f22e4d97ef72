"""Axes are met by name: where operands run over the same sets in other places, they are arranged to go together.

What stands in the right places already is left alone; the runtime only ever broadcasts from the last axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qvr_core.semantics.arithmetic.broadcasting import Axis, axes, from_axes, with_axes
from qvr_core.semantics.arithmetic.unindexed_values import report_bare
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.axes import indexed, set_of
from qvr_core.semantics.types.diagnostics import Edit, Fix, Origin
from qvr_core.semantics.types.model.expressions import Arrange, Expr, Index, ValueType
from qvr_core.semantics.types.program_codes import AXES_MISMATCH, DUPLICATE_AXIS
from qvr_core.semantics.types.spaces import Dim, Finite, Seq, Unknown
from qvr_core.syntax.immutable import immutable


@immutable
class Aligned:
    """Values that broadcast from the last axis; `failed` where that was reported to be impossible."""

    values: list[Expr]
    failed: bool = False


@immutable
class Shape:
    """The axes of an operand that are aligned: sets by name in front, nameless ones behind."""

    named: tuple[Axis, ...]
    tail: tuple[Axis, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for _, name in self.named if name is not None)

    @property
    def all(self) -> tuple[Axis, ...]:
        return (*self.named, *self.tail)


def align(
    values: Sequence[Expr],
    texts: Sequence[str],
    where: Origin,
    ctx: StepContext,
    *,
    ranks: Sequence[int] | None = None,
    plates: Sequence[Axis] = (),
    apart: bool = False,
) -> Aligned:
    """The operands, arranged by the names of their axes; the last `ranks[k]` axes of operand k are its own.

    `plates` are axes that the result has in front: operands keep to their order.  Where `apart`, operands over other
    sets are left as they are.
    """
    own = ranks or [0] * len(values)
    shapes = [_shape(value, rank) for value, rank in zip(values, own, strict=True)]
    named = [shape for shape in shapes if shape is not None and shape.named]
    front = _front(plates, named)
    if not named or _in_place([*front, *named]):
        return Aligned(list(values))
    operands = [(value, shape, text) for value, shape, text in zip(values, shapes, texts, strict=True) if shape]
    if (problem := _problem(operands, front, ctx.table)) is not None:
        if not (apart and problem[1] is None):
            _report(operands, problem, where, ctx)
            return Aligned(list(values), failed=True)
        return Aligned(list(values))
    order = _order([*front, *named])
    depth = max(len(shape.tail) for shape in named)
    return Aligned(
        [
            value if shape is None or not shape.named else _arranged(value, shape, order, depth, rank)
            for value, shape, rank in zip(values, shapes, own, strict=True)
        ]
    )


def _shape(value: Expr, rank: int) -> Shape | None:
    """None where axes cannot be moved: data decides them, or nameless ones stand in front of sets."""
    found = None if isinstance(value.type.space, Seq) else axes(value.type)
    if found is None:
        return None
    found = found[: max(0, len(found) - rank)]
    last = max((at for at, (_, name) in enumerate(found, 1) if name is not None), default=0)
    if any(name is None for _, name in found[:last]):
        return None
    return Shape(tuple(found[:last]), tuple(found[last:]))


def _front(plates: Sequence[Axis], named: Sequence[Shape]) -> list[Shape]:
    """The plates as one more operand, where all of them have names and nothing runs over another set."""
    names = [name for _, name in plates]
    if None in names or any(name not in names for shape in named for name in shape.names):
        return []
    return [Shape(tuple(plates), ())] if plates else []


def _in_place(shapes: Sequence[Shape]) -> bool:
    """True where broadcasting from the last axis brings equal names together, and only those; a nameless axis meets
    one of its size."""
    places: dict[str, set[int]] = {}
    at: dict[int, str] = {}
    sizes: dict[int, Dim | None] = {}
    for shape in shapes:
        whole = shape.all
        for position, (size, name) in enumerate(whole):
            place = len(whole) - position
            if name is None:
                continue
            if at.setdefault(place, name) != name:
                return False
            sizes[place] = size
            places.setdefault(name, set()).add(place)
    apart = any(
        name is None and size != 1 and sizes.get(len(shape.all) - position, size) != size
        for shape in shapes
        for position, (size, name) in enumerate(shape.all)
    )
    return not apart and all(_same_places(shapes, name) for name, found in places.items() if len(found) > 1)


def _same_places(shapes: Sequence[Shape], name: str) -> bool:
    """True where a set that several places have is met in the same ones by each operand that has it."""
    found = {
        tuple(len(shape.all) - at for at, (_, own) in enumerate(shape.all) if own == name)
        for shape in shapes
        if name in shape.names
    }
    return len(found) == 1


def _order(shapes: Sequence[Shape]) -> list[str]:
    """The sets of the result: in the order of the operand that has all of them, else the left one's first.

    Indices run in front of what one element has: functions work along the last axis.
    """
    everything = {name for shape in shapes for name in shape.names}
    whole = next((shape.names for shape in shapes if len(shape.names) == len(everything)), None)
    order = dict.fromkeys(name for shape in shapes for name in shape.names) if whole is None else whole
    return sorted(order, key=lambda name: not indexed(name))


def _arranged(value: Expr, shape: Shape, order: Sequence[str], depth: int, rank: int) -> Expr:
    """`value` with its sets in `order` from the first that it has, `depth` nameless axes, then its own `rank`."""
    first = min(order.index(name) for name in shape.names)
    at = {name: index for index, name in enumerate(shape.names)}
    sets = len(shape.named)
    source: list[int | None] = [at.get(name) for name in order[first:]]
    source += [None] * (depth - len(shape.tail))
    source += range(sets, sets + len(shape.tail) + rank)
    return arrange(value, source)


def arrange(value: Expr, source: Sequence[int | None]) -> Expr:
    """`value` with its axes in another order; None is a new axis of length 1."""
    found = axes(value.type) or []
    if list(source) == list(range(len(found))):
        return value
    laid: list[Axis] = [(1, None) if at is None else found[at] for at in source]
    return Arrange(type=_laid_type(value.type, laid, source), origin=value.origin, base=value, axes=tuple(source))


def _laid_type(kind: ValueType, laid: list[Axis], source: Sequence[int | None]) -> ValueType:
    plates = len(kind.indexed)
    own = [at for at in source if at is not None and at >= plates]
    event = len(axes(kind) or []) - plates
    if (kind.space is not None and source[len(source) - event :] == own) or not event:
        return with_axes(laid[: len(laid) - event], kind.space or Unknown(), like=[kind], event=kind.event)
    return from_axes(laid, len(laid), like=[kind])


# ---------------------------------------------------------------- what cannot go together


Operand = tuple[Expr, Shape, str]
Problem = tuple[int, str | None]
"""The operand to blame, and the set that it has twice; None where it shares none with the others."""


def _problem(operands: Sequence[Operand], front: Sequence[Shape], together: frozenset[str]) -> Problem | None:
    for at, (_, shape, _) in enumerate(operands):
        twice = next((name for name in shape.names if shape.names.count(name) > 1), None)
        if twice is not None:
            return at, twice
    run = {set_of(name) for _, shape, _ in operands for name in shape.names if indexed(name)}
    plain = [(at, {name for name in shape.names if not indexed(name)}) for at, (_, shape, _) in enumerate(operands)]
    if (bare := next((at for at, names in plain if names & run), None)) is not None:
        return bare, None
    waiting = [(at, names) for at, names in plain if names]
    connected = set(front[0].names) if front else set(waiting[0][1] if waiting else ())
    if connected & together:
        connected |= together
    while waiting:
        joined = [(at, names) for at, names in waiting if names & connected]
        if not joined:
            return waiting[0][0], None
        connected = connected.union(*(names for _, names in joined))
        waiting = [one for one in waiting if one not in joined]
    return None


def _report(operands: Sequence[Operand], problem: Problem, where: Origin, ctx: StepContext) -> None:
    at, twice = problem
    value, shape, text = operands[at]
    if twice is not None:
        _report_twice(text, twice, where, ctx)
        return
    plain = [name for name in shape.names if not indexed(name)]
    running = [one for one in ctx.indices.values() if set_of(one.axis) in plain]
    if running:
        report_bare(value, text, running[0], where, ctx)
        return
    one = next(index for index, (_, shape, _) in enumerate(operands) if shape.named and index != at)
    first, second = sorted((one, at))
    _report_apart((operands[first][0], operands[first][2]), (operands[second][0], operands[second][2]), where, ctx)


def _report_twice(text: str, name: str, where: Origin, ctx: StepContext) -> None:
    name = set_of(name)
    message = f"{text} has the axis {name} twice, and nothing says which of the two is meant"
    ctx.scope.report(DUPLICATE_AXIS, f"{message}; write the step with indices, as in `[i : {name}, j : {name}]`", where)


def _report_apart(left: tuple[Expr, str], right: tuple[Expr, str], where: Origin, ctx: StepContext) -> None:
    (one, one_text), (two, two_text) = left, right
    message = f"{one_text} runs over {_runs_over(one.type)}, {two_text} over {_runs_over(two.type)}"
    fixes = (*_picks(two, one, ctx), *_picks(one, two, ctx))
    if fixes:
        message += f"; did you mean `{fixes[0].edits[0].text}`?"
    ctx.scope.report(AXES_MISMATCH, message, where, fixes=fixes)


def _runs_over(kind: ValueType) -> str:
    return " * ".join(set_of(name) for _, name in axes(kind) or [] if name is not None)


def _picks(value: Expr, other: Expr, ctx: StepContext) -> tuple[Fix, ...]:
    """`b[school]` for each index in sight that has an element of b's set for every element of the other's."""
    name = getattr(value, "name", None)
    mine, theirs = _sets(value), _sets(other)
    if name is None or not mine or isinstance(value, Index):
        return ()
    found: list[Fix] = []
    for index in _indices(mine[0], theirs, ctx):
        text = f"{name}[{index}]"
        found.append(Fix(f"Change to `{text}`", (Edit(value.origin, text),), True))
    return tuple(found)


def _sets(value: Expr) -> list[str | None]:
    return [name for _, name in axes(value.type) or []]


def _indices(name: str | None, over: Sequence[str | None], ctx: StepContext) -> Iterable[str]:
    """Names of values over the axes `over` that are elements of the set `name`."""
    for text, binding in ctx.bindings.items():
        kind = binding.type
        element = isinstance(kind.space, Finite) and kind.space.nominal is not None and kind.space.nominal == name
        if element and kind.indexed and list(kind.indexed) == list(over[: len(kind.indexed)]):
            yield text
