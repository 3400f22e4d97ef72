"""Encoders, checked: a case for each constructor of a data type (docs/reference.md#terms)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.arithmetic.broadcasting import flattened
from qvr_core.semantics.arrows.objects import check_object_expr, written
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.scope.environment import Binding, StepContext
from qvr_core.semantics.scope.inherited import batched
from qvr_core.semantics.scope.scope import (
    UNKNOWN,
    DamagedEntry,
    DataTypeEntry,
    Scope,
    declarations,
    respelt,
)
from qvr_core.semantics.types.codes import UNSUPPORTED
from qvr_core.semantics.types.density import DETERMINISTIC
from qvr_core.semantics.types.diagnostics import DeclarationSite, Origin, Related
from qvr_core.semantics.types.model.arrows import Sort
from qvr_core.semantics.types.model.expressions import Expr, ValueType
from qvr_core.semantics.types.model.terms import Constructor, DataType, Encoder, EncoderCase, constructor_text
from qvr_core.semantics.types.program_codes import ENCODER_CASE, SAMPLED_IN_LET
from qvr_core.semantics.types.spaces import Named, Space, has_seq, is_real, is_unknown
from qvr_core.semantics.types.type_text import structure
from qvr_core.semantics.types.walk import arrows_of
from qvr_core.syntax.tree.declarations import CompositionRule, EncoderHeader
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.objects import ObjectExpr, ObjectRef, ParenObject
from qvr_core.syntax.tree.units import Placed, Statement

MOST_COMPARED = 200
"""Constructors of a type whose names are looked through for the one that was meant."""

SHOWN = 12
"""Constructors without a case that an error names."""


def check_encoder(statement: Statement, scope: Scope) -> Encoder | None:
    """The declared encoder; None where what it reads is no data type.  Reports that, and at its case each one that
    stands twice, has another number of arguments than its constructor, or gives another space than the header says; and
    the constructors that have no case."""
    header = statement.header.unit.node
    assert isinstance(header, EncoderHeader)
    held = _type_read(header.domain, scope)
    codomain = _codomain(header.codomain, scope)
    if held is None:
        return None
    constructors = {one.name: one for one in held.constructors}
    found: dict[str, EncoderCase] = {}
    seen: dict[str, Origin] = {}
    damaged = False
    for child in statement.header.children:
        case = child.unit.node
        scope.unit = child.uid
        if not isinstance(case, CompositionRule):
            damaged = True
            continue
        constructor = constructors.get(case.name.text)
        if constructor is None:
            damaged = True
            known = constructors if len(constructors) <= MOST_COMPARED else {}
            _unknown_constructor(case.name, held, [name for name in known if name not in seen], known, scope)
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
    missing = [f"`{constructor_text(one, held.name)}`" for one in held.constructors if one.name not in seen]
    if missing and not damaged:
        if len(missing) > SHOWN:
            missing[SHOWN:] = [f"{len(missing) - SHOWN} more"]
        listed = missing[0] if len(missing) == 1 else f"{', '.join(missing[:-1])} and {missing[-1]}"
        message = f"`{header.name.text}` has no case for {listed}: each constructor of `{held.name}` wants one"
        scope.report(ENCODER_CASE, message, header.name.span, (_declared(held.name),))
    return Encoder(
        name=header.name.text,
        domain=Named(held.space.space, written(header.domain)),
        codomain=codomain,
        sort=Sort.DETERMINISTIC,
        origin=scope.origin(header.name.span),
        density=DETERMINISTIC,
        type=held.name,
        cases=tuple(found[one] for one in constructors if one in found),
    )


def _declared(name: str) -> Related:
    return Related(f"`{name}` is declared here", DeclarationSite(name))


def _type_read(expr: ObjectExpr, scope: Scope) -> DataType | None:
    """The data type whose terms are read; None (reported) where it is none."""
    inner = expr
    while isinstance(inner, ParenObject):
        inner = inner.inner
    if isinstance(inner, ObjectRef):
        entry = scope.lookup(inner.name.text)
        if isinstance(entry, DataTypeEntry):
            return entry.type
        if entry is None:
            scope.unknown(inner.name, "data type")
        if entry is None or isinstance(entry, DamagedEntry):
            return None
    what = "an object" if isinstance(inner, ObjectRef) else "a space"
    message = f"an encoder reads the terms of a `data type`, and `{written(expr)}` is {what}: a morphism reads that"
    scope.report(ENCODER_CASE, message, expr.span)
    return None


def _codomain(expr: ObjectExpr, scope: Scope) -> Named:
    """What a term is encoded as: real numbers."""
    named = check_object_expr(expr, scope)
    if is_unknown(named.space) or (is_real(named.space) and not has_seq(named.space)):
        return named
    message = f"a term is encoded as real numbers, `Real d`, and `{named.written}` are none"
    scope.report(ENCODER_CASE, message, expr.span)
    return UNKNOWN


def _unknown_constructor(name: Name, held: DataType, open_: Iterable[str], known: Iterable[str], scope: Scope) -> None:
    """A case of no constructor; those without a case so far (`open_`) may be meant, then any that is `known`."""
    near = closest(name.text, open_) or closest(name.text, known)
    guess = "" if near is None else f"; did you mean `{near}`?"
    message = f"`{held.name}` has no constructor `{name.text}`{guess}"
    scope.report(ENCODER_CASE, message, name.span, (_declared(held.name),), respelt(name, near, scope))


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
        scope.report(ENCODER_CASE, message, case.name.span, (_declared(held.name),))
        return None
    bindings: dict[str, Binding] = {}
    for name, argument in zip(names, wanted, strict=True):
        if name.text in bindings:
            scope.report(ENCODER_CASE, f"two arguments of this case are called `{name.text}`", name.span)
        space = codomain if argument is None else argument
        kind = ValueType(space.space, rows=True)
        bindings[name.text] = Binding("input", kind, space, scope.origin(name.span), frozenset((name.text,)))
    before = (len(scope.diagnostics), len(scope.unknown_names), len(scope.equations))
    body = _body(child, case, bindings, scope)
    # a width that is wrong is a mistake of the case, and not of the declarations that it names
    scope.equations[before[2] :] = [replace(equation, local=True) for equation in scope.equations[before[2] :]]
    wrong = any(equation.wrong for equation in scope.equations[before[2] :])
    # after a mistake in a case, what it gives says nothing
    if before[:2] == (len(scope.diagnostics), len(scope.unknown_names)) and not wrong:
        _check_given(body, case, codomain, scope)
    return EncoderCase(
        constructor=constructor.name,
        parameters=tuple(name.text for name in names),
        body=body,
        origin=scope.origin(case.name.span),
    )


def _body(child: Placed[object], case: CompositionRule, bindings: Mapping[str, Binding], scope: Scope) -> Expr:
    ctx = StepContext(scope, dict(bindings), child.unit.text)
    reported = len(scope.diagnostics)
    body = check_arith(case.body, ctx)
    for free in ctx.free:
        scope.unknown(Name(free.name, free.origin.span), "variable", tuple(bindings))
    for at, one in enumerate(scope.diagnostics[reported:], reported):
        if one.code is SAMPLED_IN_LET:
            # the draw that a program would take instead is none of an encoder
            message = "a case of an encoder is computed, and this is drawn: draws in encoders are not there yet"
            place = one.place if isinstance(one.place, Origin) else scope.origin(case.body.span)
            del scope.diagnostics[at:]
            scope.report(UNSUPPORTED, message, place)
            break
    for arrow in arrows_of(body):
        if batched(arrow, scope):
            message = "a batch norm makes of each row what all rows together lead to, and a case has no rows of its own"
            scope.report(ENCODER_CASE, message, arrow.origin)
            break
    if ctx.lifts:
        message = "a term has no sequence below it, and one is read here"
        scope.report(ENCODER_CASE, message, case.body.span)
    return body


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
