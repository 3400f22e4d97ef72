"""log P(T ≤ x) and log P(T > x) of families, as arithmetic on their arguments.

What rounding would lose is kept: each side is computed by itself where the family has it in closed form, and else as
log(1 − the other) (`log1mexp`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.types.model.expressions import Builtin, Constant, Expr, ValueType
from qvr_core.semantics.types.model.families import FamilyDraw

ANY = ValueType(None)
Given = Mapping[str, Expr]


@dataclass(frozen=True)
class Tails:
    """The logarithms of P(T ≤ x) and of P(T > x)."""

    below: Expr
    above: Expr


def number(value: float, like: Expr) -> Constant:
    """A constant at the place of `like`."""
    return Constant(type=ANY, origin=like.origin, value=value)


def call(function: str, *args: Expr | float) -> Builtin:
    """A function of values, of which one at least is an expression."""
    (like, *_) = (arg for arg in args if not isinstance(arg, int | float))
    given = tuple(number(arg, like) if isinstance(arg, int | float) else arg for arg in args)
    wide = max((arg.type for arg in given), key=lambda kind: len(kind.indexed))
    kind = ValueType(None, wide.indexed, sizes=wide.sizes)
    return Builtin(type=kind, origin=like.origin, function=function, args=given)


def tails(draw: FamilyDraw, x: Expr) -> Tails | None:
    """The tails of a family at x; None where they are not known here."""
    tails_of = _TAILS.get(draw.family)
    given = dict(draw.args)
    if isinstance(x, Constant) and x.value == 0 and draw.family in _AT_ZERO:
        none = _AT_ZERO[draw.family](given)
        return None if none is None else Tails(none, call("log1mexp", none))
    if draw.declared:
        return None
    for parameter in FAMILIES[draw.family].parameters:
        if parameter.name not in given and parameter.default is not None:
            given[parameter.name] = number(parameter.default, x)
    known = all(parameter.name in given for parameter in FAMILIES[draw.family].parameters)
    return tails_of(x, given) if tails_of is not None and known else None


def log_none(draw: FamilyDraw) -> Expr | None:
    """log P(T = 0) of a family of counts; None where it is not known here."""
    given = dict(draw.args)
    found = _AT_ZERO.get(draw.family)
    if found is not None:
        return found(given)
    if draw.family == "Geometric" and "probs" in given:
        return call("log", given["probs"])
    return None


def _normal(x: Expr, given: Given) -> Tails:
    loc, scale = given["loc"], given["scale"]
    return Tails(
        call("log_ndtr", call("div", call("sub", x, loc), scale)),
        call("log_ndtr", call("div", call("sub", loc, x), scale)),
    )


def _log_normal(x: Expr, given: Given) -> Tails:
    return _normal(call("log", x), given)


def _cauchy(x: Expr, given: Given) -> Tails:
    far, scale = call("sub", x, given["loc"]), given["scale"]

    def below(far: Expr) -> Expr:
        return call("log", call("div", call("atan2", scale, call("neg", far)), math.pi))

    return Tails(below(far), below(call("sub", given["loc"], x)))


def _laplace(x: Expr, given: Given) -> Tails:
    def below(far: Expr) -> Expr:
        half = call("mul", -0.5, call("exp", call("neg", call("abs", far))))
        return call("where", call("lt", far, 0.0), call("sub", far, math.log(2.0)), call("log1p", half))

    far = call("div", call("sub", x, given["loc"]), given["scale"])
    return Tails(below(far), below(call("neg", far)))


def _uniform(x: Expr, given: Given) -> Tails:
    low, high = given["low"], given["high"]
    wide = call("sub", high, low)
    inside = call("minimum", call("maximum", x, low), high)
    return Tails(
        call("log", call("div", call("sub", inside, low), wide)),
        call("log", call("div", call("sub", high, inside), wide)),
    )


def _of_above(above: Callable[[Expr, Given], Expr]) -> Callable[[Expr, Given], Tails]:
    """Of a family whose survival function is in closed form."""

    def tails_of(x: Expr, given: Given) -> Tails:
        survival = above(x, given)
        return Tails(call("log1mexp", survival), survival)

    return tails_of


def _gumbel(x: Expr, given: Given) -> Tails:
    below = call("neg", call("exp", call("div", call("sub", given["loc"], x), given["scale"])))
    return Tails(below, call("log1mexp", below))


def _pareto(x: Expr, given: Given) -> Expr:
    return call("mul", given["alpha"], call("minimum", call("log", call("div", given["scale"], x)), 0.0))


def _no_count(given: Given) -> Expr | None:
    rate = given["rate"] if "rate" in given else call("exp", given["log_rate"])
    return call("neg", rate)


def _no_count_of_mean(given: Given) -> Expr | None:
    if not {"mean", "dispersion"} <= set(given):
        return _no_success(given)
    spread = call("mul", given["dispersion"], given["mean"])
    return call("neg", call("div", call("log1p", spread), given["dispersion"]))


def _no_success(given: Given) -> Expr | None:
    if "probs" in given:
        return call("mul", given["total"], call("log1p", call("neg", given["probs"])))
    return call("mul", given["total"], call("logsigmoid", call("neg", given["logits"])))


def _no_success_of_beta(given: Given) -> Expr | None:
    a, b, total = given["a"], given["b"], given["total"]
    both = call("add", a, b)
    left = call("sub", call("lgamma", call("add", b, total)), call("lgamma", b))
    return call("sub", left, call("sub", call("lgamma", call("add", both, total)), call("lgamma", both)))


_AT_ZERO: Mapping[str, Callable[[Given], Expr | None]] = {
    "Poisson": _no_count,
    "NegativeBinomial": _no_count_of_mean,
    "Binomial": _no_success,
    "BetaBinomial": _no_success_of_beta,
}
"""log P(T = 0) of families of counts whose other tails are not known: what a count that cannot be 0 is truncated by."""

_TAILS: Mapping[str, Callable[[Expr, Given], Tails]] = {
    "Normal": _normal,
    "LogNormal": _log_normal,
    "Cauchy": _cauchy,
    "Laplace": _laplace,
    "Uniform": _uniform,
    "Gumbel": _gumbel,
    "HalfNormal": _of_above(
        lambda x, given: call("add", call("log_ndtr", call("neg", call("div", x, given["scale"]))), math.log(2.0))
    ),
    "HalfCauchy": _of_above(lambda x, given: call("log", call("mul", call("atan2", given["scale"], x), 2.0 / math.pi))),
    "Exponential": _of_above(lambda x, given: call("mul", call("neg", given["rate"]), x)),
    "Weibull": _of_above(
        lambda x, given: call("neg", call("pow", call("div", x, given["scale"]), given["concentration"]))
    ),
    "Pareto": _of_above(_pareto),
    "Kumaraswamy": _of_above(
        lambda x, given: call("mul", given["b"], call("log1p", call("neg", call("pow", x, given["a"]))))
    ),
    "Geometric": _of_above(
        lambda x, given: call("mul", call("add", x, 1.0), call("log1p", call("neg", given["probs"])))
    ),
}

BETWEEN_BOUNDS: Mapping[str, str] = {"TruncatedNormal": "Normal"}
"""Families that are another one between the bounds `low` and `high`, and that other one."""

WITH_TAILS = tuple(_TAILS)
"""The families whose tails are known here."""
