"""Role `discretize`: a bounded number into bins."""

from __future__ import annotations

from qvr_core.semantics.arrows.options import Settings
from qvr_core.semantics.arrows.roles.spaces import demand, one_element
from qvr_core.semantics.scope.scope import Scope, show
from qvr_core.semantics.types.codes import (
    INVALID_OPTION,
    ROLE_MISMATCH,
)
from qvr_core.semantics.types.density import EXACT
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.arrows import (
    Arrow,
    Discretize,
    Sort,
)
from qvr_core.semantics.types.spaces import (
    Named,
    Real,
    factors_of,
)
from qvr_core.syntax.tree.declarations import MorphismDecl


def discretize(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
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
