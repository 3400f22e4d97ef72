"""Roles `attention` and `position`: layers over the elements of a sequence."""

from __future__ import annotations

from qvr_core.semantics.arrows.options import Settings
from qvr_core.semantics.arrows.roles.declared import deterministic
from qvr_core.semantics.arrows.roles.spaces import demand, same_space
from qvr_core.semantics.scope.scope import Scope
from qvr_core.semantics.scope.sequences import as_sequence
from qvr_core.semantics.types.codes import (
    INVALID_OPTION,
)
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.arrows import (
    Arrow,
    Attention,
    Position,
)
from qvr_core.semantics.types.spaces import (
    Linear,
    Named,
    is_unknown,
    item_of,
    width,
)
from qvr_core.syntax.tree.declarations import MorphismDecl


def _over_sequence(role: str, decl: MorphismDecl, domain: Named, codomain: Named, scope: Scope) -> tuple[Named, Named]:
    domain = Named(item_of(domain.space), domain.written.removeprefix("Seq "))
    codomain = Named(item_of(codomain.space), codomain.written.removeprefix("Seq "))
    if demand(role, "domain", "real", domain, decl.domain, decl, scope):
        same_space(role, domain, codomain, decl, scope)
    return as_sequence(domain), as_sequence(codomain)


def attention(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    item = domain.written.removeprefix("Seq ")
    domain, codomain = _over_sequence("attention", decl, domain, codomain, scope)
    heads = settings.count("heads") or 1
    size = width(domain.space)
    if not is_unknown(domain.space) and not isinstance(size, Linear) and size % heads:
        near = min((n for n in range(1, int(size) + 1) if int(size) % n == 0), key=lambda n: abs(n - heads))
        scope.report(
            INVALID_OPTION,
            f"`heads` must divide the width, but {heads} does not divide {int(size)}, the width of `{item}`",
            settings.span("heads"),
            fixes=(Fix(f"Change to {near}", (Edit(scope.origin(settings.span("heads")), str(near)),)),),
        )
    return Attention(
        **deterministic(decl, domain, codomain, scope),
        heads=heads,
        causal=settings.flag("causal"),
        dropout=float(settings.number("dropout") or 0.0),
    )


def position(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    domain, codomain = _over_sequence("position", decl, domain, codomain, scope)
    return Position(
        **deterministic(decl, domain, codomain, scope),
        max_length=settings.count("max_length") or 512,
    )
