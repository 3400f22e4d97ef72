"""What the typed parameters of a template are given: numbers, sets and arrows, as written or by default."""

from __future__ import annotations

from collections.abc import Callable

from qvr_core.semantics.arrows.uncounted import refuse_steps, refuse_terms
from qvr_core.semantics.language.roles import ROLES
from qvr_core.semantics.scope.scope import Argument, ArrowEntry, DamagedEntry, ObjectEntry, Scope
from qvr_core.semantics.types.model.arrows import Arrow, Ref
from qvr_core.semantics.types.program_codes import TEMPLATE_ARGUMENTS
from qvr_core.semantics.types.spaces import Finite
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import Arith, ArithArg, ArithCall, Literal, ParenArith, Unary, Variable
from qvr_core.syntax.tree.arrows import ArrowArg, ArrowExpr, ArrowRef, ParenArrow
from qvr_core.syntax.tree.declarations import Parameter
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.options import Number, String
from qvr_core.syntax.tree_to_text import to_text

ModelArgument = int | float | str | Arrow

Numbers = Callable[[str], "tuple[str, int | float | None] | None"]
"""The number parameters in sight where a call stands: kind, and the number that each stands for (None: a symbol)."""

_WANTED = {"Real": "a number", "Nat": "a whole number from 0", "Mor": "an arrow", "FinSet": "a finite set"}
_NUMBERS = ("Real", "Nat")


def no_numbers(name: str) -> tuple[str, int | float | None] | None:
    """No number has a name here."""
    del name
    return None


@immutable
class Given:
    """An argument as written: a number or a name (None: something else); `key` where it is given by keyword."""

    key: Name | None
    value: int | float | Name | None
    span: Span


@immutable
class Value:
    """What a parameter stands for (None: a symbol), and how the model has it."""

    value: Argument | None
    model: ModelArgument


def written_in_arrow(arg: ArrowArg) -> Given:
    """An argument of a call in an arrow expression."""
    value = arg.value
    if isinstance(value, Number):
        return Given(arg.key, value.value, arg.span)
    return Given(arg.key, None if isinstance(value, String) else _arrow_name(value), arg.span)


def written_in_arithmetic(arg: ArithArg) -> Given:
    """An argument of a call in a step."""
    return Given(arg.key, _arith_value(arg.value), arg.span)


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


# ---------------------------------------------------------------- what they mean


def value_of(parameter: Parameter, one: Given, scope: Scope, numbers: Numbers = no_numbers) -> Value | None:
    """What an argument is for its parameter; None (reported) where it is of another kind."""
    kind = parameter.kind.text if parameter.kind is not None else ""
    value = one.value
    number = numbers(value.text) if isinstance(value, Name) and kind in _NUMBERS else None
    if isinstance(value, Name) and number is not None and (number[0] == kind or kind == "Real"):
        passed = number[1]
        return Value(None, value.text) if passed is None else Value(passed, passed)
    if kind == "Real" and isinstance(value, int | float):
        return Value(float(value), float(value))
    if kind == "Nat" and isinstance(value, int) and value >= 0:
        return Value(value, value)
    if isinstance(value, Name) and kind in ("FinSet", "Object", "Mor"):
        return _named_value(kind, value, scope)
    message = f"`{parameter.name.text}` wants {_WANTED.get(kind, 'an object')}"
    scope.report(TEMPLATE_ARGUMENTS, message, one.span)
    return None


def default_of(parameter: Parameter, scope: Scope) -> Value | None:
    """What a parameter is where no argument gives it; None where it has no default that fits."""
    if parameter.default is None:
        return None
    # the default has been reported where it is written; here only its value is wanted
    quiet = Scope(scope.globals, scope.unit, scope.owner, scope.algebra)
    return value_of(parameter, _written(parameter.default), quiet)


def role_of(default: Arith | None) -> Name | None:
    """The role that the default of a `Mor` parameter names; None where it is something else."""
    while isinstance(default, ParenArith):
        default = default.inner
    name = default.func if isinstance(default, ArithCall) else default.name if isinstance(default, Variable) else None
    return name if name is not None and name.text in ROLES else None


def check_default(parameter: Parameter, scope: Scope) -> None:
    """Report a default that is not of its parameter's kind."""
    if parameter.default is not None:
        value_of(parameter, _written(parameter.default), scope)


def _written(default: Arith) -> Given:
    return Given(None, _arith_value(default), default.span)


def _named_value(kind: str, name: Name, scope: Scope) -> Value | None:
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
        where = "where the program is an argument of a template"
        refused = refuse_terms(arrow, name, scope) or refuse_steps(arrow, name.text, name.span, scope, where)
        return None if refused else Value(entry, arrow)
    if kind != "Mor" and isinstance(entry, ObjectEntry) and (kind == "Object" or isinstance(entry.space.space, Finite)):
        return Value(entry, name.text)
    wanted = _WANTED.get(kind, "an object")
    scope.report(TEMPLATE_ARGUMENTS, f"{wanted} is wanted here, but `{name.text}` is none", name.span)
    return None


def written_number(expr: Arith) -> int | float | None:
    """The number that an expression is, with its sign; None for anything else."""
    value = _arith_value(expr)
    return value if isinstance(value, int | float) else None


def shown_default(parameter: Parameter) -> str | None:
    """A default as hovers and signatures give it; None where there is none."""
    if parameter.kind is not None and parameter.kind.text == "Mor" and parameter.default is not None:
        return to_text(parameter.default)
    value = None if parameter.default is None else _arith_value(parameter.default)
    return value.text if isinstance(value, Name) else None if value is None else f"{value!r}"
