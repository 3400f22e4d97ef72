"""Morphism declarations: role, spaces, options, and what follows `~` (docs/reference.md#morphisms-and-roles)."""

from __future__ import annotations

from qvr_core.semantics.arrows.heads import family_name
from qvr_core.semantics.arrows.kernels import kernel
from qvr_core.semantics.arrows.objects import check_object_expr
from qvr_core.semantics.arrows.options import Settings, read_options
from qvr_core.semantics.arrows.role_doubt import Marks, resolve_role
from qvr_core.semantics.arrows.role_spaces import demand, one_element, same_space
from qvr_core.semantics.arrows.tensor_roles import latent, observed
from qvr_core.semantics.arrows.weight_priors import read_prior
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.family import Family
from qvr_core.semantics.scope.scope import Scope, show
from qvr_core.semantics.scope.sequences import as_sequence
from qvr_core.semantics.types.codes import (
    INVALID_OPTION,
    ROLE_MISMATCH,
    UNEXPECTED_INIT,
)
from qvr_core.semantics.types.density import DETERMINISTIC, EXACT
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.arrows import (
    Arrow,
    Attention,
    Damaged,
    Discretize,
    Dropout,
    Embed,
    LinearMap,
    Norm,
    Position,
    Sort,
)
from qvr_core.semantics.types.spaces import (
    Linear,
    Named,
    Real,
    factors_of,
    is_unknown,
    item_of,
    width,
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
    settings = read_options(decl.options, _family_of(decl), scope)
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


def _family_of(decl: MorphismDecl) -> Family | None:
    name = family_name(decl.init)
    return FAMILIES.get(name.text) if name is not None else None


def _damaged(decl: MorphismDecl, domain: Named, codomain: Named, scope: Scope) -> Damaged:
    return Damaged(domain=domain, codomain=codomain, sort=Sort.SAMPLED, origin=scope.origin(decl.span), density=EXACT)


# ---------------------------------------------------------------- one builder per role


def _embed(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    domain, codomain = one_element("embed", domain, codomain, decl, scope)
    if demand("embed", "domain", "finite", domain, decl.domain, decl, scope):
        demand("embed", "codomain", "real", codomain, decl.codomain, decl, scope)
    return Embed(
        name=scope.owner,
        prior=None if decl.init is None else read_prior(decl.init, scope),
        domain=domain,
        codomain=codomain,
        sort=Sort.DETERMINISTIC,
        origin=scope.origin(decl.span),
        density=DETERMINISTIC,
    )


def _linear(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
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
        name=scope.owner,
        domain=domain,
        codomain=codomain,
        sort=Sort.DETERMINISTIC,
        origin=scope.origin(decl.span),
        density=DETERMINISTIC,
        bias=settings.flag("bias"),
        rank=rank,
        init=settings.word("init"),
        prior=None if decl.init is None else read_prior(decl.init, scope),
    )


def _same_element(role: str, decl: MorphismDecl, domain: Named, codomain: Named, scope: Scope) -> tuple[Named, Named]:
    domain, codomain = one_element(role, domain, codomain, decl, scope)
    if demand(role, "domain", "real", domain, decl.domain, decl, scope):
        same_space(role, domain, codomain, decl, scope)
    return domain, codomain


def _norm(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    domain, codomain = _same_element("norm", decl, domain, codomain, scope)
    return Norm(
        name=scope.owner,
        domain=domain,
        codomain=codomain,
        sort=Sort.DETERMINISTIC,
        origin=scope.origin(decl.span),
        density=DETERMINISTIC,
    )


def _dropout(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    domain, codomain = _same_element("dropout", decl, domain, codomain, scope)
    return Dropout(
        name=scope.owner,
        domain=domain,
        codomain=codomain,
        sort=Sort.DETERMINISTIC,
        origin=scope.origin(decl.span),
        density=DETERMINISTIC,
        p=float(settings.number("p") or 0.0),
        once=settings.flag("once"),
    )


def _over_sequence(role: str, decl: MorphismDecl, domain: Named, codomain: Named, scope: Scope) -> tuple[Named, Named]:
    domain = Named(item_of(domain.space), domain.written.removeprefix("Seq "))
    codomain = Named(item_of(codomain.space), codomain.written.removeprefix("Seq "))
    if demand(role, "domain", "real", domain, decl.domain, decl, scope):
        same_space(role, domain, codomain, decl, scope)
    return as_sequence(domain), as_sequence(codomain)


def _attention(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
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
        name=scope.owner,
        domain=domain,
        codomain=codomain,
        sort=Sort.DETERMINISTIC,
        origin=scope.origin(decl.span),
        density=DETERMINISTIC,
        heads=heads,
        causal=settings.flag("causal"),
        dropout=float(settings.number("dropout") or 0.0),
    )


def _position(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    domain, codomain = _over_sequence("position", decl, domain, codomain, scope)
    return Position(
        name=scope.owner,
        domain=domain,
        codomain=codomain,
        sort=Sort.DETERMINISTIC,
        origin=scope.origin(decl.span),
        density=DETERMINISTIC,
        max_length=settings.count("max_length") or 512,
    )


def _discretize(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    domain, codomain = one_element("discretize", domain, codomain, decl, scope)
    if demand("discretize", "domain", "real", domain, decl.domain, decl, scope):
        demand("discretize", "codomain", "finite", codomain, decl.codomain, decl, scope)
    unbounded = [f for f in factors_of(domain.space) if isinstance(f, Real) and (f.low is None or f.high is None)]
    if unbounded:
        message = f"role `discretize` wants a bounded domain, such as `Real 1 [low=0.0, high=1.0]`, not {show(domain)}"
        scope.report(ROLE_MISMATCH, message, decl.domain.span)
    size = getattr(codomain.space, "size", None)
    bins = settings.count("bins")
    if bins is not None and isinstance(size, int) and bins != size:
        scope.report(
            INVALID_OPTION,
            f"`bins` is {bins}, but the codomain {show(codomain)} has {size} elements",
            settings.span("bins"),
            fixes=(Fix(f"Change to {size}", (Edit(scope.origin(settings.span("bins")), str(int(size))),)),),
        )
    return Discretize(
        name=scope.owner,
        domain=domain,
        codomain=codomain,
        sort=Sort.SAMPLED,
        origin=scope.origin(decl.span),
        density=EXACT,
        bins=bins or (int(size) if isinstance(size, int) else 1),
    )


_BUILDERS = {
    "kernel": kernel,
    "embed": _embed,
    "linear": _linear,
    "norm": _norm,
    "dropout": _dropout,
    "attention": _attention,
    "position": _position,
    "latent": latent,
    "observed": observed,
    "discretize": _discretize,
}
