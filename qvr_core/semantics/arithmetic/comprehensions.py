"""`sum(e for f : F if c)` and its kin: a reduction over the axes that its indices run along.

A sum of products becomes a matrix product, and a sum over the elements of which an index says where they belong
(`if state[c] == s`) adds up by that index; neither makes the table of all combinations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.alignment import align, arrange
from qvr_core.semantics.arithmetic.broadcasting import Axis, axes, is_data, with_axes
from qvr_core.semantics.arithmetic.elements.ragged_sums import there
from qvr_core.semantics.arithmetic.elementwise import Check, elementwise
from qvr_core.semantics.arithmetic.indices import length, running
from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.scope.environment import Running, StepContext
from qvr_core.semantics.scope.scope import respelt
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.expressions import Builtin, Constant, Contract, Expr, IndexValue, Scatter, ValueType
from qvr_core.semantics.types.program_codes import ARITHMETIC_MISMATCH, FUNCTION_ARGUMENTS
from qvr_core.semantics.types.spaces import REAL_LINE, Finite, Unknown
from qvr_core.syntax.tree.arithmetic import Arith, Binary, Comprehension, ParenArith

NEUTRAL: Mapping[str, float] = {
    name: function.neutral
    for name, function in sorted(BUILTINS.items(), key=lambda item: item[1].reserved)
    if function.neutral is not None
}
"""The functions that reduce over indices, and what an element that is left out counts as."""


def check_comprehension(expr: Comprehension, ctx: StepContext, check: Check) -> Expr:
    """The typed reduction."""
    name = expr.function.text
    if name not in NEUTRAL:
        near = closest(name, NEUTRAL)
        message = f"`{name}` does not reduce over an index; " + (
            f"did you mean `{near}`?" if near else f"what does: {', '.join(NEUTRAL)}"
        )
        fixes = respelt(expr.function, near, ctx.scope)
        ctx.scope.report(FUNCTION_ARGUMENTS, message, expr.function.span, fixes=fixes)
    before = ctx.conditions, ctx.reducing
    with running(expr.binders, {}, ctx) as indices:
        conditions = there(expr, indices, ctx)
        ctx.conditions = (*before[0], *conditions)
        ctx.reducing = before[1].union(one.name for one in indices)
        try:
            return _reduced(expr, conditions, indices, ctx, check)
        finally:
            ctx.conditions, ctx.reducing = before


def _reduced(
    expr: Comprehension, conditions: Sequence[Arith], indices: Sequence[Running], ctx: StepContext, check: Check
) -> Expr:
    origin = ctx.scope.origin(expr.span)
    where = ctx.scope.origin(expr.function.span)
    over = [one.axis for one in indices]
    scattered = _scattered(expr, conditions, indices, origin, ctx, check)
    if scattered is not None:
        return scattered
    if expr.function.text == "sum" and not conditions:
        factors = [check(tree, ctx) for tree in _factors(expr.body)]
        if len(factors) > 1 and all(map(_is_scalar, factors)):
            return _contracted(factors, over, indices, origin, where, ctx)
        body = _product(factors, where, ctx)
    else:
        body = check(expr.body, ctx)
    condition = None
    for tree in conditions:
        one = check(tree, ctx)
        condition = one if condition is None else _call("logical_and", [condition, one], where, ctx)
    kinds = [body.type, *(() if condition is None else (condition.type,))]
    if any(kind.space is None or isinstance(kind.space, Unknown) or axes(kind) is None for kind in kinds):
        return replace(body, type=ValueType(Unknown(), rows=body.type.rows))
    return _over_axes(expr.function.text, body, condition, indices, where, origin, ctx)


def _is_scalar(value: Expr) -> bool:
    shape = axes(value.type)
    return shape is not None and not is_data(value.type) and len(shape) == len(value.type.indexed)


def _factors(tree: Arith) -> list[Arith]:
    """`a`, `b` and `c` of `a * (b * c)`."""
    while isinstance(tree, ParenArith):
        tree = tree.inner
    if isinstance(tree, Binary) and tree.operator == "*":
        return [*_factors(tree.left), *_factors(tree.right)]
    return [tree]


def _product(factors: Sequence[Expr], where: Origin, ctx: StepContext) -> Expr:
    result = factors[0]
    for factor in factors[1:]:
        result = _call("mul", [result, factor], where, ctx)
    return result


def _call(function: str, values: Sequence[Expr], where: Origin, ctx: StepContext) -> Expr:
    texts = ["the left side", "the right side", "the value"][: len(values)]
    arranged, kind = elementwise(values, texts, where, ctx)
    return Builtin(type=kind, origin=values[0].origin, function=function, args=tuple(arranged))


# ---------------------------------------------------------------- matrix products


def _contracted(
    factors: Sequence[Expr],
    over: Sequence[str],
    indices: Sequence[Running],
    origin: Origin,
    where: Origin,
    ctx: StepContext,
) -> Expr:
    aligned = align(factors, ["the left side"] + ["the right side"] * (len(factors) - 1), where, ctx)
    if aligned.failed:
        return replace(factors[0], type=ValueType(Unknown()))
    named = [[str(name) for _, name in axes(factor.type) or []] for factor in factors]
    sizes = {str(name): size for factor in factors for size, name in axes(factor.type) or []}
    everything = list(dict.fromkeys(name for names in named for name in names))
    if "None" in everything or len(everything) > 20 or any(sum(axis in names for names in named) < 2 for axis in over):
        body = _product(factors, where, ctx)
        return _over_axes("sum", body, None, indices, where, origin, ctx)
    result = [name for name in everything if name not in over]
    plates: list[Axis] = [(sizes[name], name) for name in result]
    kind = with_axes(plates, REAL_LINE, like=[factor.type for factor in factors])
    return Contract(
        type=kind, origin=origin, factors=tuple(factors), axes=tuple(map(tuple, named)), result=tuple(result)
    )


# ---------------------------------------------------------------- sums by an index


def _scattered(
    expr: Comprehension,
    conditions: Sequence[Arith],
    indices: Sequence[Running],
    origin: Origin,
    ctx: StepContext,
    check: Check,
) -> Expr | None:
    """`sum(e for c : Cell if g[c] == s)` where `s` runs outside: `e` added up by `g`."""
    tree = expr.condition
    if (
        expr.function.text != "sum"
        or len(indices) != 1
        or len(conditions) != 1
        or not isinstance(tree, Binary)
        or tree.operator != "=="
    ):
        return None
    sides = [check(tree.left, ctx), check(tree.right, ctx)]
    target = next((side for side in sides if isinstance(side, IndexValue) and side.name != indices[0].name), None)
    if target is None:
        return None
    index = sides[1] if sides[0] is target else sides[0]
    group, own = ctx.indices[target.name], indices[0].axis
    body = check(expr.body, ctx)
    names = [name for _, name in axes(body.type) or []]
    fits = isinstance(index.type.space, Finite) and index.type.indexed == (own,) and _is_scalar(body)
    if not fits or own not in names or group.axis in names or group.lag or group.space is None:
        return None
    laid = arrange(body, [*(at for at, name in enumerate(names) if name != own), names.index(own)])
    rest = [axis for axis in axes(body.type) or [] if axis[1] != own]
    kind = with_axes([*rest, (group.space.size, group.axis)], REAL_LINE, like=[body.type])
    return Scatter(type=kind, origin=origin, body=laid, index=index, size=group.space.size)


# ---------------------------------------------------------------- in general


def _over_axes(
    function: str,
    body: Expr,
    condition: Expr | None,
    indices: Sequence[Running],
    where: Origin,
    origin: Origin,
    ctx: StepContext,
) -> Expr:
    """A reduction over the axes of all indices; an index that `e` does not mention counts its elements."""
    if function not in NEUTRAL or not _is_scalar(body):
        if function in NEUTRAL:
            ctx.scope.report(ARITHMETIC_MISMATCH, f"`{function}` over an index reduces numbers, not vectors", where)
        return replace(body, type=ValueType(Unknown(), rows=body.type.rows))
    for one in indices:
        present = {name for value in (body, condition) if value is not None for _, name in axes(value.type) or []}
        if one.axis not in present:
            body = _repeated(body, one, where, ctx)
    if function == "mean" and condition is not None:
        kept = _call("where", [condition, _number(1.0, origin), _number(0.0, origin)], where, ctx)
        total = _over_axes("sum", body, condition, indices, where, origin, ctx)
        count = _over_axes("sum", kept, None, indices, where, origin, ctx)
        return _call("div", [total, count], where, ctx)
    if condition is not None:
        body = _call("where", [condition, body, _number(NEUTRAL.get(function, 0.0), origin)], where, ctx)
    if isinstance(body.type.space, Unknown):
        return body
    for one in indices:
        body = _reduce(function, body, one.axis, origin)
    return body


def _number(value: float, origin: Origin) -> Expr:
    return Constant(type=ValueType(REAL_LINE), origin=origin, value=value)


def _repeated(body: Expr, one: Running, where: Origin, ctx: StepContext) -> Expr:
    """The value once for each element of an index."""
    size = length(one)
    kind = with_axes([(size, one.axis)], REAL_LINE, like=())
    index = IndexValue(type=kind, origin=body.origin, name=one.name, first=one.lag, size=size or 0)
    ones = Builtin(type=kind, origin=body.origin, function="ones_like", args=(index,))
    return _call("mul", [body, ones], where, ctx)


def _reduce(function: str, body: Expr, axis: str, origin: Origin) -> Expr:
    shape = axes(body.type) or []
    names = [name for _, name in shape]
    at = names.index(axis)
    rest = [place for place in range(len(shape)) if place != at]
    laid = arrange(body, [*rest, at])
    kind = with_axes([shape[place] for place in rest], REAL_LINE, like=[body.type])
    return Builtin(type=kind, origin=origin, function=function, args=(laid,))
