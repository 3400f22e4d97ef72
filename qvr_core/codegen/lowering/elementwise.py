"""Rules for operations on numbers one by one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from qvr_core.arrays.graph import BINARY, CASTS, COMPARISONS, LOGICAL, UNARY, Array
from qvr_core.codegen.loops import Call, Expression, Index, Linear, Literal, Value
from qvr_core.codegen.lowering.lowering import Lowering, lowers
from qvr_core.codegen.scalar_operations import call, power

Made = Callable[..., Expression]
LEAST = 1e-300
"""Of a divisor and of its inverse: smaller ones lose digits."""


def broadcast(value: Value, shape: tuple[int, ...]) -> Callable[[Index], Expression]:
    """Reads a value at an index of a larger shape."""
    lead = len(shape) - len(value.shape)

    def at(index: Index) -> Expression:
        own = index[lead:]
        return value.at(tuple(Linear() if size == 1 else i for size, i in zip(value.shape, own, strict=True)))

    return at


def pointwise(lowering: Lowering, node: Array, made: Made, args: Sequence[Array] | None = None) -> Value:
    """made(numbers of the arguments) at each index; of others in place of the arguments where these are given."""
    shape = tuple(node.shape)
    numel = math.prod(shape)
    values = [lowering.read(arg) for arg in args or node.args]
    values = [lowering.stored(v) if v.cost > 0 and v.numel < numel else v for v in values]
    readers = [broadcast(v, shape) for v in values]
    cost = 1 + sum(v.cost for v in values)
    return Value(shape, node.kind, lambda index: made(*(reader(index) for reader in readers)), cost)


@lowers(*(UNARY | BINARY | COMPARISONS | LOGICAL | {"where"}) - {"add", "div", "pow", "softplus", "atanh", "stop"})
def _direct(lowering: Lowering, node: Array) -> Value:
    return pointwise(lowering, node, lambda *numbers: call(node.op, *numbers))


@lowers("div")
def _div(lowering: Lowering, node: Array) -> Value:
    """By what is known a product, in a tenth of the time: data and the numbers of priors are divisors often."""
    left, right = node.args
    inverse = _inverse(right) if right.constant and right.kind == "real" and not right.plain else None
    if inverse is None:
        return _direct(lowering, node)
    if inverse.number not in lowering.values:
        lowering.lower(inverse)
    return pointwise(lowering, node, lambda *numbers: call("mul", *numbers), (left, inverse))


def _inverse(known: Array) -> Array | None:
    """1 / x of numbers that are known; None where one of them is no ordinary number, since a product would differ."""
    graph = known.graph
    inverse = graph.make("div", (graph.constant(1.0), known), (), known.shape, "real")
    small: Sequence[int] = graph.evaluate("unrepeated", [inverse.data], (), ())
    numbers: list[float] = graph.evaluate("listed", [inverse.data], tuple(small), ())
    return inverse if all(LEAST <= abs(number) <= 1.0 / LEAST for number in numbers) else None


@lowers("stop")
def _stop(lowering: Lowering, node: Array) -> Value:
    return lowering.raw(node.args[0])


@lowers("add")
def _add(lowering: Lowering, node: Array) -> Value:
    """Pieces that are added up are pieces of one array."""
    left, right = (lowering.raw(arg) for arg in node.args)
    if left.pieces and right.pieces and left.shape == right.shape:
        return Value(left.shape, "real", left.at, 1, None, left.pieces + right.pieces)
    return _direct(lowering, node)


@lowers("pow")
def _pow(lowering: Lowering, node: Array) -> Value:
    def made(base: Expression, exponent: Expression) -> Expression:
        return power(base, exponent.value) if isinstance(exponent, Literal) else Call("pow", (base, exponent))

    return pointwise(lowering, node, made)


@lowers("softplus")
def _softplus(lowering: Lowering, node: Array) -> Value:
    """max(x, 0) + log(1 + exp(−|x|)): −log σ(−x)."""

    def made(x: Expression) -> Expression:
        return call("neg", Call("log_sigmoid", (call("neg", x),)))

    return pointwise(lowering, node, made)


@lowers("atanh")
def _atanh(lowering: Lowering, node: Array) -> Value:
    def made(x: Expression) -> Expression:
        return call("mul", Literal(0.5), call("sub", Call("log1p", (x,)), Call("log1p", (call("neg", x),))))

    return pointwise(lowering, node, made)


def _one(name: str) -> Callable[[Expression], Expression]:
    return lambda x: Call(name, (x,))


@lowers(*CASTS)
def _cast(lowering: Lowering, node: Array) -> Value:
    source = node.args[0].kind
    if node.op == "truth":
        return pointwise(lowering, node, _one("truth"))
    if source == "truth":
        return pointwise(lowering, node, _one("number"))
    return lowering.read(node.args[0])
