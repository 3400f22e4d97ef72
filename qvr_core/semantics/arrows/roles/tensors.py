"""Roles `latent` and `observed`: tensor arrows that are learned or given."""

from __future__ import annotations

import math

from qvr_core.semantics.arrows.combinators import check_arrow_expr
from qvr_core.semantics.arrows.family_calls import read_head
from qvr_core.semantics.arrows.options import Settings
from qvr_core.semantics.arrows.roles.spaces import demand
from qvr_core.semantics.language.compositions import STARTS
from qvr_core.semantics.language.family import support_words
from qvr_core.semantics.scope.scope import Scope
from qvr_core.semantics.types.arrow_text import arrow_text
from qvr_core.semantics.types.codes import (
    INVALID_OPTION,
    MISSING_MATRIX,
    ROLE_MISMATCH,
    SORT_MISMATCH,
    UNEXPECTED_INIT,
)
from qvr_core.semantics.types.density import DETERMINISTIC
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.arrows import Arrow, Damaged, Latent, Observed, Sort
from qvr_core.semantics.types.spaces import (
    Named,
)
from qvr_core.syntax.tree.arrows import ArrowCall
from qvr_core.syntax.tree.declarations import MorphismDecl
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.options import String


def latent(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    """The arrow of a declaration with role `latent`: a matrix that is learned."""
    if demand("latent", "domain", "finite", domain, decl.domain, decl, scope):
        demand("latent", "codomain", "finite", codomain, decl.codomain, decl, scope)
    head = read_head(decl.init, scope) if decl.init is not None else None
    if head is not None and head.family.discrete:
        drawn = support_words(head.family)
        message = f"the prior of role `latent` is one of real numbers, but {head.family.name} draws {drawn}"
        scope.report(UNEXPECTED_INIT, message, head.name.span)
    scale, start = settings.number("scale"), settings.given.get("init")
    start = start if isinstance(start, float) and _can_start(start, settings, scope) else None
    return Latent(
        name=scope.owner,
        domain=domain,
        codomain=codomain,
        sort=Sort.TENSOR,
        origin=scope.origin(decl.span),
        density=DETERMINISTIC,
        algebra=scope.algebra,
        scale=None if scale is None else float(scale),
        init=settings.word("init") if start is None else "near",
        start=start,
        prior=None if head is None else (head.family.name, head.arguments or ()),
    )


def _can_start(start: float, settings: Settings, scope: Scope) -> bool:
    """Whether weights of the composition in force can start near a number; reported where they cannot."""
    name = scope.algebra
    low, high = STARTS.get(name, (0.0, 1.0))
    if low < start < high:
        return True
    if low >= high:
        message = f"weights of `{name}` start by a softmax or a threshold: no number says where"
    else:
        bounds = "above 0" if math.isinf(high) else f"between {low:g} and {high:g}"
        message = f"weights of `{name}` lie {bounds}: they cannot start near {start:g}"
    scope.report(INVALID_OPTION, message, settings.span("init"))
    return False


def observed(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    """The arrow of a declaration with role `observed`: a matrix that is given."""
    if demand("observed", "domain", "finite", domain, decl.domain, decl, scope):
        demand("observed", "codomain", "finite", codomain, decl.codomain, decl, scope)
    source, arrow = _given(decl, domain, codomain, settings, scope)
    return Observed(
        name=scope.owner,
        domain=domain,
        codomain=codomain,
        sort=Sort.TENSOR,
        origin=scope.origin(decl.span),
        density=DETERMINISTIC,
        algebra=scope.algebra,
        source=source,
        arrow=arrow,
    )


def _given(
    decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope
) -> tuple[str | None, Arrow | None]:
    init = decl.init
    if init is None:
        text = f'from_data("{scope.owner}")'
        fix = Fix(f"Add `~ {text}`", (Edit(scope.origin(decl.span), f" ~ {text}", "after"),))
        message = f"nothing says what the matrix of `{scope.owner}` is: write `~ {text}`, or a tensor arrow behind `~`"
        scope.report(MISSING_MATRIX, message, settings.span("role"), fixes=(fix,))
        return None, None
    if isinstance(init, ArrowCall) and init.func.text == "from_data":
        if len(init.args) == 1 and isinstance(init.args[0].value, String):
            return init.args[0].value.value, None
        scope.report(UNEXPECTED_INIT, '`from_data` takes the name of the data: from_data("name")', init.span)
        return None, None
    arrow = check_arrow_expr(init, scope)
    text = f"`{arrow_text(init)}`"
    if arrow.sort is not Sort.TENSOR and not isinstance(arrow, Damaged):
        scope.report(SORT_MISMATCH, f"{text} is no tensor arrow: an observed arrow is a given matrix", init.span)
        return None, None
    if _side("reads", arrow.domain, domain, init.span, text, scope):
        _side("gives", arrow.codomain, codomain, init.span, text, scope)
    return None, arrow


def _side(verb: str, given: Named, wanted: Named, span: Span, text: str, scope: Scope) -> bool:
    return scope.require_fit(given, wanted, span, ROLE_MISMATCH, f"{text} {verb}", f"`{scope.owner}` is declared with")
