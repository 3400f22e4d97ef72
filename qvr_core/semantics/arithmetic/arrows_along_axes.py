"""Arrows on values with axes: the arrow reads the value's own numbers, or its last axis; the other axes are as rows.

Values over several sets are arranged by their names first, as in elementwise arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.alignment import align
from qvr_core.semantics.arithmetic.application import fits
from qvr_core.semantics.arithmetic.broadcasting import Clash, axes, broadcast, event_axes, from_axes, is_data
from qvr_core.semantics.arithmetic.elementwise import broadcast_shape
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model import Apply, Arrow, Expr, ValueType
from qvr_core.semantics.types.spaces import REAL_LINE, Seq, Space, Unknown, factors_of, has_seq


def with_events(domain: Space, args: Sequence[Expr]) -> list[Expr]:
    """The arguments, the last axis of a value without numbers of its own read as its vector where one is wanted."""
    wanted = factors_of(domain)
    if len(wanted) != len(args):
        wanted = (domain,) if len(args) == 1 else ()
    return [_with_event(arg, space) for arg, space in zip(args, wanted, strict=True)] if wanted else list(args)


def _with_event(arg: Expr, wanted: Space) -> Expr:
    kind, found = arg.type, axes(arg.type)
    if not kind.indexed or not found or len(found) != len(kind.indexed) or is_data(kind) or isinstance(kind.space, Seq):
        return arg
    vector = from_axes(found, len(found) - 1, like=[kind])
    if has_seq(wanted) or fits(kind.space or Unknown(), wanted) or not fits(vector.space or Unknown(), wanted):
        return arg
    return replace(arg, type=vector)


def applied_over_axes(
    arrow: Arrow, args: Sequence[Expr], texts: Sequence[str], where: Origin, origin: Origin, ctx: StepContext
) -> Expr | None:
    """The arrow on values that run over sets; None where none of them does, or where that is not known."""
    own = [event_axes(arg.type) for arg in args]
    if not any(arg.type.indexed for arg in args) or any(found is None for found in own):
        return None
    if has_seq(arrow.domain.space) or any(isinstance(arg.type.space, Seq) or is_data(arg.type) for arg in args):
        return None
    ranks = [len(found or ()) for found in own]
    aligned = align(args, texts, where, ctx, ranks=ranks)
    fronts = [_front(arg.type) for arg in aligned.values]
    kind = broadcast(fronts)
    if isinstance(kind, Clash):
        kind = broadcast_shape(
            [(replace(arg, type=front), text) for arg, front, text in zip(args, fronts, texts, strict=True)], where, ctx
        )
    space = Unknown() if aligned.failed or isinstance(kind.space, Unknown) else arrow.codomain.space
    typed = ValueType(space, kind.indexed, kind.rows, kind.sizes)
    return Apply(type=typed, origin=origin, arrow=arrow, args=tuple(aligned.values), own=tuple(ranks))


def _front(kind: ValueType) -> ValueType:
    """The axes that are as rows to the arrow, with a number at each place."""
    return ValueType(REAL_LINE, kind.indexed, kind.rows, kind.sizes)
