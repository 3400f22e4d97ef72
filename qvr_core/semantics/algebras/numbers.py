"""Formulas on plain numbers: what the laws of compositions and transformations are tried on.

A value is a number, or a tuple of numbers: the weights that a `join` is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import cast

from qvr_core.operations.table import OPERATIONS
from qvr_core.semantics.language.builtins import canonical
from qvr_core.semantics.language.compositions import log_sum_exp
from qvr_core.semantics.types.model.expressions import Bound, Builtin, Constant, Expr, Index

Value = float | tuple[float, ...]
Names = Mapping[str, Value]
Compiled = Callable[[Names], Value]


class Uncomputed(Exception):
    """A formula holds something that is not computed here; the message names it."""


def compiled(expr: Expr, parameters: Collection[str]) -> Compiled:
    """A formula as a function of its names; its value is NaN where it has none.  Raises `Uncomputed`."""
    match expr:
        case Constant(value=value) if not isinstance(value, str):
            return _fixed(float(value))
        case Bound(name=name) if name in parameters:
            return lambda names: names[name]
        case Index(base=base, indices=(Constant(value=int(at)),)):
            return _element(compiled(base, parameters), at)
        case Builtin(function=function, args=args, keywords=keywords):
            name = canonical(function)
            given = [compiled(arg, parameters) for arg in args]
            named = {key: compiled(value, parameters) for key, value in keywords}
            if name == "clamp":
                given += [named.pop(key, edge) for key, edge in _EDGES[len(given) - 1 :]]
            if named:
                raise Uncomputed(f"`{name}` with `{next(iter(named))}=`")
            return _call(name, given)
        case _:
            raise Uncomputed("what is neither a number nor a function of numbers")


def applied(name: str, given: Sequence[Value]) -> Value:
    """A function by its name in the table of builtins, at these values; NaN where it has none.  Raises `Uncomputed`."""
    return _call(name, [_fixed(value) for value in given])({})


def _fixed(value: Value) -> Compiled:
    return lambda names: value


def _element(values: Compiled, at: int) -> Compiled:
    def element(names: Names) -> Value:
        found = values(names)
        return found[at] if isinstance(found, tuple) and -len(found) <= at < len(found) else math.nan

    return element


def _call(name: str, given: Sequence[Compiled]) -> Compiled:
    if name in _REDUCTIONS and len(given) == 1:
        reduction, inner = _REDUCTIONS[name], given[0]

        def reduced(names: Names) -> Value:
            values = inner(names)
            return guarded(reduction, values if isinstance(values, tuple) else (values,))

        return reduced
    function = _POINTWISE.get(name)
    if function is None:
        raise Uncomputed(f"`{name}`")

    def pointwise(names: Names) -> Value:
        values = [each(names) for each in given]
        lengths = [len(value) for value in values if isinstance(value, tuple)]
        if not lengths:
            return guarded(function, *values)
        if min(lengths) < max(lengths):
            return math.nan
        rows = [value if isinstance(value, tuple) else (value,) * lengths[0] for value in values]
        return tuple([guarded(function, *row) for row in zip(*rows, strict=True)])

    return pointwise


_EDGES: tuple[tuple[str, Compiled], ...] = (("min", lambda names: -math.inf), ("max", lambda names: math.inf))


def formula(parameters: Sequence[str], body: Expr) -> Callable[..., float]:
    """A formula as a function of its parameters in their order.  Raises `Uncomputed`."""
    value = compiled(body, parameters)

    def call(*given: Value) -> float:
        found = value(dict(zip(parameters, given, strict=True)))
        return math.nan if isinstance(found, tuple) else found

    return call


def constants(expr: Expr) -> frozenset[float]:
    """The numbers that a formula is written with: it may change its mind at them."""
    match expr:
        case Constant(value=value):
            return frozenset() if isinstance(value, str) else frozenset((float(value),))
        case Builtin(args=args, keywords=keywords):
            return frozenset[float]().union(*map(constants, (*args, *(value for _, value in keywords))))
        case _:
            return frozenset()


def guarded(function: Callable[..., float], *given: object) -> float:
    """A function where it is defined; NaN elsewhere."""
    try:
        return float(function(*given))
    except OverflowError:
        return math.inf
    except (ValueError, ZeroDivisionError, TypeError):
        return math.nan


def _log(x: float) -> float:
    return -math.inf if x == 0.0 else math.log(x)


def _divided(a: float, b: float) -> float:
    if b == 0.0:
        return math.nan if a == 0.0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


def _sign(x: float) -> float:
    return 0.0 if x == 0.0 else math.copysign(1.0, x)


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0.0 else math.exp(x) / (1.0 + math.exp(x))


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


_LIBRARY: Mapping[str, Callable[..., float]] = {
    name: getattr(math, each.node.loop.removeprefix("math."))
    for name, each in OPERATIONS.items()
    if each.node is not None and each.node.loop.startswith("math.")
}
"""What the C library has."""

_OF_ONE: Mapping[str, Callable[[float], float]] = {
    "sqrt": math.sqrt,
    "erf": math.erf,
    "erfc": math.erfc,
    "lgamma": math.lgamma,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "round": round,
    "abs": abs,
    "sign": _sign,
    "log": _log,
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "neg": lambda x: -x,
    "log2": lambda x: _log(x) / math.log(2.0),
    "log10": lambda x: _log(x) / math.log(10.0),
    "exp2": lambda x: math.pow(2.0, x),
    "rsqrt": lambda x: _divided(1.0, math.sqrt(x)),
    "square": lambda x: x * x,
    "reciprocal": lambda x: _divided(1.0, x),
    "logsigmoid": lambda x: -_softplus(-x),
    "logit": lambda x: _log(x) - _log(1.0 - x),
    "relu": lambda x: max(x, 0.0),
    "logical_not": lambda x: float(not x),
}  # fmt: skip

_OF_TWO: Mapping[str, Callable[[float, float], float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _divided,
    "pow": math.pow,
    "minimum": min,
    "maximum": max,
    "hypot": math.hypot,
    "fmod": math.fmod,
    "logaddexp": lambda a, b: log_sum_exp((a, b)),
    "lt": lambda a, b: float(a < b),
    "le": lambda a, b: float(a <= b),
    "gt": lambda a, b: float(a > b),
    "ge": lambda a, b: float(a >= b),
    "eq": lambda a, b: float(a == b),
    "ne": lambda a, b: float(a != b),
    "logical_and": lambda a, b: float(bool(a) and bool(b)),
    "logical_or": lambda a, b: float(bool(a) or bool(b)),
}

_OF_THREE: Mapping[str, Callable[[float, float, float], float]] = {
    "where": lambda condition, a, b: a if condition else b,
    "clamp": lambda x, low, high: min(max(x, low), high),
}

_POINTWISE: Mapping[str, Callable[..., float]] = {
    **_LIBRARY,
    **cast("Mapping[str, Callable[..., float]]", _OF_ONE),
    **cast("Mapping[str, Callable[..., float]]", _OF_TWO),
    **cast("Mapping[str, Callable[..., float]]", _OF_THREE),
}

_REDUCTIONS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "prod": math.prod,
    "mean": lambda values: sum(values) / len(values),
    "max": max,
    "min": min,
    "amax": max,
    "amin": min,
    "logsumexp": log_sum_exp,
    "any": lambda values: float(any(value != 0.0 for value in values)),
    "all": lambda values: float(all(value != 0.0 for value in values)),
    "norm": lambda values: math.sqrt(sum(value * value for value in values)),
}
"""What a `join` makes of all weights; of a number alone it is what it is of one weight."""
