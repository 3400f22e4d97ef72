"""Roles `embed`, `linear`, `norm`, `batch_norm` and `dropout`: layers that see one element of a sequence alone."""

from __future__ import annotations

from qvr_core.semantics.arrows.options import Settings
from qvr_core.semantics.arrows.roles.declared import deterministic
from qvr_core.semantics.arrows.roles.spaces import demand, one_element, same_space
from qvr_core.semantics.arrows.weight_priors import read_prior
from qvr_core.semantics.scope.scope import Scope, show
from qvr_core.semantics.types.codes import (
    INVALID_OPTION,
)
from qvr_core.semantics.types.model.arrows import (
    Arrow,
    BatchNorm,
    Dropout,
    Embed,
    LinearMap,
    Norm,
)
from qvr_core.semantics.types.spaces import (
    Linear,
    Named,
    is_unknown,
    width,
)
from qvr_core.syntax.tree.declarations import MorphismDecl


def _same_element(role: str, decl: MorphismDecl, domain: Named, codomain: Named, scope: Scope) -> tuple[Named, Named]:
    domain, codomain = one_element(role, domain, codomain, decl, scope)
    if demand(role, "domain", "real", domain, decl.domain, decl, scope):
        same_space(role, domain, codomain, decl, scope)
    return domain, codomain


def embed(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    domain, codomain = one_element("embed", domain, codomain, decl, scope)
    if demand("embed", "domain", "finite", domain, decl.domain, decl, scope):
        demand("embed", "codomain", "real", codomain, decl.codomain, decl, scope)
    return Embed(
        **deterministic(decl, domain, codomain, scope),
        prior=None if decl.init is None else read_prior(decl.init, scope),
    )


def linear(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    domain, codomain = one_element("linear", domain, codomain, decl, scope)
    if demand("linear", "domain", "real", domain, decl.domain, decl, scope):
        demand("linear", "codomain", "real", codomain, decl.codomain, decl, scope)
    rank = settings.count("rank")
    if rank is not None:
        for side in (domain, codomain):
            size = width(side.space)
            if not is_unknown(side.space) and not isinstance(size, Linear) and rank >= size:
                scope.report(
                    INVALID_OPTION,
                    f"`rank` must be below both widths, but {rank} is not below {show(side)}",
                    settings.span("rank"),
                )
                break
    return LinearMap(
        **deterministic(decl, domain, codomain, scope),
        bias=settings.flag("bias"),
        rank=rank,
        init=settings.word("init"),
        prior=None if decl.init is None else read_prior(decl.init, scope),
    )


def norm(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    domain, codomain = _same_element("norm", decl, domain, codomain, scope)
    return Norm(
        **deterministic(decl, domain, codomain, scope),
    )


def batch_norm(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    domain, codomain = _same_element("batch_norm", decl, domain, codomain, scope)
    return BatchNorm(
        **deterministic(decl, domain, codomain, scope),
        momentum=float(settings.number("momentum") or 0.0),
    )


def dropout(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    domain, codomain = _same_element("dropout", decl, domain, codomain, scope)
    return Dropout(
        **deterministic(decl, domain, codomain, scope),
        p=float(settings.number("p") or 0.0),
        once=settings.flag("once"),
    )
