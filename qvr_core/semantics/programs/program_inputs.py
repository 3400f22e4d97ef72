"""Inputs and typed parameters of a program's header."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from qvr_core.semantics.arithmetic.broadcasting import SCALAR
from qvr_core.semantics.arrows.objects import check_object_expr, written
from qvr_core.semantics.arrows.own_arrows import own_arrow
from qvr_core.semantics.arrows.template_arguments import check_default, role_of, shown_default
from qvr_core.semantics.scope.environment import WHOLE_INPUT, Binding
from qvr_core.semantics.scope.scope import RIGID, Argument, ArrowEntry, Entry, ObjectEntry, Scope
from qvr_core.semantics.types.codes import UNSUPPORTED
from qvr_core.semantics.types.density import EXACT
from qvr_core.semantics.types.model.arrows import Sort
from qvr_core.semantics.types.model.expressions import Apply, Expr, ExprBase, FieldOf, ValueType
from qvr_core.semantics.types.model.programs import Input, TemplateParameter
from qvr_core.semantics.types.model.steps import (
    ArrowDraw,
    MarginalizeModel,
    ObserveModel,
    PredictModel,
    SampleModel,
    StepModel,
)
from qvr_core.semantics.types.program_codes import BOUND_TWICE, NOT_A_VALUE, PROGRAM_INPUTS
from qvr_core.semantics.types.spaces import (
    Finite,
    Linear,
    Named,
    Product,
    Seq,
    Space,
    Unknown,
    factors_of,
    has_terms,
    product,
    sequence_of,
)
from qvr_core.semantics.types.walk import Node, children, sites, until_arrows, walk
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.declarations import Parameter, ProgramHeader
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.objects import ObjectExpr, ParenObject, ProductExpr


@immutable
class InputFactor:
    """A factor of the domain: the name of the input that it belongs to (or a made-up one) and its space."""

    name: str
    named: Named
    span: Span
    given: bool


def check_inputs(header: ProgramHeader, domain: Named, scope: Scope) -> tuple[InputFactor, ...]:
    """The untyped inputs matched with the factors of the domain."""
    plain = [parameter for parameter in header.parameters or () if parameter.kind is None]
    _check_distinct(header.parameters or (), scope)
    flat = [
        InputFactor(f"#{index}", Named(space, text), header.domain.span, False)
        for index, (space, text) in enumerate(_flat(domain, header.domain))
    ]
    if not plain:
        return tuple(flat)
    if isinstance(domain.space, Unknown):
        return tuple(InputFactor(p.name.text, Named(Unknown(), "?"), p.name.span, True) for p in plain)
    written_factors = _written(header.domain)
    if len(plain) == len(written_factors):
        spaces = [check_object_expr(factor, _quiet(scope), terms=True) for factor in written_factors]
        return tuple(InputFactor(p.name.text, space, p.name.span, True) for p, space in zip(plain, spaces, strict=True))
    if len(plain) == len(flat):
        return tuple(
            InputFactor(p.name.text, factor.named, p.name.span, True) for p, factor in zip(plain, flat, strict=True)
        )
    if len(plain) == 1:
        return (InputFactor(plain[0].name.text, domain, plain[0].name.span, True),)
    inputs = f"{len(plain)} inputs"
    factors = "one factor" if len(flat) == 1 else f"{len(flat)} factors"
    span = Span(plain[0].span.start, plain[-1].span.end)
    message = f"there are {inputs}, but the domain `{domain.written}` has {factors}"
    scope.report(PROGRAM_INPUTS, message, span)
    return tuple(InputFactor(p.name.text, Named(Unknown(), "?"), p.name.span, True) for p in plain)


def _quiet(scope: Scope) -> Scope:
    # the domain has been checked as a whole; its factors are only read again
    return Scope(
        scope.globals, scope.unit, scope.owner, scope.algebra, local=scope.local, local_sizes=scope.local_sizes
    )


def _check_distinct(parameters: tuple[Parameter, ...], scope: Scope) -> None:
    seen: set[str] = set()
    for parameter in parameters:
        name = parameter.name
        if name.text in seen:
            scope.report(BOUND_TWICE, f"there are two inputs called `{name.text}`", name.span)
        seen.add(name.text)


def _written(expr: ObjectExpr) -> tuple[ObjectExpr, ...]:
    while isinstance(expr, ParenObject):
        expr = expr.inner
    return expr.factors if isinstance(expr, ProductExpr) else (expr,)


def _flat(domain: Named, expr: ObjectExpr) -> list[tuple[Space, str]]:
    space = domain.space
    if not isinstance(space, Product):
        return [(space, domain.written)]
    parts = _written(expr)
    texts = [written(part) for part in parts] if len(parts) == len(space.factors) else []
    names = space.names
    return [
        (factor, texts[index] if texts else names[index] or f"factor {index + 1}")
        for index, factor in enumerate(space.factors)
    ]


def input_bindings(
    factors: tuple[InputFactor, ...], lifted: frozenset[str], scope: Scope
) -> tuple[dict[str, Binding], Named]:
    """The inputs by name, and the whole input under `WHOLE_INPUT`, sequences where `lifted` says so."""
    bindings: dict[str, Binding] = {}
    spaces: list[tuple[str | None, Space]] = []
    for factor in factors:
        named = _lifted(factor.named) if factor.name in lifted else factor.named
        spaces.append((factor.named.written, named.space))
        if factor.given:
            kind = ValueType(named.space, rows=True)
            bindings[factor.name] = Binding("input", kind, named, scope.origin(factor.span), frozenset((factor.name,)))
    text = " * ".join(_lifted(f.named).written if f.name in lifted else f.named.written for f in factors)
    whole = Named(product(spaces), text)
    bindings[WHOLE_INPUT] = Binding(
        "input",
        ValueType(whole.space, rows=True),
        whole,
        scope.origin(factors[0].span),
        frozenset(factor.name for factor in factors),
    )
    return bindings, whole


def _lifted(named: Named) -> Named:
    if isinstance(named.space, Unknown):
        return named
    inner = f"({named.written})" if isinstance(named.space, Product) else named.written
    return Named(sequence_of(named.space), f"Seq {inner}")


def flat_names(factors: tuple[InputFactor, ...]) -> tuple[str, ...]:
    """The input's name for every flat factor of the domain."""
    return tuple(factor.name for factor in factors for _ in factors_of(factor.named.space))


def model_inputs(factors: tuple[InputFactor, ...], bindings: Mapping[str, Binding]) -> tuple[Input, ...]:
    return tuple(
        Input(
            name=factor.name if factor.given else None,
            space=bindings[factor.name].named if factor.given else factor.named,
        )
        for factor in factors
    )


# ---------------------------------------------------------------- terms


def check_term_uses(steps: Sequence[StepModel], domain: Named, header: Span, scope: Scope) -> None:
    """Report what a program does with a term other than to give it to an arrow."""
    drawn = (one.draw for one in sites(steps, SampleModel, ObserveModel, PredictModel, MarginalizeModel))
    made = any(isinstance(one, ArrowDraw) and has_terms(one.arrow.codomain.space) for one in drawn)
    if not made and not has_terms(domain.space):
        return
    if any(isinstance(factor, Seq) and has_terms(factor) for factor in factors_of(domain.space)):
        message = "a step reads this input as a sequence, and there are no sequences of terms yet: a row has one term"
        scope.report(UNSUPPORTED, message, header)
        return
    for wrong in (one for step in steps for one in _computed_with(step)):
        message = "a term is no number: an encoder makes numbers of it, `let code = encode(term)`"
        scope.report(NOT_A_VALUE, message, wrong.origin)


def _computed_with(step: StepModel) -> Iterator[Expr]:
    """The terms in a step that are no arguments of an arrow."""
    given: set[int] = set()
    for node in walk(step, until_arrows):
        if isinstance(node, Apply | FieldOf):
            given.update(map(id, children(node)))
        elif isinstance(drawn := getattr(getattr(node, "site", None), "draw", None), ArrowDraw):
            given.update(map(id, drawn.args or ()))
        if _is_term(node) and id(node) not in given:
            yield node  # pyright: ignore[reportReturnType]


def _is_term(node: Node) -> bool:
    return isinstance(node, ExprBase) and node.type.space is not None and has_terms(node.type.space)


# ---------------------------------------------------------------- typed parameters


def check_template(
    header: ProgramHeader, scope: Scope, arguments: Mapping[str, Argument] | None
) -> tuple[tuple[TemplateParameter, ...], dict[str, Binding]]:
    """The typed parameters; their names are made to stand for `arguments`, or for symbols where there are none."""
    found: list[TemplateParameter] = []
    bindings: dict[str, Binding] = {}
    for parameter in header.parameters or ():
        if parameter.kind is None:
            continue
        name, kind = parameter.name.text, parameter.kind.text
        role = role_of(parameter.default) if kind == "Mor" else None
        if role is not None and isinstance(scope.lookup(role.text), ArrowEntry):
            role = None
        if parameter.default is not None and role is None:
            check_default(parameter, scope)
        given = None if arguments is None else arguments.get(name)
        mor = None
        if kind == "Mor":
            mor = _mor(parameter, scope)
            entry = None
            if role is not None and mor is not None and given is None:
                numbers = {key: binding.constant for key, binding in bindings.items()}
                entry = own_arrow(parameter, role, mor, numbers, scope)
            scope.local[name] = entry or _arrow_parameter(name, mor, given)
        elif kind in ("FinSet", "Object"):
            scope.local[name] = _object_parameter(name, kind, given)
        else:
            bindings[name] = _number_parameter(parameter, kind, given, scope)
        found.append(TemplateParameter(name=name, kind=kind, mor=mor, default=shown_default(parameter)))
    return tuple(found), bindings


def _mor(parameter: Parameter, scope: Scope) -> tuple[Named, Named] | None:
    if parameter.mor is None:
        return None
    return check_object_expr(parameter.mor[0], scope), check_object_expr(parameter.mor[1], scope)


def _arrow_parameter(name: str, mor: tuple[Named, Named] | None, given: Argument | None) -> Entry:
    if isinstance(given, ArrowEntry):
        return given
    unknown = Named(Unknown(), "?")
    domain, codomain = mor or (unknown, unknown)
    return ArrowEntry(name, "parameter", domain, codomain, Sort.SAMPLED, EXACT)


def _object_parameter(name: str, kind: str, given: Argument | None) -> Entry:
    if isinstance(given, ObjectEntry):
        return ObjectEntry(name, given.space)
    size = Linear(0, ((f"{RIGID}{name}", 1),))
    space: Space = Finite(size, name) if kind == "FinSet" else Unknown()
    return ObjectEntry(name, Named(space, name))


def _number_parameter(parameter: Parameter, kind: str, given: Argument | None, scope: Scope) -> Binding:
    name = parameter.name.text
    if kind == "Nat":
        known = given if isinstance(given, int) else None
        scope.local_sizes[name] = Linear(0, ((f"{RIGID}{name}", 1),)) if known is None else known
    constant = given if isinstance(given, int | float) else None
    origin = scope.origin(parameter.name.span)
    return Binding("parameter", SCALAR, Named(Unknown(), kind), origin, constant=constant)
