"""Priors on the weights of a morphism: what may stand behind `~` or `prior=`, and the site that the weights are."""

from __future__ import annotations

from dataclasses import replace

from qvr_core.semantics.arrows.family_calls import filled_in, missing_message, read_head
from qvr_core.semantics.arrows.parameters import UnknownSize, parameter_shapes
from qvr_core.semantics.language.family import Family, support_words
from qvr_core.semantics.scope.families import declared_in
from qvr_core.semantics.scope.scope import ArrowEntry, Scope
from qvr_core.semantics.types.codes import FAMILY_ARGUMENTS, UNEXPECTED_INIT
from qvr_core.semantics.types.model.arrows import Arrow, Embed, Kernel, LinearMap, Ref
from qvr_core.semantics.types.model.families import Weights
from qvr_core.semantics.types.spaces import Finite
from qvr_core.semantics.types.walk import fold, parts
from qvr_core.syntax.tree.arrows import ArrowArg, ArrowCall, ArrowExpr
from qvr_core.syntax.tree.options import CallValue, Number

Prior = tuple[str, tuple[tuple[str, float], ...]]


def read_prior(expr: ArrowExpr, scope: Scope) -> Prior | None:
    """The prior that an expression is, a family of real numbers; None (reported) where it is none."""
    before = len(scope.diagnostics)
    head = read_head(expr, scope)
    if head is None or len(scope.diagnostics) > before:
        return None
    family = head.family
    if not _is_real(family):
        message = f"weights are real numbers, but {family.name} draws {support_words(family)}"
        if family.improper:
            message = f"{family.name} has no density that integrates to 1, so weights cannot be drawn from it"
        scope.report(UNEXPECTED_INIT, message, head.name.span)
        return None
    wanted = [parameter.name for parameter in family.parameters if parameter.default is None]
    if head.arguments is None and wanted:
        fixes = filled_in(family, wanted, (), head.name.span, head.name.span, scope)
        scope.report(FAMILY_ARGUMENTS, missing_message(family, wanted), head.name.span, fixes=fixes)
        return None
    return family.name, head.arguments or ()


def _is_real(family: Family) -> bool:
    support = family.support
    scalar = family.event == 0 and not family.discrete and not family.improper
    bounded = support.low is not None or support.high is not None or family.bounded_by or family.above
    return scalar and support.kind == "real" and not bounded


def read_option(value: CallValue, scope: Scope) -> Prior | None:
    """The prior of `[prior=Normal(0.0, 1.0)]`."""
    args = tuple(ArrowArg(arg.key, arg.value, arg.span) for arg in value.args if isinstance(arg.value, Number))
    for arg in value.args:
        if not isinstance(arg.value, Number):
            scope.report(FAMILY_ARGUMENTS, "the arguments of a prior are numbers", arg.span)
            return None
    return read_prior(ArrowCall(value.func, args, value.span), scope)


# ---------------------------------------------------------------- the sites of weights


def weights_of(arrow: Arrow, scope: Scope) -> tuple[Weights, ...]:
    """The weights with a prior that an arrow applies, each morphism once."""

    def of(part: Arrow, inner: list[tuple[Weights, ...]]) -> tuple[Weights, ...]:
        match part:
            case Embed(prior=tuple()) | LinearMap(prior=tuple()) | Kernel(prior=tuple()):
                own = _own(part, scope)
                return () if own is None else (own,)
            case Ref(name=name):
                entry = scope.lookup(name)
                return entry.weights if isinstance(entry, ArrowEntry) else ()
            case _:
                return tuple(dict.fromkeys(one for each in inner for one in each))

    return fold(arrow, parts, of)


def renamed(weights: tuple[Weights, ...], name: str) -> tuple[Weights, ...]:
    """The weights of a copy of a replicated morphism."""
    return tuple(replace(one, name=name) for one in weights)


def _own(arrow: Embed | LinearMap | Kernel, scope: Scope) -> Weights | None:
    assert arrow.prior is not None
    try:
        family, arguments = arrow.prior
        return Weights(arrow.name, family, arguments, _sets(arrow), tuple(declared_in(family, scope)))
    except UnknownSize:
        return None


def _sets(arrow: Embed | LinearMap | Kernel) -> tuple[Finite, ...]:
    """The axes of a morphism's weights: of a table its elements and columns; of a linear map its outputs and inputs,
    with the bias behind the last input; all numbers in a row where there are several layers."""
    shapes = parameter_shapes(arrow)
    if isinstance(arrow, Embed):
        elements, columns = shapes["weight"]
        domain = arrow.domain.space
        nominal = domain.nominal if isinstance(domain, Finite) else None
        return (Finite(elements, nominal), Finite(columns))
    if isinstance(arrow, LinearMap) and arrow.rank is None:
        out, inside = shapes["weight"]
        return (Finite(out), Finite(inside + arrow.bias))
    return (Finite(sum(_product(shape) for shape in shapes.values())),)


def _product(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total
