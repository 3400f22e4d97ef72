"""`@` and `fan`: arrows side by side (docs/reference.md#combinators)."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.semantics.arrows.arrow_names import arrow_of, damaged
from qvr_core.semantics.arrows.combinator_arguments import Call, Checker
from qvr_core.semantics.arrows.compose import check_sorts, joint_sort
from qvr_core.semantics.scope.bounds import joined
from qvr_core.semantics.scope.inherited import scanned_direction
from qvr_core.semantics.scope.scope import UNKNOWN, ArrowEntry, FamilyEntry, Scope
from qvr_core.semantics.scope.sequences import lift
from qvr_core.semantics.types.arrow_text import arrow_text, plain
from qvr_core.semantics.types.codes import CALL_ARGUMENTS, FAN_MISMATCH, SAME_DIRECTION_FAN, SHARED_WEIGHTS
from qvr_core.semantics.types.density import beside
from qvr_core.semantics.types.model.arrows import Arrow, Fan, Tensor
from qvr_core.semantics.types.spaces import has_seq, is_unknown
from qvr_core.semantics.types.subspace import fit
from qvr_core.syntax.tree.arrows import ArrowExpr, ArrowRef, TensorExpr
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.options import Number, String


def check_tensor(expr: TensorExpr, scope: Scope, check: Checker) -> Arrow:
    """`a @ b @ …`: arrows side by side, each on a factor of its own."""
    factors = [check(factor, scope) for factor in expr.factors]
    for index in range(1, len(factors)):
        check_sorts(
            factors[index - 1], factors[index], expr.factors[index - 1], expr.factors[index],
            expr.operators[index - 1], scope,
        )  # fmt: skip
    _hint_shared(expr.factors, scope)
    domain = joined([factor.domain for factor in factors], expr.span, scope)
    codomain = UNKNOWN if domain is UNKNOWN else joined([factor.codomain for factor in factors], expr.span, scope)
    return Tensor(
        domain=domain,
        codomain=codomain,
        sort=joint_sort(factors),
        origin=scope.origin(expr.span),
        density=beside([factor.density for factor in factors]),
        factors=tuple(factors),
    )


def check_fan(call: Call) -> Arrow:
    """`fan(f, g, …)`; a replicated arrow stands for all its copies."""
    scope = call.scope
    branches: list[tuple[Arrow, ArrowExpr]] = []
    replicated: str | None = None
    for arg in call.args:
        if arg.key is not None or isinstance(arg.value, Number | String):
            scope.report(CALL_ARGUMENTS, "`fan` takes arrows only", arg.span)
            continue
        inner = plain(arg.value)
        entry = scope.lookup(inner.name.text) if isinstance(inner, ArrowRef) else None
        if isinstance(entry, FamilyEntry) and isinstance(inner, ArrowRef):
            copies = [arrow_of(Name(copy, inner.name.span), scope) for copy in entry.copies]
            branches.extend((copy, inner) for copy in copies)
            replicated = entry.name if len(call.args) == 1 else None
            continue
        arrow = call.check(inner, scope, call.given)
        if isinstance(arrow, Fan) and arrow.replicated is not None:
            branches.extend((branch, inner) for branch in arrow.branches)
            replicated = arrow.replicated if len(call.args) == 1 else None
        else:
            branches.append((arrow, inner))
    if not branches:
        if not call.args:
            scope.report(CALL_ARGUMENTS, "`fan` wants at least one arrow", call.span)
        return damaged(scope.origin(call.span))
    if replicated is None:
        _hint_shared([expr for _, expr in branches], scope)
        _hint_directions(branches, scope)
    return fanned(branches, replicated, call.span, scope)


def fanned(branches: Sequence[tuple[Arrow, ArrowExpr]], replicated: str | None, span: Span, scope: Scope) -> Fan:
    """All branches on one input: plain branches are lifted where others read sequences."""
    arrows = [arrow for arrow, _ in branches]
    if any(has_seq(arrow.domain.space) for arrow in arrows):
        arrows = [arrow if is_unknown(arrow.domain.space) else lift(arrow) for arrow in arrows]
    domain, first = arrows[0].domain, branches[0][1]
    seen: set[str] = set()
    for arrow, (_, expr) in zip(arrows[1:], branches[1:], strict=True):
        if is_unknown(domain.space) or (
            fit(domain.space, arrow.domain.space).problem is not None
            and fit(arrow.domain.space, domain.space).problem is None
        ):
            domain, first = arrow.domain, expr
            continue
        if (text := arrow_text(expr)) in seen:
            continue
        seen.add(text)
        scope.require_fit(
            domain, arrow.domain, expr.span, FAN_MISMATCH, f"`{arrow_text(first)}` reads", f"`{text}` reads"
        )
    return Fan(
        domain=domain,
        codomain=joined([arrow.codomain for arrow in arrows], span, scope),
        sort=joint_sort(arrows),
        origin=scope.origin(span),
        density=beside([arrow.density for arrow in arrows]),
        branches=tuple(arrows),
        replicated=replicated,
    )


def _hint_shared(exprs: Sequence[ArrowExpr], scope: Scope) -> None:
    seen: set[str] = set()
    for expr in map(plain, exprs):
        if not isinstance(expr, ArrowRef) or not isinstance(scope.lookup(expr.name.text), ArrowEntry):
            continue
        name = expr.name.text
        if name in seen:
            message = (
                f"this branch has the same parameters as the other `{name}`; `replicate=` makes independent copies"
            )
            scope.report(SHARED_WEIGHTS, message, expr.span)
        seen.add(name)


def _hint_directions(branches: Sequence[tuple[Arrow, ArrowExpr]], scope: Scope) -> None:
    seen: dict[str, ArrowExpr] = {}
    for arrow, expr in branches:
        direction = scanned_direction(arrow, scope)
        if direction in seen and arrow_text(seen[direction]) != arrow_text(expr):
            message = f"`{arrow_text(seen[direction])}` and `{arrow_text(expr)}` both read the sequence {direction}"
            scope.report(SAME_DIRECTION_FAN, message, expr.span)
            return
        if direction is not None:
            seen[direction] = expr
