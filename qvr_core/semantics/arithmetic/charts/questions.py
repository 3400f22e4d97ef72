"""What a program asks of a chart: `chart.goal_weight()`, `chart.weight(item)`, `chart.derivations(item)`."""

from __future__ import annotations

from collections.abc import Iterator

from qvr_core.semantics.arithmetic.broadcasting import data_like
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.scope.scope import respelt
from qvr_core.semantics.types.model.expressions import Bound, Builtin, Expr, Method, TermValue
from qvr_core.semantics.types.program_codes import FUNCTION_ARGUMENTS, UNKNOWN_VALUE_FIELD
from qvr_core.syntax.tree.arithmetic import Arith, ArithCall, Literal, MethodCall, ParenArith, Variable
from qvr_core.syntax.tree.names import Name

CHART_METHODS = {"goal_weight": 0, "weight": 1, "derivations": 1}
"""The methods of a chart and how many items each takes."""


def check_question(base: Expr, expr: MethodCall, ctx: StepContext) -> Expr:
    """The typed question to a chart; weights run over the sentences of the chart."""
    name = expr.method.text
    args = tuple(_item(arg.value, ctx) for arg in expr.args)
    wanted = CHART_METHODS.get(name)
    if wanted is None:
        near = closest(name, CHART_METHODS)
        message = f"a chart has no method `{name}`"
        message += f"; did you mean `{near}`?" if near else f"; it has {', '.join(CHART_METHODS)}"
        ctx.scope.report(UNKNOWN_VALUE_FIELD, message, expr.method.span, fixes=respelt(expr.method, near, ctx.scope))
    elif len(args) != wanted:
        message = f"`{name}` takes {wanted} {'item' if wanted == 1 else 'items'}, but {len(args)} are given"
        ctx.scope.report(FUNCTION_ARGUMENTS, message, expr.span)
    kind = data_like([base.type]) if name == "derivations" else base.type
    return Method(type=kind, origin=ctx.scope.origin(expr.span), base=base, method=name, args=args)


def is_chart(base: Expr, ctx: StepContext) -> bool:
    """Whether a value is the chart of a `parse`."""
    if isinstance(base, Builtin):
        return base.function == "parse"
    if isinstance(base, Bound):
        binding = ctx.find(base.name)
        return binding is not None and binding.kind == "chart"
    return False


def _item(expr: Arith, ctx: StepContext) -> Expr:
    """An item of a deduction, as text."""
    names = tuple((name.text, ctx.scope.origin(name.span), around) for name, around in _names(expr, ()))
    return TermValue(type=data_like([]), origin=ctx.scope.origin(expr.span), text=_term_text(expr), names=names)


def _names(expr: Arith, around: tuple[tuple[str, str], ...]) -> Iterator[tuple[Name, tuple[str, ...]]]:
    """The names of an item, each with the constructors that may bind it: those whose first argument is that name."""
    while isinstance(expr, ParenArith):
        expr = expr.inner
    if isinstance(expr, Variable):
        yield expr.name, tuple(constructor for name, constructor in around if name == expr.name.text)
    elif isinstance(expr, ArithCall):
        first = expr.args[0].value if expr.args else None
        if isinstance(first, Variable):
            around = (*around, (first.name.text, expr.func.text))
        for arg in expr.args:
            yield from _names(arg.value, around)


def _term_text(expr: Arith) -> str:
    while isinstance(expr, ParenArith):
        expr = expr.inner
    if isinstance(expr, ArithCall):
        return f"{expr.func.text}({', '.join(_term_text(arg.value) for arg in expr.args)})"
    if isinstance(expr, Variable):
        return expr.name.text
    if not isinstance(expr, Literal):
        return ""
    return expr.text[1:-1] if expr.text[:1] in "\"'" else expr.text  # as Python's users write items
