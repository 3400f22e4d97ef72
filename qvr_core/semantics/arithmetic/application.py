"""An arrow applied to arguments: do they fit its domain, and is it read position by position?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.broadcasting import flattened, is_data
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.scope.scope import UNKNOWN, show
from qvr_core.semantics.scope.sequences import can_lift, lift
from qvr_core.semantics.types.codes import SEQUENCE_MISMATCH, UNSUPPORTED
from qvr_core.semantics.types.diagnostics import Code, DeclarationSite, Origin, Related
from qvr_core.semantics.types.model.arrows import Arrow, Damaged
from qvr_core.semantics.types.model.expressions import Data, Expr, ValueType
from qvr_core.semantics.types.spaces import (
    Named,
    Seq,
    Space,
    Unknown,
    factors_of,
    has_seq,
    has_terms,
    is_unknown,
    item_of,
    product,
    sequence_of,
)
from qvr_core.semantics.types.subspace import fit
from qvr_core.syntax.tree.names import Span


def fits(given: Space, wanted: Space) -> bool:
    """True where the kinds fit and no known width contradicts."""
    result = fit(given, wanted)
    return result.problem is None and result.widths != "wrong"


def argument_space(values: Sequence[tuple[Named, ValueType]], wanted: Space) -> Named:
    """The product of arguments; a plate of scalars counts as one real vector where that is what fits."""
    plain = _joined([(named, Unknown() if is_data(value) else value.space) for named, value in values])
    if not any(value.indexed for _, value in values) or fits(plain.space, item_of(wanted)):
        return plain
    whole = _joined([(named, Unknown() if is_data(value) else flattened(value)) for named, value in values])
    return whole if fits(whole.space, item_of(wanted)) else plain


def _joined(values: Sequence[tuple[Named, Space | None]]) -> Named:
    spaces = [(named.written, Unknown() if space is None else space) for named, space in values]
    space = product(spaces)
    if any(has_seq(factor) for factor in factors_of(space)):
        # a sequence beside a plain value: the plain one stands at every position
        space = sequence_of(space)
    return Named(space, " * ".join(named.written for named, _ in values))


def apply_to(
    arrow: Arrow,
    given: Named,
    ctx: StepContext,
    place: Span | Origin,
    code: Code,
    gives: str,
    wants: str,
    *,
    reaches: frozenset[str] = frozenset(),
    related: Sequence[Related] = (),
) -> Arrow:
    """`arrow` as it acts on `given`, lifted to sequences where `given` is one; reports what does not fit.

    Where the arrow wants a sequence and `given` is computed from plain inputs, those inputs are asked to be sequences.
    """
    if isinstance(arrow, Damaged) or isinstance(given.space, Unknown):
        return arrow
    wanted = arrow.domain
    if has_seq(given.space) and can_lift(arrow) and not is_unknown(wanted.space):
        arrow = lift(arrow)
    elif has_seq(wanted.space) and not has_seq(given.space) and fits(given.space, item_of(wanted.space)):
        if reaches:
            ctx.lifts |= reaches
        else:
            ctx.scope.report(
                SEQUENCE_MISMATCH, f"{gives} {show(given)}, but {wants} {show(wanted)}: a sequence", place, related
            )
        return arrow
    target = arrow.domain
    if has_seq(target.space) and not has_seq(given.space):
        # what one position is does not fit either: that is the mistake to tell
        target = Named(item_of(target.space), target.written.removeprefix("Seq "))
    if not ctx.scope.require_fit(given, target, place, code, gives, wants, related):
        # another arrow may be meant: what it would give is not known
        return replace(arrow, codomain=UNKNOWN)
    return arrow


def refuse_free_terms(arrow: Arrow, name: str, args: Sequence[Expr], ctx: StepContext) -> None:
    """Report data where a term is wanted: nothing else says that they are terms."""
    if not has_terms(arrow.domain.space):
        return
    for arg in args:
        if isinstance(arg, Data) and arg.type.space is None:
            message = f"`{name}` reads a term, and only inputs of the program are terms yet: make `{arg.name}` an input"
            ctx.scope.report(UNSUPPORTED, message, arg.origin)


def input_lifts(given: Sequence[Space], wanted: Space) -> list[int]:
    """Which of the program's inputs must be sequences so that their product fits `wanted`; [] where none would help."""
    targets = factors_of(wanted)
    if len(targets) == len(given):
        return [
            index
            for index, (space, target) in enumerate(zip(given, targets, strict=True))
            if isinstance(target, Seq) and not isinstance(space, Seq)
        ]
    if has_seq(wanted) and not any(has_seq(space) for space in given):
        return list(range(len(given)))
    return []


def declared(name: str) -> Related:
    return Related(f"`{name}` is declared here", DeclarationSite(name))
