"""Encoders, checked: a case for each constructor of a data type (docs/reference.md#terms)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.arithmetic.broadcasting import flattened
from qvr_core.semantics.arrows.objects import check_object_expr, written
from qvr_core.semantics.scope.environment import Binding, StepContext
from qvr_core.semantics.scope.scope import (
    UNKNOWN,
    Scope,
    declarations,
)
from qvr_core.semantics.terms.cases import Constructors, Mistakes, declared, refuse_batch_norm, type_named
from qvr_core.semantics.types.density import DETERMINISTIC, along_trees
from qvr_core.semantics.types.diagnostics import Origin, Related
from qvr_core.semantics.types.model.arrows import Density, Sort
from qvr_core.semantics.types.model.expressions import (
    Contract,
    Expr,
    FactorTable,
    Function,
    Scatter,
    Solve,
    ValueType,
    Window,
)
from qvr_core.semantics.types.model.terms import Constructor, DataType, Encoder, EncoderCase, constructor_text
from qvr_core.semantics.types.program_codes import ENCODER_CASE, SAMPLED_IN_LET
from qvr_core.semantics.types.spaces import Named, Space, has_seq, is_finite, is_real, is_unknown
from qvr_core.semantics.types.type_text import structure
from qvr_core.semantics.types.walk import draws_of, operands, walk
from qvr_core.syntax.tree.declarations import CompositionRule, EncoderHeader
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.objects import ObjectExpr
from qvr_core.syntax.tree.units import Placed, Statement


def check_encoder(statement: Statement, scope: Scope) -> Encoder | None:
    """The declared encoder; None where what it reads is no data type.  Reports that, and at its case each one that
    stands twice, has another number of arguments than its constructor, or gives another space than the header says; and
    the constructors that have no case."""
    header = statement.header.unit.node
    assert isinstance(header, EncoderHeader)
    held = type_named(header.domain, "an encoder reads", "reads", ENCODER_CASE, scope)
    codomain = _codomain(header.codomain, scope)
    if held is None:
        return None
    constructors = Constructors(held, ENCODER_CASE, scope)
    found: dict[str, EncoderCase] = {}
    seen: dict[str, Origin] = {}
    damaged = False
    for child in statement.header.children:
        case = child.unit.node
        scope.unit = child.uid
        if not isinstance(case, CompositionRule):
            damaged = True
            continue
        constructor = constructors.known.get(case.name.text)
        if constructor is None:
            damaged = True
            constructors.unknown(case.name, seen)
        elif case.name.text in seen:
            related = (Related(f"the first case of `{constructor.name}` stands here", seen[constructor.name]),)
            scope.report(ENCODER_CASE, f"`{constructor.name}` has a case above", case.name.span, related)
        else:
            seen[constructor.name] = scope.origin(case.name.span)
            checked = _case(child, case, constructor, held, codomain, scope)
            if checked is not None:
                found[constructor.name] = checked
    scope.unit = statement.uid
    # a line that cannot be read, or whose name is wrong, may be the case that is missing
    if not damaged:
        open_ = [one for one in held.constructors if one.name not in seen]
        constructors.missing(header.name, open_, "each constructor")
    density = _density(list(found.values()), held)
    return Encoder(
        name=header.name.text,
        domain=Named(held.space.space, written(header.domain)),
        codomain=codomain,
        sort=Sort.DETERMINISTIC if density is DETERMINISTIC else Sort.SAMPLED,
        origin=scope.origin(header.name.span),
        density=density,
        type=held.name,
        cases=tuple(found[one] for one in constructors.known if one in found),
    )


def _codomain(expr: ObjectExpr, scope: Scope) -> Named:
    """What a term is encoded as: real numbers."""
    named = check_object_expr(expr, scope)
    if is_unknown(named.space) or (is_real(named.space) and not has_seq(named.space)):
        return named
    message = f"a term is encoded as real numbers, `Real d`, and `{named.written}` are none"
    scope.report(ENCODER_CASE, message, expr.span)
    return UNKNOWN


def _case(
    child: Placed[object],
    case: CompositionRule,
    constructor: Constructor,
    held: DataType,
    codomain: Named,
    scope: Scope,
) -> EncoderCase | None:
    """One case; None where its arguments are not those of the constructor."""
    names = case.parameters or ()
    wanted = constructor.arguments
    if len(names) != len(wanted):
        takes = "no arguments" if not wanted else "1 argument" if len(wanted) == 1 else f"{len(wanted)} arguments"
        text = constructor_text(constructor, held.name)
        message = f"`{text}` has {takes}, and this case names {len(names) or 'none'}"
        scope.report(ENCODER_CASE, message, case.name.span, (declared(held.name),))
        return None
    bindings: dict[str, Binding] = {}
    for name, argument in zip(names, wanted, strict=True):
        if name.text in bindings:
            scope.report(ENCODER_CASE, f"two arguments of this case are called `{name.text}`", name.span)
        space = codomain if argument is None else argument
        kind = ValueType(space.space, rows=True)
        bindings[name.text] = Binding("input", kind, space, scope.origin(name.span), frozenset((name.text,)))
    mistakes = Mistakes(scope)
    body = _body(child, case, bindings, scope)
    if not mistakes.found():
        _check_given(body, case, codomain, scope)
    return EncoderCase(
        constructor=constructor.name,
        parameters=tuple(name.text for name in names),
        body=body,
        origin=scope.origin(case.name.span),
    )


def _body(child: Placed[object], case: CompositionRule, bindings: Mapping[str, Binding], scope: Scope) -> Expr:
    ctx = StepContext(scope, dict(bindings), child.unit.text, draws=True)
    reported = len(scope.diagnostics)
    body = check_arith(case.body, ctx)
    for free in ctx.free:
        scope.unknown(Name(free.name, free.origin.span), "variable", tuple(bindings))
    for at, one in enumerate(scope.diagnostics[reported:], reported):
        if one.code is SAMPLED_IN_LET:
            # the step of a program that draws instead is none of an encoder
            message = (
                "a case draws from a declared arrow, `f(a)`, and from nothing else: declare a kernel of this family"
            )
            place = one.place if isinstance(one.place, Origin) else scope.origin(case.body.span)
            del scope.diagnostics[at:]
            scope.report(ENCODER_CASE, message, place)
            break
    _refuse_many_draws(body, scope)
    refuse_batch_norm([body], ENCODER_CASE, scope)
    if ctx.lifts:
        message = "a term has no sequence below it, and one is read here"
        scope.report(ENCODER_CASE, message, case.body.span)
    return body


def _refuse_many_draws(body: Expr, scope: Scope) -> None:
    """Report a draw that stands where something runs over elements: a node makes each of its draws once."""
    inner = {
        id(draw): draw
        for one in walk(body, operands)
        if isinstance(one, Function | FactorTable | Solve | Contract | Scatter | Window)
        for part in operands(one)
        for draw in draws_of(part)
    }
    inner.update((id(draw), draw) for draw in draws_of(body) if draw.own)
    for draw in inner.values():
        message = "this would be drawn for each element of something, and a node makes a draw once"
        scope.report(ENCODER_CASE, message, draw.origin)
        return


def _density(cases: Sequence[EncoderCase], held: DataType) -> Density:
    """How the density of what a term is encoded as is computed."""
    nested = any(None in one.arguments for one in held.constructors)
    last: list[Density] = []
    before: list[Density] = []
    for case in cases:
        for draw in draws_of(case.body):
            own = draw.arrow.density
            if draw is case.body:
                last.append(own)
            else:
                before.append(replace(own, kind="score") if is_finite(draw.arrow.codomain.space) else own)
    return along_trees(last, before, nested=nested)


def _check_given(body: Expr, case: CompositionRule, codomain: Named, scope: Scope) -> None:
    """That a case gives what the header says."""
    space: Space | None = flattened(body.type)
    if space is None or is_unknown(space):
        return
    given = Named(space, structure(space))
    span: Span = case.body.span
    name = case.name.text
    scope.require_fit(
        given, codomain, span, ENCODER_CASE, f"the case `{name}` gives", f"`{scope.owner}` wants",
        declarations(scope, codomain), local=True,
    )  # fmt: skip
