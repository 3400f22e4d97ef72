"""Families after `~` in a morphism declaration, with or without literal arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qvr_core.semantics.language.family import Family, Parameter, bounds_of, inside, must_lie
from qvr_core.semantics.language.family_spelling import Foreign, foreign_family, likely_family
from qvr_core.semantics.language.gates import GATED
from qvr_core.semantics.language.mixtures import MIXTURE
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.scope.families import family_named, is_damaged
from qvr_core.semantics.scope.scope import Scope
from qvr_core.semantics.types.codes import FAMILY_ARGUMENTS, FAMILY_MISMATCH, UNKNOWN_FAMILY
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import ArithArg, Literal
from qvr_core.syntax.tree.arrows import ArrowArg, ArrowCall, ArrowExpr, ArrowRef, ParenArrow
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.options import Number


@immutable
class Head:
    """A family and its literal arguments by canonical name (None where none were written)."""

    family: Family
    name: Name
    arguments: tuple[tuple[str, float], ...] | None


def family_name(expr: ArrowExpr | None) -> Name | None:
    """The name in `~ Normal` and `~ Normal(0.0, 1.0)`; None for other expressions."""
    while isinstance(expr, ParenArrow):
        expr = expr.inner
    if isinstance(expr, ArrowRef):
        return expr.name
    return expr.func if isinstance(expr, ArrowCall) else None


def read_head(expr: ArrowExpr, scope: Scope) -> Head | None:
    """The family that an expression names; reports unknown families and wrong arguments."""
    name = family_name(expr)
    while isinstance(expr, ParenArrow):
        expr = expr.inner
    if name is None:
        scope.report(UNKNOWN_FAMILY, "a family of distributions is wanted after `~`", expr.span)
        return None
    family = family_named(name.text, scope)
    if family is None and is_damaged(name.text, scope):
        return None
    if family is None and name.text in (*GATED, MIXTURE):
        what = "a mixture" if name.text == MIXTURE else "a family with a gate"
        message = (
            f"`{name.text}` stands behind `<-` only, and {what} is no head: give its arguments by arrows of their "
        )
        message += "own, and draw from it in a step"
        scope.report(FAMILY_MISMATCH, message, name.span)
        return None
    if family is None:
        unknown_family(name, scope, bare=isinstance(expr, ArrowRef))
        return None
    arguments = _literals(family, expr, scope) if isinstance(expr, ArrowCall) and expr.args else None
    return Head(family, name, arguments)


def unknown_family(name: Name, scope: Scope, *, bare: bool) -> None:
    """Report a family that there is not; `bare` where it has no arguments, whose meaning may be another here."""
    foreign = foreign_family(name.text)
    if foreign is not None:
        place = scope.origin(name.span)
        fix = Fix(f"Change to `{foreign.family}`", (Edit(place, foreign.family),), True)
        fixes = (fix,) if bare and foreign.same else ()
        scope.report(UNKNOWN_FAMILY, foreign_message(name.text, foreign), name.span, fixes=fixes)
        return
    near = likely_family(name.text)
    message = f"there is no family `{name.text}`" + (f"; did you mean `{near}`?" if near else "")
    fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(scope.origin(name.span), near),), True),)
    scope.report(UNKNOWN_FAMILY, message, name.span, fixes=fixes)


def foreign_message(name: str, foreign: Foreign) -> str:
    return f"there is no family `{name}`; the nearest, `{foreign.family}`, {foreign.difference}"


def _literals(family: Family, call: ArrowCall, scope: Scope) -> tuple[tuple[str, float], ...]:
    found: dict[str, float] = {}
    kept = kept_arguments(family, call.args, scope, f"`{family.name}` takes {signature(family)}")
    for index, arg in enumerate(call.args[at] for at in kept):
        parameter = _parameter(family, arg, index, scope)
        if parameter is None:
            continue
        name, constraint = parameter
        if name in found:
            scope.report(FAMILY_ARGUMENTS, f"`{name}` is given twice", arg.span)
        elif not isinstance(arg.value, Number):
            scope.report(FAMILY_ARGUMENTS, f"`{name}` must be a number here", arg.value.span)
        elif (problem := literal_problem(name, constraint, arg.value.value)) is not None:
            scope.report(FAMILY_ARGUMENTS, f"{family.name}: {problem}", arg.value.span)
        else:
            found[name] = float(arg.value.value)
    if (problem := bounds_problem(family, found)) is not None:
        values = [call.args[at].value.span for at in kept]
        scope.report(FAMILY_ARGUMENTS, problem, Span(values[0].start, values[-1].end))
    if len(found) == len(kept):
        _complete(family, call, found, scope)
    return tuple(found.items())


def _parameter(family: Family, arg: ArrowArg, index: int, scope: Scope) -> tuple[str, str] | None:
    parameters = family.parameters
    if arg.key is None:
        return parameters[index].name, parameters[index].constraint
    if (found := named_parameter(family, arg.key.text)) is not None:
        return found
    near = closest(arg.key.text, [parameter.name for parameter in parameters])
    message = f"`{family.name}` has no parameter `{arg.key.text}`; "
    message += f"did you mean `{near}`?" if near else f"it takes {signature(family)}"
    fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(scope.origin(arg.key.span), near),), True),)
    scope.report(FAMILY_ARGUMENTS, message, arg.key.span, fixes=fixes)
    return None


def kept_arguments(family: Family, args: Sequence[ArrowArg | ArithArg], scope: Scope, message: str) -> list[int]:
    """Which arguments the family has a parameter for; reports the others by `message`, with an edit that removes them.

    The last ones are too many, unless the others fit only without the first (`HalfNormal(0.0, 1.0)`).
    """
    most = len(family.parameters)
    surplus = [index for index in range(most, len(args)) if args[index].key is None]
    if not surplus:
        return list(range(len(args)))
    positional = all(arg.key is None for arg in args)
    if positional and not _possible(family, args[:most]) and _possible(family, args[-most:]):
        surplus = list(range(len(args) - most))
    first, last = surplus[0], surplus[-1]
    place = Span(args[first].span.start, args[last].span.end)
    after = args[last + 1].span.start if last + 1 < len(args) else place.end
    gap = Span(args[first - 1].span.end, place.end) if first else Span(place.start, after)
    title = "Remove it" if len(surplus) == 1 else "Remove them"
    fix = Fix(title, (Edit(scope.origin(gap), ""),), True)
    scope.report(FAMILY_ARGUMENTS, message, place, fixes=(fix,) if positional else ())
    return [index for index in range(len(args)) if index not in surplus]


def _possible(family: Family, args: Sequence[ArrowArg | ArithArg]) -> bool:
    pairs = zip(family.parameters, args, strict=False)
    return not any(
        isinstance(arg.value, Number | Literal)
        and not isinstance(arg.value.value, str)
        and literal_problem(parameter.name, parameter.constraint, arg.value.value) is not None
        for parameter, arg in pairs
    )


def named_parameter(family: Family, key: str) -> tuple[str, str] | None:
    """(canonical name, constraint) of a parameter by its name, an alias, or another parametrisation."""
    for parameter in family.parameters:
        if key == parameter.name or key in parameter.aliases:
            return parameter.name, parameter.constraint
        for name, constraint in parameter.alternatives:
            if key == name:
                return name, constraint
    return None


def _complete(family: Family, call: ArrowCall, found: dict[str, float], scope: Scope) -> None:
    missing = [p.name for p in family.parameters if p.default is None and not _given(p, found)]
    if missing:
        fixes = filled_in(family, missing, call.args, call.func.span, call.span, scope)
        scope.report(FAMILY_ARGUMENTS, missing_message(family, missing), call.func.span, fixes=fixes)


_PLACEHOLDERS = {"real": "0.0", "positive": "1.0", "unit": "0.5", "natural": "1", "whole": "0"}
"""What may stand for a parameter that is left out, until the user knows better."""


def missing_message(family: Family, missing: Sequence[str]) -> str:
    names = " and ".join(f"`{name}`" for name in missing)
    return f"`{family.name}` takes {signature(family)}; {names} {'is' if len(missing) == 1 else 'are'} missing"


def filled_in(
    family: Family, missing: Sequence[str], args: Sequence[ArrowArg | ArithArg], func: Span, call: Span, scope: Scope
) -> tuple[Fix, ...]:
    """The fix that adds what is missing: in its place where that is behind all others, else by keyword."""
    wanted = [parameter for parameter in family.parameters if parameter.name in missing]
    if any(parameter.shape != "element" or parameter.constraint not in _PLACEHOLDERS for parameter in wanted):
        return ()
    names = [parameter.name for parameter in family.parameters]
    last = all(arg.key is None for arg in args) and names[len(args) :][: len(wanted)] == list(missing)
    texts = [("" if last else f"{p.name}=") + _PLACEHOLDERS[p.constraint] for p in wanted]
    added = ", ".join(texts)
    if args:
        edit = Edit(scope.origin(args[-1].span), f", {added}", "after")
    else:
        edit = Edit(scope.origin(Span(func.end, call.end)), f"({added})")
    listed = " and ".join(f"`{parameter.name}`" for parameter in wanted)
    return (Fix(f"Add {listed}: `{added}`", (edit,)),)


def _given(parameter: Parameter, found: dict[str, float]) -> bool:
    return parameter.name in found or any(name in found for name, _ in parameter.alternatives)


def signature(family: Family) -> str:
    """'(loc, scale)'."""
    return f"({', '.join(parameter.name for parameter in family.parameters)})"


def bounds_problem(family: Family, given: Mapping[str, float]) -> str | None:
    """Why literal bounds of the support cannot be; None where they can, or are not both known."""
    if family.bounded_by is None or not all(name in given for name in family.bounded_by):
        return None
    low, high = (given[name] for name in family.bounded_by)
    names = [f"`{name}`" for name in family.bounded_by]
    return (
        None if low < high else f"{family.name}: {names[0]} must be below {names[1]}, but {low:g} is not below {high:g}"
    )


def literal_problem(name: str, constraint: str, value: float) -> str | None:
    """Why a literal cannot be the value of a parameter."""
    if constraint in ("positive", "positive vector") and not value > 0:
        return f"`{name}` must be above 0, but is {value:g}"
    if constraint == "unit" and not 0 <= value <= 1:
        return f"`{name}` must be between 0 and 1, but is {value:g}"
    if constraint == "whole" and value != int(value):
        return f"`{name}` must be a whole number, but is {value:g}"
    if constraint == "natural" and (value < 0 or value != int(value)):
        return f"`{name}` must be a whole number, but is {value:g}"
    if (ends := bounds_of(constraint)) is not None and not inside(value, *ends):
        return f"`{name}` {must_lie(*ends)}, but is {value:g}"
    return None
