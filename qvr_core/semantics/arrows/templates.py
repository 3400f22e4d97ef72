"""Templates: programs with typed parameters, checked once with symbols and again for each call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qvr_core.semantics.arrows.arrow_names import damaged
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.scope.scope import Argument, ArrowEntry, DamagedEntry, ObjectEntry, Scope, TemplateEntry, show
from qvr_core.semantics.types.diagnostics import DeclarationSite, Edit, Fix, Related, Severity
from qvr_core.semantics.types.model import Arrow, Instance, Program, Ref
from qvr_core.semantics.types.program_codes import TEMPLATE_ARGUMENTS
from qvr_core.semantics.types.spaces import Finite
from qvr_core.semantics.types.subspace import fit
from qvr_core.syntax.tree import (
    Arith,
    ArithArg,
    ArrowArg,
    ArrowCall,
    ArrowExpr,
    ArrowRef,
    Literal,
    Name,
    Number,
    Parameter,
    ParenArith,
    ParenArrow,
    ProgramHeader,
    Span,
    String,
    Unary,
    Variable,
)

ModelArgument = tuple[str, int | float | str | Arrow]


@dataclass(frozen=True, slots=True)
class _Given:
    """A typed argument as written: a number or a name."""

    key: Name
    value: int | float | Name | None
    span: Span


def instantiate(
    entry: TemplateEntry, expr: ArrowCall, scope: Scope
) -> tuple[Program, tuple[ModelArgument, ...]] | None:
    """The program of `template(alpha=1.0, f=cell)` in an arrow expression; None where the arguments are wrong."""
    given = [_from_arrow_arg(arg, scope) for arg in expr.args]
    if None in given:
        return None
    return _instance(entry, [one for one in given if one is not None], expr.func, scope)


def instance_of(entry: TemplateEntry, name: Name, args: Sequence[ArithArg], span: Span, scope: Scope) -> Arrow:
    """The arrow of a template called in a step: typed parameters by keyword, inputs by position."""
    given = [_Given(arg.key, _arith_value(arg.value), arg.span) for arg in args if arg.key is not None]
    result = _instance(entry, given, name, scope)
    if result is None:
        return damaged(scope.origin(span))
    program, arguments = result
    return Instance(
        name=entry.name,
        domain=program.domain,
        codomain=program.codomain,
        sort=program.sort,
        origin=scope.origin(span),
        density=program.density,
        arguments=arguments,
        program=program,
    )


def _from_arrow_arg(arg: ArrowArg, scope: Scope) -> _Given | None:
    if arg.key is None:
        message = "typed parameters are given by keyword: `name=value`"
        scope.report(TEMPLATE_ARGUMENTS, message, arg.span)
        return None
    value = arg.value
    if isinstance(value, Number):
        return _Given(arg.key, value.value, arg.span)
    return _Given(arg.key, None if isinstance(value, String) else _arrow_name(value), arg.span)


def _arrow_name(expr: ArrowExpr) -> Name | None:
    while isinstance(expr, ParenArrow):
        expr = expr.inner
    return expr.name if isinstance(expr, ArrowRef) else None


def _arith_value(expr: Arith) -> int | float | Name | None:
    while isinstance(expr, ParenArith):
        expr = expr.inner
    if isinstance(expr, Unary):
        inner = _arith_value(expr.operand)
        return -inner if isinstance(inner, int | float) else None
    if isinstance(expr, Variable):
        return expr.name
    return expr.value if isinstance(expr, Literal) and not isinstance(expr.value, str) else None


# ---------------------------------------------------------------- arguments


def _instance(
    entry: TemplateEntry, given: Sequence[_Given], name: Name, scope: Scope
) -> tuple[Program, tuple[ModelArgument, ...]] | None:
    header = entry.statement.header.unit.node
    if not isinstance(header, ProgramHeader):
        return None
    parameters = {p.name.text: p for p in header.parameters or () if p.kind is not None}
    values: dict[str, Argument] = {}
    arguments: list[ModelArgument] = []
    good = True
    for one in given:
        parameter = parameters.get(one.key.text)
        if parameter is None:
            _unknown_parameter(entry, one, parameters, scope)
            good = False
            continue
        found = _value(parameter, one, scope)
        if found is None:
            good = False
            continue
        values[one.key.text], argument = found
        arguments.append((one.key.text, argument))
    missing = [key for key in parameters if key not in {one.key.text for one in given}]
    if missing and good:
        words = ", ".join(f"`{key}`" for key in missing)
        related = (Related(f"`{entry.name}` is declared here", DeclarationSite(entry.name)),)
        scope.report(TEMPLATE_ARGUMENTS, f"`{entry.name}` needs {words}: `{missing[0]}=…`", name.span, related)
    if missing or not good:
        return None
    return _checked(entry, values, name, scope), tuple(arguments)


def _unknown_parameter(entry: TemplateEntry, one: _Given, parameters: Mapping[str, Parameter], scope: Scope) -> None:
    near = closest(one.key.text, parameters)
    message = f"`{entry.name}` has no parameter `{one.key.text}`"
    message += f"; did you mean `{near}`?" if near else f"; it has {', '.join(f'`{p}`' for p in parameters)}"
    place = scope.origin(one.key.span)
    fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(place, near),), True),)
    scope.report(TEMPLATE_ARGUMENTS, message, place, fixes=fixes)


def _value(parameter: Parameter, one: _Given, scope: Scope) -> tuple[Argument, int | float | str | Arrow] | None:
    kind = parameter.kind.text if parameter.kind is not None else ""
    value = one.value
    if kind == "Real" and isinstance(value, int | float):
        return float(value), float(value)
    if kind == "Nat" and isinstance(value, int) and value >= 0:
        return value, value
    if isinstance(value, Name) and kind in ("FinSet", "Object", "Mor"):
        return _named_value(kind, value, scope)
    wanted = {"Real": "a number", "Nat": "a whole number from 0", "Mor": "an arrow"}.get(kind, "an object")
    scope.report(TEMPLATE_ARGUMENTS, f"`{one.key.text}` wants {wanted}", one.span)
    return None


def _named_value(kind: str, name: Name, scope: Scope) -> tuple[Argument, int | float | str | Arrow] | None:
    entry = scope.lookup(name.text)
    if isinstance(entry, DamagedEntry):
        return None
    if entry is None:
        scope.unknown(name, "arrow" if kind == "Mor" else "object")
        return None
    if kind == "Mor" and isinstance(entry, ArrowEntry):
        arrow = Ref(
            name=name.text,
            domain=entry.domain,
            codomain=entry.codomain,
            sort=entry.sort,
            origin=scope.origin(name.span),
            density=entry.density,
        )
        return entry, arrow
    if kind != "Mor" and isinstance(entry, ObjectEntry) and (kind == "Object" or isinstance(entry.space.space, Finite)):
        return entry, name.text
    wanted = {"Mor": "an arrow", "FinSet": "a finite set"}.get(kind, "an object")
    scope.report(TEMPLATE_ARGUMENTS, f"{wanted} is wanted here, but `{name.text}` is none", name.span)
    return None


# ---------------------------------------------------------------- the check of one call


def _checked(entry: TemplateEntry, values: Mapping[str, Argument], name: Name, scope: Scope) -> Program:
    """The body with the arguments filled in; what goes wrong only then is told at the call."""
    own = Scope(scope.globals, entry.statement.uid, entry.name, scope.algebra, first_owner=entry.name)
    program = scope.globals.check_program(entry.statement, own, values)
    _check_arrows(program, values, name, scope)
    symbolic = Scope(scope.globals, entry.statement.uid, entry.name, scope.algebra, first_owner=entry.name)
    scope.globals.check_program(entry.statement, symbolic, {})
    known = {(d.code.name, d.place) for d in symbolic.diagnostics}
    for found in own.diagnostics:
        if found.code.severity is Severity.ERROR and (found.code.name, found.place) not in known:
            related = (Related(f"`{entry.name}` is declared here", DeclarationSite(entry.name)),)
            scope.report(TEMPLATE_ARGUMENTS, f"with these arguments, {found.message}", name.span, related)
            break
    for equation in own.equations:
        if any(_contradicts(left, right) for left, right in equation.pairs):
            related = (Related(f"`{entry.name}` is declared here", DeclarationSite(entry.name)),)
            message = f"with these arguments, {equation.gives} {show(equation.given)}, but {equation.wants} "
            scope.report(TEMPLATE_ARGUMENTS, message + show(equation.wanted), name.span, related)
            break
    return program


def _contradicts(left: object, right: object) -> bool:
    from qvr_core.semantics.types.spaces import Linear

    assert isinstance(left, Linear) and isinstance(right, Linear)
    return not left.terms and not right.terms and left.constant != right.constant


def _check_arrows(program: Program, values: Mapping[str, Argument], name: Name, scope: Scope) -> None:
    for parameter in program.template:
        entry = values.get(parameter.name)
        if parameter.mor is None or not isinstance(entry, ArrowEntry):
            continue
        for given, wanted in zip((entry.domain, entry.codomain), parameter.mor, strict=True):
            result = fit(given.space, wanted.space)
            if result.problem is not None or result.widths == "wrong":
                message = f"`{parameter.name}` wants an arrow from {show(parameter.mor[0])} to "
                message += f"{show(parameter.mor[1])}, but `{entry.name}` goes from {show(entry.domain)} to "
                scope.report(TEMPLATE_ARGUMENTS, message + show(entry.codomain), name.span)
                break
