"""Derivatives of a graph, as more of the graph: reverse accumulation with a rule for each operation.

At places where a function has no derivative the rules follow torch's autograd: a maximum of two equal numbers gives
half to each, `where` gives nothing to what it leaves out.  Matrix rules: Giles (2008), "An extended collection of
matrix derivative results"; Murray (2016), arXiv:1602.07527, for the Cholesky factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence

from qvr_core.arrays import operations as g
from qvr_core.arrays.graph import CASTS, COMPARISONS, LOGICAL, POINTWISE, Array, Unsupported
from qvr_core.arrays.operations import pointwise as p
from qvr_core.arrays.operations import transposed, triangle
from qvr_core.arrays.recurrences import Body, Loop, State
from qvr_core.arrays.shapes import Shape

Rule = Callable[[Array, Array], Sequence[Array | None]]
"""From a node and the derivative with respect to it to those of its arguments; None is zero."""
RULES: dict[str, Rule] = {}
FLAT = frozenset(("sign", "floor", "stop", "cholesky_failed")) | COMPARISONS | LOGICAL | frozenset(CASTS)
"""Constant between their jumps."""


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
    _carry_back(slopes, (graph.nodes[number] for number in sorted(reached & depends, reverse=True)), depends)
    return slopes.get(of.number, g.zeros(graph, of.shape))


def _carry_back(slopes: dict[int, Array], nodes: Iterable[Array], depends: Collection[int]) -> None:
    """Carry the derivatives of nodes, last one first, to those of their arguments that are in `depends`."""
    for node in nodes:
        slope = slopes.get(node.number)
        if slope is None or node.op in FLAT:
            continue
        rule = RULES.get(node.op)
        if rule is None:
            if not node.args:
                continue
            raise Unsupported(f"the derivative of {node.op}")
        for arg, part in zip(node.args, rule(node, slope), strict=True):
            if part is None or arg.number not in depends:
                continue
            part = unbroadcast(part, arg.shape) if node.op in POINTWISE else part
            _add(slopes, arg, part)


def _add(slopes: dict[int, Array], node: Array, part: Array) -> None:
    own = slopes.get(node.number)
    slopes[node.number] = part if own is None else p("add", own, part)


def _reached(value: Array) -> set[int]:
    found: set[int] = set()
    left = [value]
    while left:
        node = left.pop()
        if node.number not in found and node.op != "constant":
            found.add(node.number)
            left.extend(node.args)
    return found


def unbroadcast(x: Array, shape: Shape) -> Array:
    """Summed over the axes along which an array of `shape` was repeated."""
    if x.shape == shape:
        return x
    lead = x.rank - len(shape)
    over = [*range(lead), *(lead + at for at, size in enumerate(shape) if size == 1 and x.shape[lead + at] != 1)]
    return g.reshape(g.reduce("sum", x, over), shape)


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


def _times(x: Array, factor: float) -> Array:
    return p("mul", x, x.graph.constant(factor))


def _plus(x: Array, term: float) -> Array:
    return p("add", x, x.graph.constant(term))


def _less(term: float, x: Array) -> Array:
    return p("sub", x.graph.constant(term), x)


# ---------------------------------------------------------------- numbers one by one

Slope = Callable[[Array, Array], Array]
_SLOPES: dict[str, Slope] = {
    "exp": lambda x, y: y,
    "expm1": lambda x, y: _plus(y, 1.0),
    "log1p": lambda x, y: p("div", x.graph.constant(1.0), _plus(x, 1.0)),
    "square": lambda x, y: _times(x, 2.0),
    "abs": lambda x, y: p("sign", x),
    "sin": lambda x, y: p("cos", x),
    "cos": lambda x, y: p("neg", p("sin", x)),
    "tan": lambda x, y: _plus(p("square", y), 1.0),
    "sinh": lambda x, y: p("cosh", x),
    "cosh": lambda x, y: p("sinh", x),
    "tanh": lambda x, y: _less(1.0, p("square", y)),
    "erf": lambda x, y: _times(p("exp", p("neg", p("square", x))), 2.0 / math.sqrt(math.pi)),
    "erfc": lambda x, y: _times(p("exp", p("neg", p("square", x))), -2.0 / math.sqrt(math.pi)),
    "lgamma": lambda x, y: p("digamma", x),
    "digamma": lambda x, y: p("trigamma", x),
    "sigmoid": lambda x, y: p("mul", y, _less(1.0, y)),
    "softplus": lambda x, y: p("sigmoid", x),
    "log_sigmoid": lambda x, y: p("sigmoid", p("neg", x)),
    "log_ndtr": lambda x, y: _times(
        p("exp", p("sub", _times(p("square", x), -0.5), y)), 1.0 / math.sqrt(2.0 * math.pi)
    ),
    "i0e": lambda x, y: p("sub", p("i1e", x), p("mul", p("sign", x), y)),
}
"""dy/dx, by x and y."""
_DIVISORS: dict[str, Slope] = {
    "log": lambda x, y: x,
    "sqrt": lambda x, y: _times(y, 2.0),
    "asin": lambda x, y: p("sqrt", _less(1.0, p("square", x))),
    "acos": lambda x, y: p("neg", p("sqrt", _less(1.0, p("square", x)))),
    "atan": lambda x, y: _plus(p("square", x), 1.0),
    "asinh": lambda x, y: p("sqrt", _plus(p("square", x), 1.0)),
    "acosh": lambda x, y: p("sqrt", _plus(p("square", x), -1.0)),
    "atanh": lambda x, y: _less(1.0, p("square", x)),
}
"""dx/dy, by x and y."""


def _slope_i1e(x: Array, y: Array) -> Array:
    zero = p("eq", x, x.graph.constant(0.0))
    safe = p("where", zero, x.graph.constant(1.0), x)
    other = p("sub", p("i0e", x), p("mul", y, p("add", p("sign", x), p("div", x.graph.constant(1.0), safe))))
    return p("where", zero, x.graph.constant(0.5), other)


_SLOPES["i1e"] = _slope_i1e
for _name, _slope in _SLOPES.items():
    RULES[_name] = lambda node, d, slope=_slope: [p("mul", d, slope(node.args[0], node))]
for _name, _divisor in _DIVISORS.items():
    RULES[_name] = lambda node, d, divisor=_divisor: [p("div", d, divisor(node.args[0], node))]


@_rule("neg")
def _neg(node: Array, d: Array) -> Sequence[Array | None]:
    return [p("neg", d)]


@_rule("add")
def _sum_of_two(node: Array, d: Array) -> Sequence[Array | None]:
    return [d, d]


@_rule("sub")
def _sub(node: Array, d: Array) -> Sequence[Array | None]:
    return [d, None if node.args[1].constant else p("neg", d)]


@_rule("mul")
def _mul(node: Array, d: Array) -> Sequence[Array | None]:
    left, right = node.args
    return [None if left.constant else p("mul", d, right), None if right.constant else p("mul", d, left)]


@_rule("div")
def _div(node: Array, d: Array) -> Sequence[Array | None]:
    left, right = node.args
    return [
        None if left.constant else p("div", d, right),
        None if right.constant else p("neg", p("div", p("mul", d, node), right)),
    ]


@_rule("pow")
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


@_rule("maximum", "minimum")
def _extreme_of_two(node: Array, d: Array) -> Sequence[Array | None]:
    left, right = node.args
    zero, half = node.graph.constant(0.0), _times(d, 0.5)
    same = p("where", p("eq", left, right), half, zero)
    first = "gt" if node.op == "maximum" else "lt"
    return [p("where", p(first, left, right), d, same), p("where", p(first, right, left), d, same)]


@_rule("logaddexp")
def _logaddexp(node: Array, d: Array) -> Sequence[Array | None]:
    left, right = node.args
    return [
        p("div", d, _plus(p("exp", p("sub", right, left)), 1.0)),
        p("div", d, _plus(p("exp", p("sub", left, right)), 1.0)),
    ]


@_rule("atan2")
def _atan2(node: Array, d: Array) -> Sequence[Array | None]:
    left, right = node.args
    whole = p("div", d, p("add", p("square", left), p("square", right)))
    return [p("mul", whole, right), p("neg", p("mul", whole, left))]


@_rule("where")
def _where(node: Array, d: Array) -> Sequence[Array | None]:
    condition, left, right = node.args
    zero = node.graph.constant(0.0)
    return [
        None,
        None if left.constant else p("where", condition, d, zero),
        None if right.constant else p("where", condition, zero, d),
    ]


# ---------------------------------------------------------------- views


@_rule("reshape")
def _reshape(node: Array, d: Array) -> Sequence[Array | None]:
    return [g.reshape(d, node.args[0].shape)]


@_rule("permute")
def _permute(node: Array, d: Array) -> Sequence[Array | None]:
    (order,) = node.params
    return [g.permute(d, sorted(range(len(order)), key=order.__getitem__))]


@_rule("expand")
def _expand(node: Array, d: Array) -> Sequence[Array | None]:
    return [unbroadcast(d, node.args[0].shape)]


@_rule("slice")
def _slice(node: Array, d: Array) -> Sequence[Array | None]:
    axis, start, step, _ = node.params
    return [g.place(d, axis, start, step, node.args[0].shape[axis])]


@_rule("place")
def _place(node: Array, d: Array) -> Sequence[Array | None]:
    axis, start, step, _ = node.params
    count = node.args[0].shape[axis]
    return [g.cut(d, axis, start, start + (count - 1) * step + 1, step)]


@_rule("flip")
def _flip(node: Array, d: Array) -> Sequence[Array | None]:
    return [g.flip(d, node.params[0])]


@_rule("index")
def _index(node: Array, d: Array) -> Sequence[Array | None]:
    x, *indices = node.args
    return [g.index_add(g.zeros(node.graph, x.shape), d, node.params[0], indices), *(None for _ in indices)]


@_rule("index_add")
def _index_add(node: Array, d: Array) -> Sequence[Array | None]:
    _, _, *indices = node.args
    return [d, g.index(d, node.params[0], indices), *(None for _ in indices)]


@_rule("take_along")
def _take_along(node: Array, d: Array) -> Sequence[Array | None]:
    x, i = node.args
    return [g.add_along(g.zeros(node.graph, x.shape), node.params[0], i, d), None]


@_rule("add_along")
def _add_along(node: Array, d: Array) -> Sequence[Array | None]:
    return [d, g.take_along(d, node.params[0], node.args[2]), None]


@_rule("cat")
def _cat(node: Array, d: Array) -> Sequence[Array | None]:
    (axis,) = node.params
    parts: list[Array] = []
    start = 0
    for part in node.args:
        parts.append(g.cut(d, axis, start, start + part.shape[axis]))
        start += part.shape[axis]
    return parts


@_rule("diagonal")
def _diagonal(node: Array, d: Array) -> Sequence[Array | None]:
    return [g.diagonal_embed(d)]


@_rule("diagonal_embed")
def _diagonal_embed(node: Array, d: Array) -> Sequence[Array | None]:
    return [g.diagonal(d)]


# ---------------------------------------------------------------- reductions and products


def _kept(node: Array, over: Sequence[int]) -> Shape:
    return tuple(1 if axis in over else size for axis, size in enumerate(node.args[0].shape))


@_rule("sum")
def _sum(node: Array, d: Array) -> Sequence[Array | None]:
    return [g.expand(g.reshape(d, _kept(node, node.params[0])), node.args[0].shape)]


@_rule("prod")
def _prod(node: Array, d: Array) -> Sequence[Array | None]:
    kept = _kept(node, node.params[0])
    return [p("div", p("mul", g.reshape(d, kept), g.reshape(node, kept)), node.args[0])]


@_rule("amax", "amin")
def _extreme(node: Array, d: Array) -> Sequence[Array | None]:
    (over,) = node.params
    kept = _kept(node, over)
    there = p("real", p("eq", node.args[0], g.reshape(node, kept)))
    share = p("div", g.reshape(d, kept), g.reduce("sum", there, over, keep=True))
    return [p("mul", there, share)]


@_rule("logsumexp")
def _logsumexp(node: Array, d: Array) -> Sequence[Array | None]:
    kept = _kept(node, node.params[0])
    zero, nothing = node.graph.constant(0.0), node.graph.constant(-math.inf)
    # numbers that are all −∞ have a share of nothing, not NaN
    whole = g.reshape(p("where", p("eq", node, nothing), zero, node), kept)
    return [p("mul", g.reshape(d, kept), p("exp", p("sub", node.args[0], whole)))]


@_rule("log_softmax")
def _log_softmax(node: Array, d: Array) -> Sequence[Array | None]:
    total = g.reduce("sum", d, node.params[0], keep=True)
    return [p("sub", d, p("mul", p("exp", node), total))]


@_rule("cumsum")
def _cumsum(node: Array, d: Array) -> Sequence[Array | None]:
    (axis,) = node.params
    return [g.flip(g.running("cumsum", g.flip(d, (axis,)), axis), (axis,))]


@_rule("cumprod")
def _cumprod(node: Array, d: Array) -> Sequence[Array | None]:
    (axis,) = node.params
    later = g.flip(g.running("cumsum", g.flip(p("mul", d, node), (axis,)), axis), (axis,))
    return [p("div", later, node.args[0])]


@_rule("matmul")
def _matmul(node: Array, d: Array) -> Sequence[Array | None]:
    left, right = node.args
    return [
        None if left.constant else g.matmul(d, transposed(right)),
        None if right.constant else g.matmul(transposed(left), d),
    ]


# ---------------------------------------------------------------- matrices


@_rule("cholesky")
def _cholesky(node: Array, d: Array) -> Sequence[Array | None]:
    inner = g.matmul(transposed(node), d)
    half = _times(p("add", triangle(inner), transposed(triangle(inner, strict=True))), 0.5)
    left = g.solve_triangular(transposed(node), half, upper=True)
    return [g.solve_triangular(node, left, upper=False, left=False)]


@_rule("solve_triangular")
def _solve_triangular(node: Array, d: Array) -> Sequence[Array | None]:
    factor, _ = node.args
    upper, left, unit = node.params
    by_right = g.solve_triangular(transposed(factor), d, upper=not upper, left=left, unit=unit)
    if factor.constant:
        return [None, by_right]
    product = g.matmul(by_right, transposed(node)) if left else g.matmul(transposed(node), by_right)
    return [p("neg", triangle(product, upper=upper, strict=unit)), by_right]


@_rule("inverse")
def _inverse(node: Array, d: Array) -> Sequence[Array | None]:
    return [p("neg", g.matmul(transposed(node), g.matmul(d, transposed(node)))), None]


@_rule("det")
def _det(node: Array, d: Array) -> Sequence[Array | None]:
    scale = g.reshape(p("mul", d, node), (*node.shape, 1, 1))
    return [p("mul", scale, transposed(g.inverse(node.args[0])[0]))]


@_rule("slogdet")
def _slogdet(node: Array, d: Array) -> Sequence[Array | None]:
    return [p("mul", g.reshape(d, (*node.shape, 1, 1)), transposed(g.inverse(node.args[0])[0]))]


# ---------------------------------------------------------------- loops


@_rule("loop")
def _loop(node: Array, d: Array) -> Sequence[Array | None]:
    """A loop the other way round: what each turn adds to the derivatives of what it reads."""
    body: Body = node.params[0]
    graph, starts = node.graph, sum(len(state.back) for state in body.states)
    rows, captured = node.args[starts : starts + len(body.items)], node.args[starts + len(body.items) :]
    given, series = body.parts(d), body.parts(node)
    back = Loop(graph, body.count, reverse=True, like=node)
    slopes: dict[int, Array] = {}
    pending: list[list[Array]] = []
    for state, own, made in zip(body.states, given, series, strict=False):
        depth = len(state.back)
        for at, one in enumerate(state.back, 1):
            back.rows[one.number] = g.cut(made, 0, depth - at, depth - at + body.count)
        # what later turns have left for the elements before them
        pending.append([back.state(g.zeros(graph, one.shape)) for one in state.back])
        _add(slopes, state.made, p("add", back.item(g.cut(own, 0, depth, depth + body.count)), pending[-1][0]))
        back.rows[state.made.number] = g.cut(made, 0, depth, depth + body.count)
    first = len(body.states)
    for each, own in zip(body.emitted, given[first:], strict=False):
        _add(slopes, each, back.item(own))
    first += len(body.emitted)
    for each, made in zip(body.kept, series[first:], strict=False):
        back.rows[each.number] = made
    for each, own in zip(body.summed, given[first + len(body.kept) :], strict=True):
        _add(slopes, each, own)
    depends = {one.number for state in body.states for one in state.back}
    depends |= {item.number for item, own in zip(body.items, rows, strict=True) if not own.constant}
    depends |= {each.number for each in captured if not each.constant}
    reals = {each.number for each in (*body.items, *captured) if each.kind != "real"}
    depends -= reals
    inside: list[Array] = []
    for inner in body.nodes:
        if any(arg.number in depends for arg in inner.args):
            depends.add(inner.number)
            inside.append(inner)
    _carry_back(slopes, reversed(inside), depends)

    def slope_of(one: Array) -> Array:
        return slopes.get(one.number, g.zeros(graph, one.shape))

    states: list[State] = []
    for state, left in zip(body.states, pending, strict=True):
        for at, (one, own) in enumerate(zip(state.back, left, strict=True)):
            made = slope_of(one)
            states.append(State((own,), p("add", made, left[at + 1]) if at + 1 < len(left) else made))
    wanted = [item for item in body.items if item.number in depends]
    summed = [each for each in captured if each.number in depends]
    _, found = back.run(states, [slope_of(item) for item in wanted], [slope_of(each) for each in summed])
    parts = iter(found)
    firsts: list[Array] = []
    for state, own in zip(body.states, given, strict=False):
        left = [g.select(next(parts), 0, body.count) for _ in state.back]
        firsts += [p("add", g.select(own, 0, at), left[-1 - at]) for at in range(len(left))]
    by_row = {item.number: next(parts) for item in wanted}
    by_value = {each.number: next(parts) for each in summed}
    return [*firsts, *(by_row.get(item.number) for item in body.items), *(by_value.get(one.number) for one in captured)]
