"""Bases of functions of one number in arithmetic: `bspline(x, knots=[…], degree=3)` and `hsgp(x, m=20, c=1.5)`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from qvr_core.operations.operation import BuiltinFunction
from qvr_core.semantics.arithmetic.broadcasting import SCALAR, Axis, axes, data_like, from_axes, with_axes, with_last
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.model.expressions import Builtin, Constant, Expr, ListOf, ValueType
from qvr_core.semantics.types.program_codes import FUNCTION_ARGUMENTS
from qvr_core.semantics.types.spaces import Real, Unknown
from qvr_core.syntax.tree.arithmetic import ArithCall
from qvr_core.syntax.tree.names import Span

MOST_KNOTS, MOST_DEGREE, MOST_FUNCTIONS = 1000, 9, 1000
_NUMBER = (int, float)


def check_basis(
    function: BuiltinFunction, expr: ArithCall, args: Sequence[Expr], keywords: Mapping[str, Expr], ctx: StepContext
) -> Expr:
    """The typed call, of one value and plain numbers; reports what is wrong at its token."""
    origin = ctx.scope.origin(expr.span)
    given = {**dict(zip(function.parameters[1:], args[1:], strict=False)), **keywords}
    trees = _trees(function, expr)
    unknown = Builtin(type=ValueType(Unknown()), origin=origin, function=function.name, args=tuple(args))
    if not args:
        ctx.scope.report(FUNCTION_ARGUMENTS, f"`{function.name}` needs `{function.parameters[0]}`", expr.func.span)
        return unknown
    if "knots" not in given:
        if any(arg.key is not None and arg.key.text not in function.parameters for arg in expr.args):
            return unknown  # reported: another name for it
        message = "`bspline` needs `knots`: `bspline(x, knots=[0.0, 1.0, 2.0], degree=3)`"
        ctx.scope.report(FUNCTION_ARGUMENTS, message, expr.func.span)
        return unknown
    knots, degree = _knots(given["knots"], trees["knots"], ctx), 3
    if "degree" in given:
        degree = _whole(given["degree"], trees["degree"], "degree", 0, MOST_DEGREE, ctx)
    if knots is None or degree is None:
        return unknown
    count = len(knots) + degree - 1
    if count < 2:
        message = "two knots and a degree of 0 make one function, which is 1: write more knots, or a degree"
        ctx.scope.report(FUNCTION_ARGUMENTS, message, trees["knots"])
        return unknown
    constant = Constant(type=SCALAR, origin=origin, value=degree)
    return Builtin(
        type=_beside(args[0].type, count), origin=origin, function="bspline", args=(args[0], given["knots"]),
        keywords=(("degree", constant),),
    )  # fmt: skip


def basis_of_process(
    function: BuiltinFunction, expr: ArithCall, args: Sequence[Expr], keywords: Mapping[str, Expr], ctx: StepContext
) -> tuple[Expr, Expr] | None:
    """Both values of `hsgp`; None where there is a mistake, which is reported at its token."""
    given = {**dict(zip(function.parameters[1:], args[1:], strict=False)), **keywords}
    trees = _trees(function, expr)
    missing = [f"`{name}`" for name in ("m", "c") if name not in given]
    if missing:
        if any(arg.key is not None and arg.key.text not in function.parameters for arg in expr.args):
            return None  # reported: another name for one of them
        message = f"`hsgp` needs {' and '.join(missing)}: `hsgp(x, m=20, c=1.5)`, m functions on c times the range of x"
        ctx.scope.report(FUNCTION_ARGUMENTS, message, expr.func.span)
        return None
    count = _whole(given["m"], trees["m"], "m", 2, MOST_FUNCTIONS, ctx)
    factor = given["c"].value if isinstance(given["c"], Constant) else None
    if not isinstance(factor, _NUMBER) or not 1.0 < factor < math.inf:
        message = "`c` is a number above 1: how much longer the domain is than the range of x"
        ctx.scope.report(FUNCTION_ARGUMENTS, message, trees["c"])
        return None
    if count is None:
        return None
    value = args[0]
    if value.type.rows or axes(value.type) == []:
        message = "`hsgp` looks at all numbers of x at once, and here it is one number: call it without an index"
        ctx.scope.report(FUNCTION_ARGUMENTS, message, expr.args[0].span)
        return None
    origin = ctx.scope.origin(expr.span)
    options = tuple(
        (name, Constant(type=SCALAR, origin=origin, value=number)) for name, number in (("m", count), ("c", factor))
    )
    basis = Builtin(type=_beside(value.type, count), origin=origin, function="hsgp", args=(value,), keywords=options)
    frequencies = Builtin(
        type=from_axes([(count, None)], 0, like=()), origin=origin, function="hsgp_frequencies", args=(value,),
        keywords=options,
    )  # fmt: skip
    return basis, frequencies


def _beside(kind: ValueType, count: int) -> ValueType:
    """A column for each function of a basis, behind the axes of what they are functions of."""
    found = axes(kind)
    last: Axis = (count, None)
    if found is None:
        return with_last(data_like([kind]), [last])
    return with_axes(found, Real((count,)), like=[kind])


def _trees(function: BuiltinFunction, expr: ArithCall) -> Mapping[str, Span]:
    """Where each argument stands."""
    places: dict[str, Span] = {}
    positional = iter(function.parameters)
    for arg in expr.args:
        name = arg.key.text if arg.key is not None else next(positional, "")
        places[name] = arg.value.span
    return places


def _whole(value: Expr, place: Span, name: str, least: int, most: int, ctx: StepContext) -> int | None:
    number = value.value if isinstance(value, Constant) else None
    if isinstance(number, _NUMBER) and least <= number <= most and number == int(number):
        return int(number)
    ctx.scope.report(FUNCTION_ARGUMENTS, f"`{name}` is a whole number from {least} to {most}", place)
    return None


def _knots(value: Expr, place: Span, ctx: StepContext) -> Sequence[float] | None:
    """The knots, plain numbers in ascending order."""
    items = value.items if isinstance(value, ListOf) else ()
    numbers = [item.value for item in items if isinstance(item, Constant) and isinstance(item.value, _NUMBER)]
    if not 2 <= len(items) <= MOST_KNOTS or len(numbers) < len(items) or not all(map(math.isfinite, numbers)):
        message = f"`knots` is a list of 2 to {MOST_KNOTS} plain numbers, the ends of the range among them"
        ctx.scope.report(FUNCTION_ARGUMENTS, message, place)
        return None
    for at, (low, high) in enumerate(pairwise(numbers), 1):
        if not low < high:
            message = f"knots ascend, each once: {high:g} follows {low:g}"
            ctx.scope.report(FUNCTION_ARGUMENTS, message, items[at].origin)
            return None
    return numbers
