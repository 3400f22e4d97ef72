"""Where the value of an expression lies: literals, draws and declared bounds, carried through arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from qvr_core.operations import intervals as i
from qvr_core.operations.intervals import ANYTHING, INFINITE, Interval
from qvr_core.operations.table import OPERATIONS
from qvr_core.semantics.language.builtins import canonical
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.scope.scope import ArrowEntry
from qvr_core.semantics.types.model.arrows import Arrow, Lift, Ref
from qvr_core.semantics.types.model.expressions import (
    Apply,
    Arrange,
    Bound,
    Builtin,
    Constant,
    Contract,
    Data,
    Expr,
    FactorTable,
    Function,
    Index,
    IndexValue,
    ListOf,
    Solve,
    Window,
)
from qvr_core.semantics.types.spaces import Constrained, Finite, Real, Space, item_of
from qvr_core.semantics.types.walk import operands


def range_of(expr: Expr, ctx: StepContext) -> Interval:
    """The interval that the numbers of a value lie in; `ANYTHING` where nothing is known."""
    match expr:
        case Constant(value=value):
            return ANYTHING if isinstance(value, str) else i.exactly(value)
        case Bound(name=name):
            return _bound(name, ctx)
        case Function() | Solve():
            return _DOUBTFUL
        case _:
            inner = [range_of(operand, ctx) for operand in operands(expr)]
            found = _computed(expr, inner, ctx)
            sources = i.every_source((found, *inner))
            return found if sources == found.sources else replace(found, sources=sources)


_OWN = ("let", "sample", "observe")
"""What a step binds for itself, where it reads its own earlier elements."""
_DOUBTFUL = Interval(sources=i.ALL_SOURCES)


def _bound(name: str, ctx: StepContext) -> Interval:
    if name in ctx.aliases:
        return _DOUBTFUL
    binding = ctx.find(name)
    if name in ctx.locals and binding is not None and binding.kind not in _OWN:
        return i.COUNT
    if binding is None:
        return ANYTHING
    return within(binding.type.space) if binding.kind == "input" else binding.range


def within(space: Space | None) -> Interval:
    """The bounds that a declared space gives its numbers."""
    match None if space is None else item_of(space):
        case Real(low=low, high=high):
            return Interval(-INFINITE if low is None else low, INFINITE if high is None else high)
        case Finite(size=size):
            return Interval(0.0, float(size - 1) if isinstance(size, int) else INFINITE, whole=True)
        case Constrained(kind="Simplex"):
            return i.UNIT
        case _:
            return ANYTHING


def _computed(expr: Expr, inner: list[Interval], ctx: StepContext) -> Interval:
    match expr:
        case Builtin():
            return _builtin(expr, inner)
        case Apply(arrow=arrow):
            return _applied(arrow, ctx)
        case Data():
            return within(expr.type.space)
        case Index() | Window() | Arrange():
            return inner[0]
        case IndexValue():
            return i.COUNT
        case Contract():
            return i.total(reduce(i.multiply, inner))
        case ListOf():
            return i.joined(inner)
        case FactorTable():
            return replace(i.joined(inner), exact=False)
        case _:
            return ANYTHING


_PLAIN_ROLES = ("linear", "embed")
"""Arrows that can be given weights for any number to come out."""


def _applied(arrow: Arrow, ctx: StepContext) -> Interval:
    inner = arrow.arrow if isinstance(arrow, Lift) else arrow
    declared = within(arrow.codomain.space)
    if not isinstance(inner, Ref) or declared.known or not isinstance(item_of(arrow.codomain.space), Real):
        return declared
    entry = ctx.scope.lookup(inner.name)
    plain = isinstance(entry, ArrowEntry) and entry.role in _PLAIN_ROLES
    return replace(ANYTHING, exact=True, sources=frozenset((inner.name,))) if plain else declared


# ---------------------------------------------------------------- builtins


def _builtin(expr: Builtin, inner: list[Interval]) -> Interval:
    name = canonical(expr.function)
    operation = OPERATIONS.get(name)
    found = None if operation is None else operation.interval
    if isinstance(found, Interval):
        return found
    if name == "concat" or not inner:
        return i.joined(inner)
    if found is not None:
        return found(inner[0])
    if operation is not None and operation.interval_of_two is not None and len(inner) == 2:
        return i.square(inner[0]) if name == "mul" and _same(expr.args) else operation.interval_of_two(*inner)
    if name == "where" and len(inner) == 3:
        return replace(i.joined(inner[1:]), exact=False)
    return _clamped(expr, inner) if name == "clamp" else ANYTHING


def _same(args: Sequence[Expr]) -> bool:
    return all(isinstance(arg, Bound) for arg in args) and len({getattr(arg, "name", "") for arg in args}) == 1


def _clamped(expr: Builtin, inner: list[Interval]) -> Interval:
    names = ("", *("min", "max")[: len(expr.args) - 1], *(key for key, _ in expr.keywords))
    given = dict(zip(names, inner, strict=False))
    value = i.larger(inner[0], given["min"]) if "min" in given else inner[0]
    return i.smaller(value, given["max"]) if "max" in given else value
