"""`>>`: what fits after what (docs/reference.md#combinators)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from qvr_core.semantics.arrows.combinator_arguments import Checker
from qvr_core.semantics.arrows.uncounted import refuse_summed
from qvr_core.semantics.language.transformations import between
from qvr_core.semantics.scope.inherited import algebra_of
from qvr_core.semantics.scope.scope import UNKNOWN, ArrowEntry, Scope, show
from qvr_core.semantics.scope.sequences import can_lift, lift
from qvr_core.semantics.types.arrow_text import arrow_text, plain
from qvr_core.semantics.types.codes import (
    ALGEBRA_MISMATCH,
    COMPOSE_MISMATCH,
    SEQUENCE_MISMATCH,
    SHARED_WEIGHTS,
    SORT_MISMATCH,
)
from qvr_core.semantics.types.density import EXACT, then
from qvr_core.semantics.types.diagnostics import Edit, Fix, Origin, Related
from qvr_core.semantics.types.model.arrows import Arrow, Compose, Damaged, Fan, Identity, Lift, Scan, Sort
from qvr_core.semantics.types.spaces import Linear, Named, factors_of, has_seq, is_finite, is_unknown, item_of, width
from qvr_core.syntax.tree.arrows import ArrowCall, ArrowExpr, ArrowRef, ComposeExpr, TensorExpr
from qvr_core.syntax.tree.names import Span


def check_compose(expr: ComposeExpr, scope: Scope, given: Named | None, check: Checker) -> Arrow:
    """`a >> b >> …`: whichever side works on single elements is lifted where the other has a sequence."""
    pieces, operators = _flatten(expr)
    stages: list[Arrow] = []
    joined = True
    for index, piece in enumerate(pieces):
        stage = check(piece, scope, stages[-1].codomain if stages else given)
        if stages:
            joined = (
                _connect(stages, stage, pieces[index - 1], piece, operators[index - 1], scope, pieces[0].span.start)
                and joined
            )
        else:
            stages.append(stage)
    _hint_repeats(pieces, stages, scope)
    result = composed(stages, [scope.origin(span) for span in operators], scope.origin(expr.span))
    if result.density.kind == "summed":
        refuse_summed(stages, scope)
    if not joined:
        # either of two stages is not the one that was meant: what uses the whole says nothing more
        scope.doubtful = True
        return replace(result, domain=UNKNOWN, codomain=UNKNOWN, density=EXACT)
    return replace(result, codomain=UNKNOWN) if _in_doubt(stages) else result


def _in_doubt(stages: Sequence[Arrow]) -> bool:
    """True where a stage that could not be typed leaves open whether a sequence arrives behind it."""
    doubt = False
    for stage in stages:
        doubt = is_unknown(stage.codomain.space) or (doubt and can_lift(stage))
    return doubt


def composed(stages: Sequence[Arrow], operators: Sequence[Origin], origin: Origin) -> Compose:
    """`a >> b >> …` of stages that are known to fit."""
    density = stages[0].density
    for before, stage in pairwise(stages):
        density = then(density, before.codomain.space, stage.density)
    if any(is_unknown(stage.codomain.space) for stage in stages):
        density = EXACT  # nothing is said of what could not be typed
    return Compose(
        domain=stages[0].domain,
        codomain=stages[-1].codomain,
        sort=joint_sort(stages),
        origin=origin,
        density=density,
        stages=tuple(stages),
        operators=tuple(operators),
    )


def _flatten(expr: ComposeExpr) -> tuple[list[ArrowExpr], list[Span]]:
    pieces: list[ArrowExpr] = []
    operators: list[Span] = []
    for index, stage in enumerate(expr.stages):
        inner = plain(stage)
        if index:
            operators.append(expr.operators[index - 1])
        if isinstance(inner, ComposeExpr):
            more, between = _flatten(inner)
            pieces.extend(more)
            operators.extend(between)
        else:
            pieces.append(stage)
    return pieces, operators


def _connect(
    stages: list[Arrow], stage: Arrow, left: ArrowExpr, right: ArrowExpr, operator: Span, scope: Scope, begins: int
) -> bool:
    """Add `stage` after `stages`, lifting whichever side works on single elements; False where they are not of kinds
    that go together."""
    given, wanted = stages[-1].codomain.space, stage.domain.space
    if has_seq(wanted) and not has_seq(given):
        if all(can_lift(earlier) for earlier in stages):
            stages[:] = [lift(earlier) for earlier in stages]
        elif not _in_doubt(stages):
            _missing_sequence(stages, stage, left, right, operator, scope)
            stages.append(stage)
            return False
    elif has_seq(given) and not has_seq(wanted):
        stage = lift(stage)
    reported = len(scope.diagnostics)
    check_sorts(stages[-1], stage, left, right, operator, scope, begins)
    scope.require_fit(
        stages[-1].codomain,
        stage.domain,
        operator,
        COMPOSE_MISMATCH,
        f"`{arrow_text(plain(left))}` gives",
        f"`{arrow_text(plain(right))}` wants",
        _item_and_state(stage),
        replica=_replica(stages[-1]),
    )
    stages.append(stage)
    return len(scope.diagnostics) == reported


def _item_and_state(arrow: Arrow) -> tuple[Related, ...]:
    """What of a scan's cell is read from the sequence, where it is more than one factor: a part of the state may be
    missing from what the cell gives back."""
    if not isinstance(arrow, Scan) or len(factors_of(arrow.item.space)) < 2:
        return ()
    message = (
        f"the cell gives back {arrow.state.written}, which is its state, so it reads {arrow.item.written} each time"
    )
    return (Related(message, arrow.cell.origin),)


def _replica(arrow: Arrow) -> tuple[str, int] | None:
    """The replicated arrow that a fan goes over, and the width of one copy."""
    if isinstance(arrow, Lift):
        arrow = arrow.arrow
    if not isinstance(arrow, Fan) or arrow.replicated is None:
        return None
    size = width(item_of(arrow.branches[0].codomain.space))
    return None if isinstance(size, Linear) else (arrow.replicated, int(size))


def _missing_sequence(
    stages: list[Arrow], stage: Arrow, left: ArrowExpr, right: ArrowExpr, operator: Span, scope: Scope
) -> None:
    fixes: tuple[Fix, ...] = ()
    inner = plain(left)
    if isinstance(inner, ArrowCall) and inner.func.text == "scan":
        end = Span(inner.span.end - 1, inner.span.end - 1)
        fixes = (Fix("Give every state: `emit=all`", (Edit(scope.origin(end), ", emit=all"),), True),)
    scope.report(
        SEQUENCE_MISMATCH,
        f"`{arrow_text(left)}` gives one {show(stages[-1].codomain)}, but `{arrow_text(right)}` reads a sequence",
        operator,
        fixes=fixes,
    )


def joint_sort(arrows: Sequence[Arrow]) -> Sort:
    """The sort of arrows taken together: a tensor if one is, else sampled if one is."""
    sorts = {arrow.sort for arrow in arrows}
    if Sort.TENSOR in sorts:
        return Sort.TENSOR
    return Sort.SAMPLED if Sort.SAMPLED in sorts else Sort.DETERMINISTIC


def check_sorts(
    first: Arrow,
    second: Arrow,
    left: ArrowExpr,
    right: ArrowExpr,
    operator: Span,
    scope: Scope,
    begins: int | None = None,
) -> None:
    """Tensor arrows compose with tensor arrows, in one algebra.  `begins` is where all that stands before the operator
    does, if it is more than `left`."""
    if Sort.TENSOR not in (first.sort, second.sort):
        return
    for arrow, expr in ((first, left), (second, right)):
        if arrow.sort is Sort.TENSOR or isinstance(arrow, Damaged | Identity):
            continue
        if is_finite(arrow.domain.space) and is_finite(arrow.codomain.space):
            continue  # a table of probabilities is a matrix too
        message = f"`>>` joins tensor arrows with tensor arrows, but `{arrow_text(expr)}` is none"
        scope.report(SORT_MISMATCH, message, operator)
        return
    one, other = algebra_of(first, scope), algebra_of(second, scope)
    if one is not None and other is not None and one != other:
        message = f"`{arrow_text(left)}` composes in `{one}`, but `{arrow_text(right)}` in `{other}`"
        before = left.span if begins is None else Span(begins, left.span.end)
        changes = ((before, one, other, begins not in (None, left.span.start)), (right.span, other, one, False))
        fixes = [fix for each in changes if (fix := _change(*each, left if each[0] is before else right, scope))]
        scope.report(ALGEBRA_MISMATCH, message, operator, fixes=fixes)


def _change(span: Span, source: str, target: str, several: bool, expr: ArrowExpr, scope: Scope) -> Fix | None:
    """The change of base by which one side has the other's algebra, where the language has one."""
    name = between(source, target, scope.algebra)
    if name is None:
        return None
    whole = scope.origin(span)
    if several or isinstance(expr, TensorExpr | ComposeExpr):
        edits = (Edit(whole, "(", "before"), Edit(whole, f").change_base({name})", "after"))
    else:
        edits = (Edit(whole, f".change_base({name})", "after"),)
    return Fix(f"Map the weights of `{source}` to `{target}`: `.change_base({name})`", edits)


def _hint_repeats(pieces: Sequence[ArrowExpr], stages: Sequence[Arrow], scope: Scope) -> None:
    for before, piece in pairwise(pieces):
        one, other = plain(before), plain(piece)
        if isinstance(one, ArrowRef) and isinstance(other, ArrowRef) and one.name.text == other.name.text:
            name = one.name.text
            entry = scope.lookup(name)
            # a matrix that is multiplied by itself is meant to be the same one
            if isinstance(entry, ArrowEntry) and entry.sort is not Sort.TENSOR:
                message = (
                    f"`{name}` stands here with the parameters that it has before; `stack({name}, 2)` has fresh ones"
                )
                scope.report(SHARED_WEIGHTS, message, other.span)
