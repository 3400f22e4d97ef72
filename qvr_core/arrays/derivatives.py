"""Derivatives of a graph, as more of the graph: reverse accumulation with a rule for each operation.

At places where a function has no derivative the rules follow torch's autograd: a maximum of two equal numbers gives
half to each, `where` gives nothing to what it leaves out.  Matrix rules: Giles (2008), "An extended collection of
matrix derivative results"; Murray (2016), arXiv:1602.07527, for the Cholesky factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from qvr_core.arrays import loop_derivative, while_loops
from qvr_core.arrays import operations as g
from qvr_core.arrays.graph import Array
from qvr_core.arrays.operations import pointwise as p
from qvr_core.arrays.operations import transposed, triangle
from qvr_core.arrays.reverse_accumulation import RULES, Rule, carry_back, rule, unbroadcast
from qvr_core.arrays.shapes import Shape
from qvr_core.operations.operation import Slope
from qvr_core.operations.table import NODES

ROOMS = (loop_derivative, while_loops)
"""The modules whose import registers the other rules."""


def gradient(value: Array, of: Array) -> Array:
    """The derivative of a single number with respect to `of`, in the shape of `of`."""
    graph = value.graph
    depends = {of.number}
    reached = _reached(value)
    for number in sorted(reached):
        if any(arg.number in depends for arg in graph.nodes[number].args):
            depends.add(number)
    slopes: dict[int, Array] = {}
    if value.number in depends:
        slopes[value.number] = g.expand(graph.constant(1.0), value.shape)
    carry_back(slopes, (graph.nodes[number] for number in sorted(reached & depends, reverse=True)), depends)
    return slopes.get(of.number, g.zeros(graph, of.shape))


def _reached(value: Array) -> set[int]:
    found: set[int] = set()
    left = [value]
    while left:
        node = left.pop()
        if node.number not in found and node.op != "constant":
            found.add(node.number)
            left.extend(node.args)
    return found


def _times(x: Array, factor: float) -> Array:
    return p("mul", x, x.graph.constant(factor))


def _plus(x: Array, term: float) -> Array:
    return p("add", x, x.graph.constant(term))


# ---------------------------------------------------------------- numbers one by one


class Term:
    """A node in the arithmetic that records write slopes in: operators, and operations as methods."""

    def __init__(self, node: Array) -> None:
        self.node = node

    def _with(self, op: str, *others: Term | float, reflected: bool = False) -> Term:
        terms = (other.node if isinstance(other, Term) else self.node.graph.constant(other) for other in others)
        whole = (self.node, *terms)
        return Term(p(op, *(reversed(whole) if reflected else whole)))

    def __getattr__(self, op: str) -> Callable[..., Term]:
        return partial(self._with, op)

    def __neg__(self) -> Term:
        return self._with("neg")

    def __add__(self, other: Term | float) -> Term:
        return self._with("add", other)

    def __sub__(self, other: Term | float) -> Term:
        return self._with("sub", other)

    def __mul__(self, other: Term | float) -> Term:
        return self._with("mul", other)

    def __truediv__(self, other: Term | float) -> Term:
        return self._with("div", other)

    def __rsub__(self, other: float) -> Term:
        return self._with("sub", other, reflected=True)

    def __rtruediv__(self, other: float) -> Term:
        return self._with("div", other, reflected=True)


def _by(op: str, slope: Slope) -> Rule:
    """The rule of dy/dx, or of dx/dy, by which the derivative is multiplied or divided."""
    return lambda node, d: [p(op, d, slope(Term(node.args[0]), Term(node)).node)]


for _name, _record in NODES.items():
    if _record.slope is not None:
        RULES[_name] = _by("mul", _record.slope)
    if _record.divisor is not None:
        RULES[_name] = _by("div", _record.divisor)


@rule("neg")
def _neg(node: Array, d: Array) -> Sequence[Array | None]:
    return [p("neg", d)]


@rule("add")
def _sum_of_two(node: Array, d: Array) -> Sequence[Array | None]:
    return [d, d]


@rule("sub")
def _sub(node: Array, d: Array) -> Sequence[Array | None]:
    return [d, None if node.args[1].constant else p("neg", d)]


@rule("mul")
def _mul(node: Array, d: Array) -> Sequence[Array | None]:
    left, right = node.args
    return [None if left.constant else p("mul", d, right), None if right.constant else p("mul", d, left)]


@rule("div")
def _div(node: Array, d: Array) -> Sequence[Array | None]:
    # one division serves both: where rows are many it is what a Normal's gradient costs
    left, right = node.args
    share = p("div", d, right)
    return [None if left.constant else share, None if right.constant else p("neg", p("mul", share, node))]


@rule("pow")
def _pow(node: Array, d: Array) -> Sequence[Array | None]:
    base, exponent = node.args
    zero = node.graph.constant(0.0)
    by_base = by_exponent = None
    if not base.constant:
        slope = p("mul", exponent, p("pow", base, _plus(exponent, -1.0)))
        by_base = p("mul", d, p("where", p("eq", exponent, zero), zero, slope))
    if not exponent.constant:
        none = p("and", p("eq", base, zero), p("ge", exponent, zero))
        by_exponent = p("mul", d, p("where", none, zero, p("mul", node, p("log", base))))
    return [by_base, by_exponent]


@rule("maximum", "minimum")
def _extreme_of_two(node: Array, d: Array) -> Sequence[Array | None]:
    left, right = node.args
    zero, half = node.graph.constant(0.0), _times(d, 0.5)
    same = p("where", p("eq", left, right), half, zero)
    first = "gt" if node.op == "maximum" else "lt"
    return [p("where", p(first, left, right), d, same), p("where", p(first, right, left), d, same)]


@rule("logaddexp")
def _logaddexp(node: Array, d: Array) -> Sequence[Array | None]:
    left, right = node.args
    return [
        p("div", d, _plus(p("exp", p("sub", right, left)), 1.0)),
        p("div", d, _plus(p("exp", p("sub", left, right)), 1.0)),
    ]


@rule("atan2")
def _atan2(node: Array, d: Array) -> Sequence[Array | None]:
    left, right = node.args
    whole = p("div", d, p("add", p("square", left), p("square", right)))
    return [p("mul", whole, right), p("neg", p("mul", whole, left))]


@rule("where")
def _where(node: Array, d: Array) -> Sequence[Array | None]:
    condition, left, right = node.args
    zero = node.graph.constant(0.0)
    return [
        None,
        None if left.constant else p("where", condition, d, zero),
        None if right.constant else p("where", condition, zero, d),
    ]


# ---------------------------------------------------------------- views


@rule("reshape")
def _reshape(node: Array, d: Array) -> Sequence[Array | None]:
    return [g.reshape(d, node.args[0].shape)]


@rule("permute")
def _permute(node: Array, d: Array) -> Sequence[Array | None]:
    (order,) = node.params
    return [g.permute(d, sorted(range(len(order)), key=order.__getitem__))]


@rule("expand")
def _expand(node: Array, d: Array) -> Sequence[Array | None]:
    return [unbroadcast(d, node.args[0].shape)]


@rule("slice")
def _slice(node: Array, d: Array) -> Sequence[Array | None]:
    axis: int
    axis, start, step, _ = node.params
    return [g.place(d, axis, start, step, node.args[0].shape[axis])]


@rule("place")
def _place(node: Array, d: Array) -> Sequence[Array | None]:
    axis: int
    axis, start, step, _ = node.params
    count = node.args[0].shape[axis]
    return [g.cut(d, axis, start, start + (count - 1) * step + 1, step)]


@rule("flip")
def _flip(node: Array, d: Array) -> Sequence[Array | None]:
    return [g.flip(d, node.params[0])]


@rule("index")
def _index(node: Array, d: Array) -> Sequence[Array | None]:
    x, *indices = node.args
    return [g.index_add(g.zeros(node.graph, x.shape), d, node.params[0], indices), *(None for _ in indices)]


@rule("index_add")
def _index_add(node: Array, d: Array) -> Sequence[Array | None]:
    _, _, *indices = node.args
    return [d, g.index(d, node.params[0], indices), *(None for _ in indices)]


@rule("take_along")
def _take_along(node: Array, d: Array) -> Sequence[Array | None]:
    x, i = node.args
    return [g.add_along(g.zeros(node.graph, x.shape), node.params[0], i, d), None]


@rule("add_along")
def _add_along(node: Array, d: Array) -> Sequence[Array | None]:
    return [d, g.take_along(d, node.params[0], node.args[2]), None]


@rule("cat")
def _cat(node: Array, d: Array) -> Sequence[Array | None]:
    axis: int = node.params[0]
    parts: list[Array] = []
    start = 0
    for part in node.args:
        parts.append(g.cut(d, axis, start, start + part.shape[axis]))
        start += part.shape[axis]
    return parts


@rule("diagonal")
def _diagonal(node: Array, d: Array) -> Sequence[Array | None]:
    return [g.diagonal_embed(d)]


@rule("diagonal_embed")
def _diagonal_embed(node: Array, d: Array) -> Sequence[Array | None]:
    return [g.diagonal(d)]


# ---------------------------------------------------------------- reductions and products


def _reduced_shape(node: Array, over: Sequence[int]) -> Shape:
    return tuple(1 if axis in over else size for axis, size in enumerate(node.args[0].shape))


@rule("sum")
def _sum(node: Array, d: Array) -> Sequence[Array | None]:
    return [g.expand(g.reshape(d, _reduced_shape(node, node.params[0])), node.args[0].shape)]


@rule("prod")
def _prod(node: Array, d: Array) -> Sequence[Array | None]:
    kept = _reduced_shape(node, node.params[0])
    return [p("div", p("mul", g.reshape(d, kept), g.reshape(node, kept)), node.args[0])]


@rule("amax", "amin")
def _extreme(node: Array, d: Array) -> Sequence[Array | None]:
    (over,) = node.params
    kept = _reduced_shape(node, over)
    there = p("real", p("eq", node.args[0], g.reshape(node, kept)))
    share = p("div", g.reshape(d, kept), g.reduce("sum", there, over, keep=True))
    return [p("mul", there, share)]


@rule("logsumexp")
def _logsumexp(node: Array, d: Array) -> Sequence[Array | None]:
    kept = _reduced_shape(node, node.params[0])
    zero, nothing = node.graph.constant(0.0), node.graph.constant(-math.inf)
    # numbers that are all −∞ have a share of nothing, not NaN
    whole = g.reshape(p("where", p("eq", node, nothing), zero, node), kept)
    return [p("mul", g.reshape(d, kept), p("exp", p("sub", node.args[0], whole)))]


@rule("log_softmax")
def _log_softmax(node: Array, d: Array) -> Sequence[Array | None]:
    total = g.reduce("sum", d, node.params[0], keep=True)
    return [p("sub", d, p("mul", p("exp", node), total))]


@rule("cumsum")
def _cumsum(node: Array, d: Array) -> Sequence[Array | None]:
    (axis,) = node.params
    return [g.flip(g.running("cumsum", g.flip(d, (axis,)), axis), (axis,))]


@rule("cumprod")
def _cumprod(node: Array, d: Array) -> Sequence[Array | None]:
    (axis,) = node.params
    later = g.flip(g.running("cumsum", g.flip(p("mul", d, node), (axis,)), axis), (axis,))
    return [p("div", later, node.args[0])]


@rule("matmul")
def _matmul(node: Array, d: Array) -> Sequence[Array | None]:
    left, right = node.args
    return [
        None if left.constant else g.matmul(d, transposed(right)),
        None if right.constant else g.matmul(transposed(left), d),
    ]


# ---------------------------------------------------------------- matrices


MANY_ROWS = 12
"""Of a matrix: with fewer, products whose loops are written out are faster than a routine."""


@rule("cholesky")
def _cholesky(node: Array, d: Array) -> Sequence[Array | None]:
    if node.shape[-1] >= MANY_ROWS:
        return [g.cholesky_pulled(node, d)]
    inner = g.matmul(transposed(node), d)
    half = _times(p("add", triangle(inner), transposed(triangle(inner, strict=True))), 0.5)
    left = g.solve_triangular(transposed(node), half, upper=True)
    return [g.solve_triangular(node, left, upper=False, left=False)]


@rule("solve_triangular")
def _solve_triangular(node: Array, d: Array) -> Sequence[Array | None]:
    factor, _ = node.args
    upper, left, unit = node.params
    by_right = g.solve_triangular(transposed(factor), d, upper=not upper, left=left, unit=unit)
    if factor.constant:
        return [None, by_right]
    product = g.matmul(by_right, transposed(node)) if left else g.matmul(transposed(node), by_right)
    return [p("neg", triangle(product, upper=upper, strict=unit)), by_right]


@rule("inverse")
def _inverse(node: Array, d: Array) -> Sequence[Array | None]:
    return [p("neg", g.matmul(transposed(node), g.matmul(d, transposed(node)))), None]


@rule("det")
def _det(node: Array, d: Array) -> Sequence[Array | None]:
    scale = g.reshape(p("mul", d, node), (*node.shape, 1, 1))
    return [p("mul", scale, transposed(g.inverse(node.args[0])[0]))]


@rule("slogdet")
def _slogdet(node: Array, d: Array) -> Sequence[Array | None]:
    return [p("mul", g.reshape(d, (*node.shape, 1, 1)), transposed(g.inverse(node.args[0])[0]))]
