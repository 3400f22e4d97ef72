"""Where the value of an expression lies: literals, draws and declared bounds, carried through arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from qvr_core.semantics.language.builtins import COMPARISONS, canonical
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.scope.scope import ArrowEntry
from qvr_core.semantics.types import intervals as i
from qvr_core.semantics.types.intervals import ANYTHING, INFINITE, Interval
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
        case Function():
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
    if name in _FIXED:
        return _FIXED[name]
    if name in _JOINED or not inner:
        return i.joined(inner)
    if name in _UNARY:
        return _UNARY[name](inner[0])
    if name in _BINARY and len(inner) == 2:
        return i.square(inner[0]) if name == "mul" and _same(expr.args) else _BINARY[name](*inner)
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


def _exp(x: float) -> float:
    return math.exp(x) if x < 700 else INFINITE


def _sigmoid(x: float) -> float:
    return 1 / (1 + _exp(-x))


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(_exp(-abs(x)))


def _logarithm(a: Interval) -> Interval:
    return i.monotone(a, lambda x: math.log(x) if x > 0 else -INFINITE) if a.low >= 0 else ANYTHING


def _root(a: Interval) -> Interval:
    return i.monotone(a, math.sqrt) if a.low >= 0 else i.POSITIVE


def _limited(a: Interval, low: float, high: float) -> Interval:
    """Of a function whose values lie between two numbers, whatever its argument."""
    return Interval(low, high, exact=a.free, sources=a.sources)


def _rising(function: Callable[[float], float]) -> Callable[[Interval], Interval]:
    return lambda a: i.monotone(a, function)


_TRUTHS = "logical_not logical_and logical_or isnan isfinite any all"
_FIXED: Mapping[str, Interval] = {
    **dict.fromkeys((*COMPARISONS, *_TRUTHS.split()), i.TRUTH),
    "one_hot": i.TRUTH, "eye": i.TRUTH, "zeros": i.exactly(0), "ones": i.exactly(1),
    "zeros_like": i.exactly(0), "ones_like": i.exactly(1), "argmax": i.COUNT, "argmin": i.COUNT, "argsort": i.COUNT,
    "size": i.COUNT, "numel": i.COUNT, "softmax": i.UNIT, "softmin": i.UNIT, "log_softmax": Interval(high=0.0),
    "std": i.POSITIVE, "var": i.POSITIVE, "norm": i.POSITIVE, "hypot": i.POSITIVE, "erfc": Interval(0.0, 2.0),
}  # fmt: skip
_JOINED = frozenset(("concat",))


def _same_values(a: Interval) -> Interval:
    return a


_KEPT = "median max min amax amin sort flip squeeze unsqueeze reshape flatten transpose roll detach chunk"
_UNARY: Mapping[str, Callable[[Interval], Interval]] = {
    **dict.fromkeys(_KEPT.split(), _same_values),
    "mean": lambda a: replace(a, whole=False),
    "neg": i.negative,
    "abs": lambda a: i.even(a, abs),
    "square": i.square,
    "exp": _rising(_exp),
    "exp2": lambda a: i.monotone(a, lambda x: _exp(x * math.log(2))),
    "expm1": lambda a: i.monotone(a, lambda x: _exp(x) - 1),
    "sigmoid": _rising(_sigmoid),
    "ndtr": lambda a: _limited(a, 0.0, 1.0),
    "hardsigmoid": lambda a: _limited(a, 0.0, 1.0),
    "tanh": _rising(math.tanh),
    "erf": _rising(math.erf),
    "sin": lambda a: _limited(a, -1.0, 1.0),
    "cos": lambda a: _limited(a, -1.0, 1.0),
    "softplus": _rising(_softplus),
    "relu": _rising(lambda x: max(x, 0.0)),
    "logsigmoid": lambda a: i.negative(i.monotone(i.negative(a), _softplus)),
    "sqrt": _root,
    "rsqrt": lambda a: i.reciprocal(_root(a)),
    "reciprocal": i.reciprocal,
    "log": _logarithm,
    "log2": lambda a: ANYTHING if a.low < 0 else i.multiply(_logarithm(a), i.exactly(1 / math.log(2))),
    "log10": lambda a: ANYTHING if a.low < 0 else i.multiply(_logarithm(a), i.exactly(1 / math.log(10))),
    "sum": i.total,
    "cumsum": i.total,
    "prod": i.repeated_product,
    "cumprod": i.repeated_product,
    "diag_embed": lambda a: i.joined((a, i.exactly(0))),
    "tril": lambda a: i.joined((a, i.exactly(0))),
    "triu": lambda a: i.joined((a, i.exactly(0))),
}
_BINARY: Mapping[str, Callable[[Interval, Interval], Interval]] = {
    "add": i.add,
    "sub": i.subtract,
    "mul": i.multiply,
    "div": i.divide,
    "pow": i.power,
    "minimum": i.smaller,
    "maximum": i.larger,
    "dot": i.inner_product,
    "matmul": i.inner_product,
    "mv": i.inner_product,
    "mm": i.inner_product,
    "outer": i.multiply,
}
