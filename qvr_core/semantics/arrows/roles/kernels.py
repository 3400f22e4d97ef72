"""Role `kernel`: conditional distributions, by a table, a network or fixed arguments."""

from __future__ import annotations

from qvr_core.semantics.arrows.family_calls import Head, read_head
from qvr_core.semantics.arrows.options import Settings, removal
from qvr_core.semantics.arrows.roles.spaces import one_element
from qvr_core.semantics.arrows.ties import read_tie
from qvr_core.semantics.arrows.weight_priors import Prior, read_option
from qvr_core.semantics.language.families import FAMILIES, suggested_head
from qvr_core.semantics.language.family_heads import head_problem
from qvr_core.semantics.scope.families import declared_in
from qvr_core.semantics.scope.scope import Scope, show
from qvr_core.semantics.types.codes import (
    FAMILY_MISMATCH,
    MISSING_FAMILY,
    USELESS_OPTION,
)
from qvr_core.semantics.types.density import EXACT
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.arrows import Arrow, Kernel, Sort, Tie
from qvr_core.semantics.types.spaces import (
    Named,
    Unknown,
    is_finite,
    is_real,
    is_unknown,
)
from qvr_core.syntax.tree.declarations import MorphismDecl
from qvr_core.syntax.tree.options import CallValue


def kernel(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    """The arrow of a declaration with role `kernel`."""
    domain, codomain = one_element("kernel", domain, codomain, decl, scope)
    head = read_head(decl.init, scope) if decl.init is not None else None
    tabular = head is None and decl.init is None and _tabular(decl, domain, codomain, scope)
    fits = head is None or _check_head(head, codomain, decl, scope)
    if tabular or (fits and head is not None):
        _check_effects(head, domain, decl, settings, scope)
    if not fits:
        # either the family or the codomain is wrong: what uses the arrow says nothing more
        codomain = Named(Unknown(), codomain.written)
    options = tuple(
        (key, settings.given[key]) for key in (head.family.head_options if head else ()) if key in settings.given
    )
    return Kernel(
        name=scope.owner,
        domain=domain,
        codomain=codomain,
        sort=Sort.SAMPLED,
        origin=scope.origin(decl.span),
        density=EXACT,
        family=head.family.name if head is not None else None,
        fixed=head.arguments if head is not None else None,
        scale=float(settings.number("scale") or 1.0),
        param_source=settings.word("param_source"),
        hidden_dim=settings.count("hidden_dim") or 64,
        options=options,
        prior=_prior(settings, scope),
        tie=_tie(head, domain, codomain, settings, scope) if fits else None,
        bias=settings.flag("bias"),
        declared=None if head is None else next(declared_in(head.family.name, scope), None),
    )


def _tie(head: Head | None, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Tie | None:
    """The matrix of `tie=`; None where it has no place, which `_check_effects` tells."""
    option = settings.options.get("tie")
    fixed = head is not None and head.arguments is not None
    if option is None or "tie" not in settings.given or fixed or not is_real(domain.space):
        return None
    family = head.family if head is not None else None
    return read_tie(option, family, domain, codomain, settings.given, scope)


def _prior(settings: Settings, scope: Scope) -> Prior | None:
    option = settings.options.get("prior")
    return read_option(option.value, scope) if option is not None and isinstance(option.value, CallValue) else None


def _tabular(decl: MorphismDecl, domain: Named, codomain: Named, scope: Scope) -> bool:
    """Whether a table of probabilities goes between the spaces; reports where it does not."""
    if is_unknown(domain.space) or is_unknown(codomain.space):
        return True
    if is_finite(domain.space) and is_finite(codomain.space):
        return True
    family = suggested_head(codomain.space) or next(iter(FAMILIES))
    what = "into" if not is_finite(codomain.space) else "from"
    space = codomain if what == "into" else domain
    scope.report(
        MISSING_FAMILY,
        f"a kernel {what} {show(space)} needs a family, such as `~ {family}`",
        decl.codomain.span,
        fixes=(Fix(f"Add `~ {family}`", (Edit(scope.origin(decl.span), f" ~ {family}", "after"),)),),
    )
    return False


def _check_head(head: Head, codomain: Named, decl: MorphismDecl, scope: Scope) -> bool:
    problem = head_problem(head.family, codomain.space)
    if problem is None:
        return True
    preferred = suggested_head(codomain.space, instead_of=head.family.name)
    fixes = () if preferred is None else (
        Fix(f"Change to `{preferred}`", (Edit(scope.origin(head.name.span), preferred),)),
    )  # fmt: skip
    scope.report(
        FAMILY_MISMATCH, f"`{decl.names[0].text}` lands in {show(codomain)}: {problem}", head.name.span, fixes=fixes
    )
    return False


def _check_effects(head: Head | None, domain: Named, decl: MorphismDecl, settings: Settings, scope: Scope) -> None:
    """Options that change nothing; repeating a default is fine."""
    family = head.family.name if head is not None else None
    reasons: dict[str, str] = {}
    if head is None:
        reasons["scale"] = "a table of probabilities has no scale"
    elif not head.family.has_scale:
        reasons["scale"] = f"{family} has no scale"
    if head is not None and head.arguments is not None:
        why = f"the arguments of `{family}` fix the distribution"
        reasons.update(scale=why, hidden_dim=why, param_source=why, prior=why, tie=why, bias=why)
    elif is_finite(domain.space):
        why = f"the domain {domain.written} is finite: the parameters stand in a table"
        reasons.update(hidden_dim=why, param_source=why, tie=why, bias=why)
    elif not is_unknown(domain.space) and not is_real(domain.space):
        reasons["tie"] = f"the domain {domain.written} has finite factors, whose vectors stand in tables of their own"
    elif "tie" in settings.options:
        why = "a head with `tie` is one linear map"
        reasons.update(hidden_dim=why, prior="the weights are those of the arrow that `tie` names")
        if settings.word("param_source") == "mlp":
            reasons["param_source"] = why
    elif settings.word("param_source") == "linear":
        reasons["hidden_dim"] = "`param_source=linear` has no hidden layer"
    if "tie" not in settings.options:
        reasons.setdefault("bias", "only a head whose matrix is that of another arrow, by `tie=`, can do without")
    for key, why in reasons.items():
        default = settings.role.options[key].default
        if key in settings.options and (key in ("prior", "tie") or settings.given.get(key, default) != default):
            option = settings.options[key]
            fixes = () if decl.options is None else (removal(decl.options, option, scope),)
            scope.report(USELESS_OPTION, f"`{key}` has no effect here: {why}", option.key.span, fixes=fixes)
