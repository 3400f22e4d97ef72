"""Morphism declarations: role, spaces, options, and what follows `~` (docs/reference.md#morphisms-and-roles)."""

from __future__ import annotations

from qvr_core.semantics.arrows.combinators import check_arrow_expr
from qvr_core.semantics.arrows.heads import Head, family_name, read_head
from qvr_core.semantics.arrows.objects import check_object_expr
from qvr_core.semantics.arrows.options import Settings, read_options, removal
from qvr_core.semantics.arrows.role_doubt import Marks, settle_role
from qvr_core.semantics.language.families import FAMILIES, suggested_head
from qvr_core.semantics.language.family import Family, support_words
from qvr_core.semantics.language.family_heads import head_problem
from qvr_core.semantics.scope.scope import Scope, show
from qvr_core.semantics.scope.sequences import as_sequence
from qvr_core.semantics.types.arrow_text import arrow_text
from qvr_core.semantics.types.codes import (
    FAMILY_MISMATCH,
    INVALID_OPTION,
    MISSING_FAMILY,
    MISSING_MATRIX,
    ROLE_MISMATCH,
    SORT_MISMATCH,
    UNEXPECTED_INIT,
    USELESS_OPTION,
)
from qvr_core.semantics.types.density import DETERMINISTIC, EXACT
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model import (
    Arrow,
    Attention,
    Damaged,
    Discretize,
    Embed,
    Kernel,
    Latent,
    LinearMap,
    Norm,
    Observed,
    Position,
    Sort,
)
from qvr_core.semantics.types.spaces import (
    Linear,
    Named,
    Real,
    Unknown,
    factors_of,
    has_seq,
    is_finite,
    is_real,
    is_unknown,
    item_of,
    width,
)
from qvr_core.syntax.tree import ArrowCall, MorphismDecl, ObjectExpr, Span, String


def check_morphism(decl: MorphismDecl, scope: Scope) -> Arrow:
    """The arrow that `decl` declares under the name `scope.owner` (replicated copies are renamed by the checker)."""
    scope.size_index = 0
    scope.declaring = True
    domain = check_object_expr(decl.domain, scope)
    codomain = check_object_expr(decl.codomain, scope)
    scope.declaring = False
    before = Marks.of(scope)
    arrow = _of_role(decl, domain, codomain, scope)
    scope.doubtful = settle_role(decl, before, _would_fit, scope)
    return arrow


def _of_role(decl: MorphismDecl, domain: Named, codomain: Named, scope: Scope) -> Arrow:
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
    _of_role(decl, domain, codomain, quiet)
    return not quiet.mistaken


def _family_of(decl: MorphismDecl) -> Family | None:
    name = family_name(decl.init)
    return FAMILIES.get(name.text) if name is not None else None


def _damaged(decl: MorphismDecl, domain: Named, codomain: Named, scope: Scope) -> Damaged:
    return Damaged(domain=domain, codomain=codomain, sort=Sort.SAMPLED, origin=scope.origin(decl.span), density=EXACT)


# ---------------------------------------------------------------- which spaces a role joins


def _demand(role: str, side: str, kind: str, space: Named, expr: ObjectExpr, decl: MorphismDecl, scope: Scope) -> bool:
    """Report where `space` is not of the `kind` ('finite' or 'real') that the role wants on this side."""
    plain = item_of(space.space)
    if is_unknown(plain) or (is_finite(plain) if kind == "finite" else is_real(plain)):
        return True
    is_what = "a finite set" if is_finite(plain) else "real" if is_real(plain) else "neither real nor finite"
    wanted = "a finite set" if kind == "finite" else "a real space"
    message = f"role `{role}` wants {wanted} as its {side}, but {show(space)} is {is_what}"
    scope.report(ROLE_MISMATCH, message, expr.span)
    return False


def _same_space(role: str, domain: Named, codomain: Named, decl: MorphismDecl, scope: Scope) -> None:
    scope.require_fit(
        domain,
        codomain,
        decl.codomain.span,
        ROLE_MISMATCH,
        f"role `{role}` keeps its space: the domain is",
        "the codomain is",
    )


def _one_element(role: str, domain: Named, codomain: Named, decl: MorphismDecl, scope: Scope) -> tuple[Named, Named]:
    """A declaration between sequences on both sides means its items: the arrow lifts by itself."""
    if not has_seq(domain.space) and not has_seq(codomain.space):
        return domain, codomain
    if has_seq(domain.space) != has_seq(codomain.space):
        expr = decl.domain if has_seq(domain.space) else decl.codomain
        scope.report(ROLE_MISMATCH, f"role `{role}` works on one element, not on a sequence", expr.span)
    return Named(item_of(domain.space), domain.written), Named(item_of(codomain.space), codomain.written)


# ---------------------------------------------------------------- one builder per role


def _kernel(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    domain, codomain = _one_element("kernel", domain, codomain, decl, scope)
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
    )


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
        reasons.update(scale=why, hidden_dim=why, param_source=why)
    elif is_finite(domain.space):
        why = f"the domain {domain.written} is finite: the parameters stand in a table"
        reasons.update(hidden_dim=why, param_source=why)
    elif settings.word("param_source") == "linear":
        reasons["hidden_dim"] = "`param_source=linear` has no hidden layer"
    for key, why in reasons.items():
        if key in settings.given and settings.given[key] != settings.role.options[key].default:
            option = settings.options[key]
            fixes = () if decl.options is None else (removal(decl.options, option, scope),)
            scope.report(USELESS_OPTION, f"`{key}` has no effect here: {why}", option.key.span, fixes=fixes)


def _embed(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    domain, codomain = _one_element("embed", domain, codomain, decl, scope)
    if _demand("embed", "domain", "finite", domain, decl.domain, decl, scope):
        _demand("embed", "codomain", "real", codomain, decl.codomain, decl, scope)
    return Embed(
        name=scope.owner,
        domain=domain,
        codomain=codomain,
        sort=Sort.DETERMINISTIC,
        origin=scope.origin(decl.span),
        density=DETERMINISTIC,
    )


def _linear(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    domain, codomain = _one_element("linear", domain, codomain, decl, scope)
    if _demand("linear", "domain", "real", domain, decl.domain, decl, scope):
        _demand("linear", "codomain", "real", codomain, decl.codomain, decl, scope)
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
    )


def _norm(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    domain, codomain = _one_element("norm", domain, codomain, decl, scope)
    if _demand("norm", "domain", "real", domain, decl.domain, decl, scope):
        _same_space("norm", domain, codomain, decl, scope)
    return Norm(
        name=scope.owner,
        domain=domain,
        codomain=codomain,
        sort=Sort.DETERMINISTIC,
        origin=scope.origin(decl.span),
        density=DETERMINISTIC,
    )


def _over_sequence(role: str, decl: MorphismDecl, domain: Named, codomain: Named, scope: Scope) -> tuple[Named, Named]:
    domain = Named(item_of(domain.space), domain.written.removeprefix("Seq "))
    codomain = Named(item_of(codomain.space), codomain.written.removeprefix("Seq "))
    if _demand(role, "domain", "real", domain, decl.domain, decl, scope):
        _same_space(role, domain, codomain, decl, scope)
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


def _latent(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    if _demand("latent", "domain", "finite", domain, decl.domain, decl, scope):
        _demand("latent", "codomain", "finite", codomain, decl.codomain, decl, scope)
    head = read_head(decl.init, scope) if decl.init is not None else None
    if head is not None and head.family.discrete:
        drawn = support_words(head.family)
        message = f"the prior of role `latent` is one of real numbers, but {head.family.name} draws {drawn}"
        scope.report(UNEXPECTED_INIT, message, head.name.span)
    scale = settings.number("scale")
    return Latent(
        name=scope.owner,
        domain=domain,
        codomain=codomain,
        sort=Sort.TENSOR,
        origin=scope.origin(decl.span),
        density=DETERMINISTIC,
        algebra=scope.algebra,
        scale=None if scale is None else float(scale),
        init=settings.word("init"),
        prior=None if head is None else (head.family.name, head.arguments or ()),
    )


def _observed(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    if _demand("observed", "domain", "finite", domain, decl.domain, decl, scope):
        _demand("observed", "codomain", "finite", codomain, decl.codomain, decl, scope)
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


def _discretize(decl: MorphismDecl, domain: Named, codomain: Named, settings: Settings, scope: Scope) -> Arrow:
    domain, codomain = _one_element("discretize", domain, codomain, decl, scope)
    if _demand("discretize", "domain", "real", domain, decl.domain, decl, scope):
        _demand("discretize", "codomain", "finite", codomain, decl.codomain, decl, scope)
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
    "kernel": _kernel,
    "embed": _embed,
    "linear": _linear,
    "norm": _norm,
    "attention": _attention,
    "position": _position,
    "latent": _latent,
    "observed": _observed,
    "discretize": _discretize,
}
