"""Functions of numbers one by one."""

from __future__ import annotations

import math
from typing import Any

from qvr_core.arrays import operations as g
from qvr_core.arrays.graph import Array, Unsupported
from qvr_core.arrays.listing import FUNCTIONS, Function, arrays, graph_of, in_graph, listed
from qvr_core.arrays.operations import pointwise as p
from qvr_core.arrays.shapes import broadcast
from qvr_core.operations.table import NODES


def _same(op: str) -> Function:
    def apply(*values: Any) -> Array:
        return p(op, *arrays(*values))

    return apply


for _op, _node in NODES.items():
    FUNCTIONS.update((_name, _same(_op)) for _name in _node.torch)


@listed("add", "radd")
def add(x: Any, y: Any, *, alpha: float = 1) -> Array:
    """x + alpha y."""
    left, right = arrays(x, y)
    return p("add", left, right if alpha == 1 else p("mul", right, right.graph.constant(alpha)))


@listed("addcmul")
def addcmul(x: Any, y: Any, z: Any, *, value: float = 1) -> Array:
    """x + value y z."""
    start, left, right = arrays(x, y, z)
    return add(start, p("mul", left, right), alpha=value)


@listed("sub", "subtract")
def sub(x: Any, y: Any, *, alpha: float = 1) -> Array:
    """x − alpha y."""
    left, right = arrays(x, y)
    return p("sub", left, right if alpha == 1 else p("mul", right, right.graph.constant(alpha)))


@listed("rsub")
def rsub(x: Any, y: Any) -> Array:
    """y − x."""
    return sub(y, x)


@listed("rdiv", "rtruediv")
def rdiv(x: Any, y: Any) -> Array:
    """y / x."""
    return p("div", *arrays(y, x))


@listed("reciprocal")
def reciprocal(x: Array) -> Array:
    """1 / x."""
    return p("div", x.graph.constant(1.0), x)


@listed("pow", "float_power")
def power(x: Any, y: Any) -> Array:
    """x to the power y; whole powers and roots without `pow`."""
    base, exponent = arrays(x, y)
    number = g.known(exponent) if exponent.constant else None
    if number is not None and exponent.size:
        # a gradient as that of the other way of writing it
        if number == 2.0:
            found = p("square", base)
        elif number == 1.0:
            found = base
        elif number == 0.5:
            found = p("sqrt", base)
        elif number == -0.5:
            found = reciprocal(p("sqrt", base))
        elif number == -1.0:
            found = reciprocal(p("real", base))
        elif number == -2.0:
            found = reciprocal(p("square", p("real", base)))
        elif number == 0.0:
            found = base.graph.constant(1.0)
        else:
            found = p("pow", base, exponent)
        return g.expand(found, broadcast([base.shape, exponent.shape]))
    return p("pow", base, exponent)


@listed("rpow")
def rpower(x: Any, y: Any) -> Array:
    """y to the power x."""
    return power(y, x)


@listed("rsqrt")
def rsqrt(x: Array) -> Array:
    """1 / √x."""
    return reciprocal(p("sqrt", x))


@listed("exp2")
def exp2(x: Array) -> Array:
    """2 to the power x."""
    return p("exp", p("mul", x, x.graph.constant(math.log(2.0))))


@listed("log2")
def log2(x: Array) -> Array:
    """The logarithm to base 2."""
    return p("div", p("log", x), x.graph.constant(math.log(2.0)))


@listed("log10")
def log10(x: Array) -> Array:
    """The logarithm to base 10."""
    return p("div", p("log", x), x.graph.constant(math.log(10.0)))


@listed("ceil")
def ceil(x: Array) -> Array:
    """The next whole number above."""
    return p("neg", p("floor", p("neg", x)))


@listed("trunc")
def trunc(x: Array) -> Array:
    """Towards zero."""
    return where(p("lt", x, x.graph.constant(0.0)), ceil(x), p("floor", x))


@listed("frac")
def frac(x: Array) -> Array:
    """x less `trunc(x)`."""
    return p("sub", x, trunc(x))


@listed("remainder", "mod")
def remainder(x: Any, y: Any) -> Array:
    """x − y ⌊x / y⌋."""
    left, right = arrays(x, y)
    return p("sub", left, p("mul", right, p("floor", p("div", left, right))))


@listed("floor_divide", "floordiv")
def floor_divide(x: Any, y: Any) -> Array:
    """⌊x / y⌋."""
    left, right = arrays(x, y)
    quotient = p("floor", p("div", left, right))
    return quotient if "real" in (left.kind, right.kind) else p("whole", quotient)


@listed("fmod")
def fmod(x: Any, y: Any) -> Array:
    """x − y trunc(x / y)."""
    left, right = arrays(x, y)
    return p("sub", left, p("mul", right, trunc(p("div", left, right))))


@listed("hypot")
def hypot(x: Any, y: Any) -> Array:
    """√(x² + y²)."""
    left, right = arrays(x, y)
    return p("sqrt", p("add", p("square", left), p("square", right)))


@listed("copysign")
def copysign(x: Any, y: Any) -> Array:
    """|x| with the sign of y."""
    left, right = arrays(x, y)
    size = p("abs", left)
    return where(p("lt", right, right.graph.constant(0.0)), p("neg", size), size)


@listed("xlogy", "special_xlogy")
def xlogy(x: Any, y: Any) -> Array:
    """x log y, and 0 where x is 0."""
    left, right = arrays(x, y)
    zero = p("eq", left, left.graph.constant(0.0))
    one = left.graph.constant(1.0)
    return where(zero, left.graph.constant(0.0), p("mul", left, p("log", where(zero, one, right))))


@listed("softplus")
def softplus(x: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """log(1 + exp(βx)) / β, without torch's jump of the gradient at `threshold`."""
    if beta == 1.0:
        return p("softplus", x)
    scale = x.graph.constant(float(beta))
    return p("div", p("softplus", p("mul", x, scale)), scale)


@listed("logit", "special_logit")
def logit(x: Array, eps: float | None = None) -> Array:
    """log(x / (1 − x))."""
    x = x if eps is None else clamp(x, eps, 1.0 - eps)
    return p("log", p("div", x, p("sub", x.graph.constant(1.0), x)))


@listed("logsigmoid", "log_sigmoid")
def log_sigmoid(x: Any) -> Array:
    """log(1 / (1 + exp(−x))); of log odds that were made of a probability its logarithm, without the way there."""
    (x,) = arrays(x)
    # a choice of two, as of success and failure, and no deeper one: shared ones would be gone through again and again
    found = [_log_probability(one) for one in (x.args[1:] if x.op == "where" else (x,))]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return p("log_sigmoid", x)
    return p("where", x.args[0], *known) if x.op == "where" else known[0]


def _log_probability(log_odds: Array) -> Array | None:
    """log t of what `logit` made of t, log(1 − t) of its negative; None of other log odds."""
    failure = log_odds.op == "neg"
    odds = log_odds.args[0] if failure else log_odds
    match odds.op, odds.args:
        case "log", (Array(op="div", args=(t, Array(op="sub", args=(one, other)))),):
            if other is t and one.constant and one.plain and one.size == 1 and float(one.data) == 1.0:
                return p("log1p", p("neg", t)) if failure else p("log", t)
        case _:
            pass
    return None


@listed("special_ndtr", "ndtr")
def ndtr(x: Array) -> Array:
    """The standard normal's distribution function."""
    half = p("erfc", p("mul", x, x.graph.constant(-math.sqrt(0.5))))
    return p("mul", half, x.graph.constant(0.5))


@listed("relu")
def relu(x: Array, inplace: bool = False) -> Array:
    """x above 0."""
    zero = x.graph.constant(0.0)
    return where(p("le", x, zero), zero, x)


@listed("silu")
def silu(x: Array, inplace: bool = False) -> Array:
    """x σ(x)."""
    return p("mul", x, p("sigmoid", x))


@listed("gelu")
def gelu(x: Array, approximate: str = "none") -> Array:
    """x Φ(x)."""
    if approximate != "none":
        raise Unsupported("gelu by tanh")
    return p("mul", x, ndtr(x))


@listed("where")
def where(condition: Any, x: Any, y: Any) -> Array:
    """x where the condition holds, else y."""
    graph = graph_of(condition, x, y)
    condition, left, right = (in_graph(value, graph) for value in (condition, x, y))
    if "real" in (left.kind, right.kind):
        left, right = p("real", left), p("real", right)
    return p("where", p("truth", condition), left, right)


@listed("masked_fill")
def masked_fill(x: Any, mask: Any, value: Any) -> Array:
    """`value` where the mask holds, else x."""
    graph = graph_of(x, mask, value)
    x = in_graph(x, graph)
    return g.expand(
        where(mask, p(x.kind, in_graph(value, graph)), x), broadcast([x.shape, in_graph(mask, graph).shape])
    )


@listed("clamp", "clip")
def clamp(x: Any, min: Any = None, max: Any = None) -> Array:
    """x between two limits; its gradient is whole at them."""
    graph = graph_of(x, min, max)
    x = in_graph(x, graph)
    if min is not None:
        low = in_graph(min, graph)
        x = where(p("lt", x, low), low, x)
    if max is not None:
        high = in_graph(max, graph)
        x = where(p("gt", x, high), high, x)
    return x


@listed("clamp_min")
def clamp_min(x: Any, min: Any) -> Array:
    """x at or above a limit."""
    return clamp(x, min)


@listed("clamp_max")
def clamp_max(x: Any, max: Any) -> Array:
    """x at or below a limit."""
    return clamp(x, None, max)


@listed("isnan")
def isnan(x: Array) -> Array:
    """Whether a number is none."""
    return p("ne", x, x)


@listed("isinf")
def isinf(x: Array) -> Array:
    """Whether a number is infinite."""
    return p("eq", p("abs", x), x.graph.constant(math.inf))


@listed("isneginf")
def isneginf(x: Array) -> Array:
    """Whether a number is −∞."""
    return p("eq", x, x.graph.constant(-math.inf))


@listed("isposinf")
def isposinf(x: Array) -> Array:
    """Whether a number is ∞."""
    return p("eq", x, x.graph.constant(math.inf))


@listed("isfinite")
def isfinite(x: Array) -> Array:
    """Whether a number is finite."""
    return p("lt", p("abs", x), x.graph.constant(math.inf))


@listed("nan_to_num")
def nan_to_num(x: Array, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Array:
    """Other numbers for NaN and the infinities."""
    largest = 1.7976931348623157e308
    x = where(isnan(x), nan, x)
    x = where(isposinf(x), largest if posinf is None else posinf, x)
    return where(isneginf(x), -largest if neginf is None else neginf, x)


@listed("polygamma", "special_polygamma")
def polygamma(order: Any, x: Any) -> Array:
    """Derivatives of the digamma function, the first only."""
    if isinstance(order, Array):
        order, x = x, order
    if order == 0:
        return p("digamma", x)
    if order != 1:
        raise Unsupported(f"polygamma({order})")
    return p("trigamma", x)
