"""Which spaces a role joins."""

from __future__ import annotations

from qvr_core.semantics.scope.scope import Scope, show
from qvr_core.semantics.types.codes import (
    ROLE_MISMATCH,
)
from qvr_core.semantics.types.spaces import (
    Named,
    has_seq,
    is_finite,
    is_real,
    is_unknown,
    item_of,
)
from qvr_core.syntax.tree.declarations import MorphismDecl
from qvr_core.syntax.tree.objects import ObjectExpr


def demand(role: str, side: str, kind: str, space: Named, expr: ObjectExpr, decl: MorphismDecl, scope: Scope) -> bool:
    """Report where `space` is not of the `kind` ('finite' or 'real') that the role wants on this side."""
    plain = item_of(space.space)
    if is_unknown(plain) or (is_finite(plain) if kind == "finite" else is_real(plain)):
        return True
    is_what = "a finite set" if is_finite(plain) else "real" if is_real(plain) else "neither real nor finite"
    wanted = "a finite set" if kind == "finite" else "a real space"
    message = f"role `{role}` wants {wanted} as its {side}, but {show(space)} is {is_what}"
    scope.report(ROLE_MISMATCH, message, expr.span)
    return False


def same_space(role: str, domain: Named, codomain: Named, decl: MorphismDecl, scope: Scope) -> None:
    """Report where a role that keeps its space goes to another one."""
    scope.require_fit(
        domain,
        codomain,
        decl.codomain.span,
        ROLE_MISMATCH,
        f"role `{role}` keeps its space: the domain is",
        "the codomain is",
    )


def one_element(role: str, domain: Named, codomain: Named, decl: MorphismDecl, scope: Scope) -> tuple[Named, Named]:
    """A declaration between sequences on both sides means its items: the arrow lifts by itself."""
    if not has_seq(domain.space) and not has_seq(codomain.space):
        return domain, codomain
    if has_seq(domain.space) != has_seq(codomain.space):
        expr = decl.domain if has_seq(domain.space) else decl.codomain
        scope.report(ROLE_MISMATCH, f"role `{role}` works on one element, not on a sequence", expr.span)
    return Named(item_of(domain.space), domain.written), Named(item_of(codomain.space), codomain.written)
