"""Arrows on values with axes: the arrow reads the value's own numbers, or its last axis; the other axes are as rows.

Values over several sets are arranged by their names first, as in elementwise arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.alignment import Aligned, align, arrange
from qvr_core.semantics.arithmetic.application import fits
from qvr_core.semantics.arithmetic.broadcasting import (
    Axis,
    Clash,
    axes,
    broadcast,
    event_axes,
    from_axes,
    is_data,
    plate_axes,
    with_axes,
)
from qvr_core.semantics.arithmetic.elementwise import broadcast_shape
from qvr_core.semantics.arithmetic.unindexed_values import report_bare
from qvr_core.semantics.scope.environment import Running, StepContext
from qvr_core.semantics.types.axes import indexed, set_of
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import Arrow
from qvr_core.semantics.types.model.expressions import Apply, Expr, ValueType
from qvr_core.semantics.types.spaces import REAL_LINE, Seq, Space, Unknown, factors_of, has_seq
from qvr_core.syntax.immutable import immutable


def with_events(domain: Space, args: Sequence[Expr]) -> list[Expr]:
    """The arguments, the last axis of a value without numbers of its own read as its vector where one is wanted."""
    wanted = factors_of(domain)
    if len(wanted) != len(args):
        wanted = (domain,) if len(args) == 1 else ()
    return [_with_event(arg, space) for arg, space in zip(args, wanted, strict=True)] if wanted else list(args)


def _with_event(arg: Expr, wanted: Space) -> Expr:
    arg = _indices_first(arg)
    kind, found = arg.type, axes(arg.type)
    if not kind.indexed or not found or len(found) != len(kind.indexed) or is_data(kind) or isinstance(kind.space, Seq):
        return arg
    vector = from_axes(found, len(found) - 1, like=[kind])
    if has_seq(wanted) or fits(kind.space or Unknown(), wanted) or not fits(vector.space or Unknown(), wanted):
        return arg
    return replace(arg, type=vector)


def _indices_first(arg: Expr) -> Expr:
    """The axes along which indices run in front of the others, which make up the element that an index picks."""
    if not any(name is not None and indexed(name) for _, name in plate_axes(arg.type)[1:]) or axes(arg.type) is None:
        return arg
    runs = [name is not None and indexed(name) for _, name in axes(arg.type) or []]
    order = [*(at for at, one in enumerate(runs) if one), *(at for at, one in enumerate(runs) if not one)]
    return arrange(arg, order)


@immutable
class OverAxes:
    """Arguments arranged by their axes: the last `own` of each are the arrow's, the others are as rows to it.

    `plates` are these others; None where they do not go together, which has been told.
    """

    values: tuple[Expr, ...]
    own: tuple[int, ...]
    plates: tuple[Axis, ...] | None


def over_axes(
    arrow: Arrow,
    args: Sequence[Expr],
    texts: Sequence[str],
    where: Origin,
    ctx: StepContext,
    front: Sequence[Axis] = (),
) -> OverAxes | None:
    """The arguments of an arrow that acts on each element of some axes, of which `front` come first; None where there
    are no axes, or where what an argument runs over is not known."""
    own = [event_axes(arg.type) for arg in args]
    if not front and not any(arg.type.indexed for arg in args):
        return None
    if any(found is None for found in own) or any(is_data(arg.type) for arg in args):
        return None
    if has_seq(arrow.domain.space) or any(isinstance(arg.type.space, Seq) for arg in args):
        return None
    ranks = tuple(len(found or ()) for found in own)
    kinds = [_front(arg.type) for arg in args]
    told = _bare(args, texts, front, where, ctx)
    taken = {name for _, name in front}
    further = {name: (size, name) for kind in kinds for size, name in plate_axes(kind) if name not in (None, *taken)}
    plates = [*front, *further.values()] if front else []
    aligned = align(args, texts, where, ctx, ranks=ranks, plates=plates) if not told else Aligned(list(args), True)
    if aligned.failed:
        return OverAxes(tuple(aligned.values), ranks, None)
    kind = broadcast([_front(arg.type) for arg in aligned.values])
    if isinstance(kind, Clash):
        pairs = zip(args, kinds, texts, strict=True)
        broadcast_shape([(replace(arg, type=kind), text) for arg, kind, text in pairs], where, ctx)
        return OverAxes(tuple(aligned.values), ranks, None)
    found = plate_axes(kind)
    nameless = [axis for axis in found if axis[1] is None]
    return OverAxes(tuple(aligned.values), ranks, tuple([*plates, *nameless] if front else found))


def _bare(args: Sequence[Expr], texts: Sequence[str], front: Sequence[Axis], where: Origin, ctx: StepContext) -> bool:
    """Whether an argument runs over all of a set along which an index runs, which is reported."""
    names = [name for _, name in front]
    running: dict[str | None, Running] = {set_of(one.axis): one for one in ctx.indices.values() if one.axis in names}
    for arg, text in zip(args, texts, strict=True):
        whole = next((name for _, name in plate_axes(arg.type) if name in running), None)
        if whole is not None:
            report_bare(arg, text, running[whole], where, ctx)
            return True
    return False


def applied_over_axes(
    arrow: Arrow, args: Sequence[Expr], texts: Sequence[str], where: Origin, origin: Origin, ctx: StepContext
) -> Expr | None:
    """The arrow on values that run over sets; None where none of them does, or where that is not known."""
    over = over_axes(arrow, args, texts, where, ctx)
    if over is None:
        return None
    space = Unknown() if over.plates is None else arrow.codomain.space
    typed = with_axes(over.plates or (), space, like=[_front(arg.type) for arg in args])
    return Apply(type=typed, origin=origin, arrow=arrow, args=over.values, own=over.own)


def _front(kind: ValueType) -> ValueType:
    """The axes that are as rows to the arrow, with a number at each place."""
    return ValueType(REAL_LINE, kind.indexed, kind.rows, kind.sizes)
