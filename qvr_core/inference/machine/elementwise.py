"""Lowering of operations on numbers one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from qvr_core.codegen.loops import Call, Expression, Index, Linear, Literal, Value
from qvr_core.codegen.pointwise import DIRECT, TRUTHS, call, number, power
from qvr_core.inference.machine.lowering import Lowering, Unknown, lowers

Made = Callable[..., Expression]


def broadcast(value: Value, shape: tuple[int, ...]) -> Callable[[Index], Expression]:
    """Reads a value at an index of a larger shape."""
    lead = len(shape) - len(value.shape)

    def at(index: Index) -> Expression:
        own = index[lead:]
        return value.at(tuple(Linear() if size == 1 else i for size, i in zip(value.shape, own, strict=True)))

    return at


def pointwise(lowering: Lowering, node: fx.Node, arguments: tuple[Any, ...], made: Made, kind: str = "real") -> Value:
    """made(numbers of the arguments) at each index."""
    shape = lowering.shape(node)
    values = [lowering.read(argument) for argument in arguments]
    numel = math.prod(shape)
    values = [lowering.stored(v) if v.cost > 0 and v.numel < numel else v for v in values]
    readers = [broadcast(v, shape) for v in values]
    cost = 1 + sum(v.cost for v in values)
    return Value(shape, kind, lambda index: made(*(reader(index) for reader in readers)), cost)


def _direct(lowering: Lowering, node: fx.Node) -> Value:
    name = DIRECT[str(getattr(node.target, "__name__", node.target)).split(".")[0]]
    factor = node.kwargs.get("alpha", node.args[2] if name in ("add", "sub") and len(node.args) > 2 else 1)
    if set(node.kwargs) - {"alpha"}:
        raise Unknown(f"{node.target} with {', '.join(node.kwargs)}")
    if name in ("add", "sub") and factor != 1:
        scale = number(_plain(factor))
        return pointwise(lowering, node, node.args[:2], lambda x, y: call(name, x, call("mul", scale, y)))
    if name == "add" and (joined := _pieces(lowering, node)) is not None:
        return joined
    kind = "truth" if name in TRUTHS else _kind(lowering, node)
    return pointwise(lowering, node, node.args[:3], lambda *numbers: call(name, *numbers), kind)


def _kind(lowering: Lowering, node: fx.Node) -> str:
    dtype = lowering.seen[node].dtype
    return "truth" if dtype == torch.bool else "real" if dtype.is_floating_point else "whole"


def _plain(argument: Any) -> float:
    if isinstance(argument, bool | int | float):
        return float(argument)
    raise Unknown(f"a number that is {argument!r}")


def _pieces(lowering: Lowering, node: fx.Node) -> Value | None:
    """The sum of values of which one is made of pieces."""
    values = [lowering.raw(argument) for argument in node.args[:2]]
    shape = lowering.shape(node)
    if not all(v.pieces and v.shape == shape for v in values):
        return None
    return Value(shape, "real", values[0].at, 1, None, values[0].pieces + values[1].pieces)


lowers(*DIRECT)(_direct)


@lowers("rsub")
def _rsub(lowering: Lowering, node: fx.Node) -> Value:
    if len(node.args) > 2 or node.kwargs:
        raise Unknown("rsub with a factor")
    return pointwise(lowering, node, node.args, lambda x, y: call("sub", y, x))


@lowers("reciprocal")
def _reciprocal(lowering: Lowering, node: fx.Node) -> Value:
    return pointwise(lowering, node, node.args, lambda x: call("div", Literal(1.0), x))


@lowers("rsqrt")
def _rsqrt(lowering: Lowering, node: fx.Node) -> Value:
    return pointwise(lowering, node, node.args, lambda x: power(x, -0.5))


@lowers("pow")
def _pow(lowering: Lowering, node: fx.Node) -> Value:
    base, exponent = node.args
    if isinstance(exponent, int | float):
        return pointwise(lowering, node, (base,), lambda x: power(x, float(exponent)))
    return pointwise(lowering, node, (base, exponent), lambda x, y: Call("pow", (x, y)))


@lowers("clamp", "clamp_min", "clamp_max")
def _clamp(lowering: Lowering, node: fx.Node) -> Value:
    name = str(node.target)
    low, high = node.kwargs.get("min"), node.kwargs.get("max")
    rest = list(node.args[1:])
    if "clamp_max" in name:
        rest = [None, *rest]
    low = rest[0] if rest else low
    high = rest[1] if len(rest) > 1 else high
    given = [bound for bound in (low, high) if bound is not None]

    def made(x: Expression, *bounds: Expression) -> Expression:
        left = list(bounds)
        if low is not None:
            x = Call("at_least", (x, left.pop(0)))
        return Call("at_most", (x, left.pop(0))) if high is not None else x

    return pointwise(lowering, node, (node.args[0], *given), made)


@lowers("softplus")
def _softplus(lowering: Lowering, node: fx.Node) -> Value:
    beta, threshold = (*map(_plain, node.args[1:]), 1.0, 20.0)[: len(node.args) - 1] + (1.0, 20.0)[len(node.args) - 1 :]
    return pointwise(lowering, node, node.args[:1], lambda x: Call("softplus", (x, Literal(beta), Literal(threshold))))


@lowers("softplus_backward")
def _softplus_backward(lowering: Lowering, node: fx.Node) -> Value:
    beta, threshold = map(_plain, node.args[2:4])

    def made(gradient: Expression, x: Expression) -> Expression:
        scaled = call("mul", Literal(beta), x)
        slope = call("mul", gradient, Call("sigmoid", (scaled,)))
        return Call("where", (Call("gt", (scaled, Literal(threshold))), gradient, slope))

    return pointwise(lowering, node, node.args[:2], made)


@lowers("log_sigmoid_forward")
def _log_sigmoid(lowering: Lowering, node: fx.Node) -> tuple[Value, Value]:
    value = lowering.stored(lowering.read(node.args[0]))
    return Value(value.shape, "real", lambda index: Call("log_sigmoid", (value.at(index),)), 3), value


@lowers("log_sigmoid_backward")
def _log_sigmoid_backward(lowering: Lowering, node: fx.Node) -> Value:
    return pointwise(lowering, node, node.args[:2], lambda g, x: call("mul", g, Call("sigmoid", (call("neg", x),))))


@lowers("sigmoid_backward")
def _sigmoid_backward(lowering: Lowering, node: fx.Node) -> Value:
    return pointwise(
        lowering, node, node.args, lambda g, y: call("mul", g, call("mul", y, call("sub", Literal(1.0), y)))
    )


@lowers("tanh_backward")
def _tanh_backward(lowering: Lowering, node: fx.Node) -> Value:
    return pointwise(
        lowering, node, node.args, lambda g, y: call("mul", g, call("sub", Literal(1.0), Call("square", (y,))))
    )


@lowers("threshold_backward")
def _threshold_backward(lowering: Lowering, node: fx.Node) -> Value:
    bound = Literal(_plain(node.args[2]))
    return pointwise(
        lowering, node, node.args[:2], lambda g, x: Call("where", (Call("le", (x, bound)), Literal(0.0), g))
    )


@lowers("relu")
def _relu(lowering: Lowering, node: fx.Node) -> Value:
    return pointwise(lowering, node, node.args, lambda x: Call("at_least", (x, Literal(0.0))))


@lowers("logit")
def _logit(lowering: Lowering, node: fx.Node) -> Value:
    _no_bound(node, 1)
    return pointwise(
        lowering, node, node.args[:1], lambda x: Call("log", (call("div", x, call("sub", Literal(1.0), x)),))
    )


@lowers("logit_backward")
def _logit_backward(lowering: Lowering, node: fx.Node) -> Value:
    _no_bound(node, 2)
    return pointwise(
        lowering, node, node.args[:2], lambda g, x: call("div", g, call("mul", x, call("sub", Literal(1.0), x)))
    )


def _no_bound(node: fx.Node, place: int) -> None:
    if len(node.args) > place and node.args[place] is not None:
        raise Unknown("logit with eps")


@lowers("xlogy")
def _xlogy(lowering: Lowering, node: fx.Node) -> Value:
    def made(x: Expression, y: Expression) -> Expression:
        product = call("mul", x, Call("log", (y,)))
        return Call("where", (Call("eq", (x, Literal(0.0))), Literal(0.0), product))

    return pointwise(lowering, node, node.args, made)


@lowers("isnan")
def _isnan(lowering: Lowering, node: fx.Node) -> Value:
    return pointwise(lowering, node, node.args, lambda x: Call("ne", (x, x)), "truth")


@lowers("isinf")
def _isinf(lowering: Lowering, node: fx.Node) -> Value:
    def made(x: Expression) -> Expression:
        return Call("eq", (Call("abs", (x,)), Literal(math.inf)))

    return pointwise(lowering, node, node.args, made, "truth")


@lowers("isneginf")
def _isneginf(lowering: Lowering, node: fx.Node) -> Value:
    return pointwise(lowering, node, node.args, lambda x: Call("eq", (x, Literal(-math.inf))), "truth")


@lowers("isposinf")
def _isposinf(lowering: Lowering, node: fx.Node) -> Value:
    return pointwise(lowering, node, node.args, lambda x: Call("eq", (x, Literal(math.inf))), "truth")


@lowers("log2")
def _log2(lowering: Lowering, node: fx.Node) -> Value:
    return pointwise(lowering, node, node.args, lambda x: call("div", Call("log", (x,)), Literal(math.log(2.0))))


@lowers("exp2")
def _exp2(lowering: Lowering, node: fx.Node) -> Value:
    return pointwise(lowering, node, node.args, lambda x: Call("pow", (Literal(2.0), x)))


@lowers("ceil")
def _ceil(lowering: Lowering, node: fx.Node) -> Value:
    return pointwise(lowering, node, node.args, lambda x: call("neg", Call("floor", (call("neg", x),))))


@lowers("polygamma")
def _polygamma(lowering: Lowering, node: fx.Node) -> Value:
    if node.args[0] != 1:
        raise Unknown(f"polygamma({node.args[0]})")
    return pointwise(lowering, node, node.args[1:], lambda x: Call("trigamma", (x,)))


@lowers("silu")
def _silu(lowering: Lowering, node: fx.Node) -> Value:
    return pointwise(lowering, node, node.args, lambda x: call("mul", x, Call("sigmoid", (x,))))


@lowers("silu_backward")
def _silu_backward(lowering: Lowering, node: fx.Node) -> Value:
    def made(g: Expression, x: Expression) -> Expression:
        s = Call("sigmoid", (x,))
        slope = call("mul", s, call("add", Literal(1.0), call("mul", x, call("sub", Literal(1.0), s))))
        return call("mul", g, slope)

    return pointwise(lowering, node, node.args, made)


@lowers("gelu")
def _gelu(lowering: Lowering, node: fx.Node) -> Value:
    _exact(node)
    return pointwise(lowering, node, node.args[:1], lambda x: call("mul", x, _normal_cdf(x)))


@lowers("gelu_backward")
def _gelu_backward(lowering: Lowering, node: fx.Node) -> Value:
    _exact(node)

    def made(g: Expression, x: Expression) -> Expression:
        bell = Call("exp", (call("mul", Literal(-0.5), Call("square", (x,))),))
        density = call("mul", Literal(1.0 / math.sqrt(2.0 * math.pi)), bell)
        return call("mul", g, call("add", _normal_cdf(x), call("mul", x, density)))

    return pointwise(lowering, node, node.args[:2], made)


def _exact(node: fx.Node) -> None:
    if node.kwargs.get("approximate", "none") != "none":
        raise Unknown("gelu by tanh")


def _normal_cdf(x: Expression) -> Expression:
    return call("mul", Literal(0.5), Call("erfc", (call("mul", Literal(-math.sqrt(0.5)), x),)))


@lowers("scalar_tensor")
def _scalar(lowering: Lowering, node: fx.Node) -> Value:
    return lowering.read(node.args[0])


@lowers("_to_copy", "to")
def _to_copy(lowering: Lowering, node: fx.Node) -> Value:
    value, kind = lowering.read(node.args[0]), _kind(lowering, node)
    if lowering.seen[node].dtype not in (torch.float64, torch.int64, torch.bool) or (value.kind, kind) == (
        "real",
        "whole",
    ):
        raise Unknown(f"a conversion to {lowering.seen[node].dtype}")
    if kind == "real" and value.kind == "truth":
        return pointwise(lowering, node, node.args[:1], lambda x: Call("number", (x,)))
    if kind == "truth" and value.kind != "truth":
        return pointwise(lowering, node, node.args[:1], lambda x: Call("truth", (x,)), "truth")
    return value
