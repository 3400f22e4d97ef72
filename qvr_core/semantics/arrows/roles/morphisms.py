"""Morphism declarations: role, spaces, options, and what follows `~` (docs/reference.md#morphisms-and-roles)."""

from __future__ import annotations

from qvr_core.semantics.arrows.family_calls import family_name
from qvr_core.semantics.arrows.objects import check_object_expr
from qvr_core.semantics.arrows.options import read_options
from qvr_core.semantics.arrows.roles.attention import attention, position
from qvr_core.semantics.arrows.roles.convolution_and_pooling import conv, pool
from qvr_core.semantics.arrows.roles.discretize import discretize
from qvr_core.semantics.arrows.roles.kernels import kernel
from qvr_core.semantics.arrows.roles.layers import batch_norm, dropout, embed, linear, norm
from qvr_core.semantics.arrows.roles.tensors import latent, observed
from qvr_core.semantics.arrows.roles.wrong_role import Marks, resolve_role
from qvr_core.semantics.language.family import Family
from qvr_core.semantics.scope.families import family_named
from qvr_core.semantics.scope.scope import Scope
from qvr_core.semantics.types.codes import (
    UNEXPECTED_INIT,
)
from qvr_core.semantics.types.density import EXACT
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.arrows import (
    Arrow,
    Damaged,
    Sort,
)
from qvr_core.semantics.types.spaces import (
    Named,
)
from qvr_core.syntax.tree.declarations import MorphismDecl
from qvr_core.syntax.tree.names import Span


def check_morphism(decl: MorphismDecl, scope: Scope) -> Arrow:
    """The arrow that `decl` declares under the name `scope.owner` (replicated copies are renamed by the checker)."""
    scope.size_index = 0
    scope.declaring = True
    domain = check_object_expr(decl.domain, scope)
    codomain = check_object_expr(decl.codomain, scope)
    scope.declaring = False
    before = Marks.of(scope)
    arrow = of_role(decl, domain, codomain, scope)
    scope.doubtful = resolve_role(decl, before, _would_fit, scope)
    return arrow


def of_role(decl: MorphismDecl, domain: Named, codomain: Named, scope: Scope) -> Arrow:
    """The arrow of a declaration's role between these spaces."""
    settings = read_options(decl.options, _family_of(decl, scope), scope)
    if settings is None:
        return _damaged(decl, domain, codomain, scope)
    if decl.init is not None and not settings.role.takes_init:
        before = decl.codomain.span.end if decl.options is None else decl.options.span.end
        fix = Fix("Remove it", (Edit(scope.origin(Span(before, decl.init.span.end)), ""),))
        message = f"role `{settings.role.name}` takes nothing after `~`"
        scope.report(UNEXPECTED_INIT, message, decl.init.span, fixes=(fix,))
    return _BUILDERS[settings.role.name](decl, domain, codomain, settings, scope)


def _would_fit(decl: MorphismDecl, scope: Scope) -> bool:
    """Whether a declaration has no mistake; reports nothing."""
    quiet = Scope(scope.globals, scope.unit, scope.owner, scope.algebra, first_owner=scope.first_owner)
    domain, codomain = check_object_expr(decl.domain, quiet), check_object_expr(decl.codomain, quiet)
    of_role(decl, domain, codomain, quiet)
    return not quiet.mistaken


def _family_of(decl: MorphismDecl, scope: Scope) -> Family | None:
    name = family_name(decl.init)
    return family_named(name.text, scope) if name is not None else None


def _damaged(decl: MorphismDecl, domain: Named, codomain: Named, scope: Scope) -> Damaged:
    return Damaged(domain=domain, codomain=codomain, sort=Sort.SAMPLED, origin=scope.origin(decl.span), density=EXACT)


_BUILDERS = {
    "kernel": kernel,
    "embed": embed,
    "linear": linear,
    "conv": conv,
    "pool": pool,
    "norm": norm,
    "batch_norm": batch_norm,
    "dropout": dropout,
    "attention": attention,
    "position": position,
    "latent": latent,
    "observed": observed,
    "discretize": discretize,
}
