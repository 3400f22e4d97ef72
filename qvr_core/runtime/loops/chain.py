"""Chains of tanh-network kernels with Normal heads as one autograd function with a backward derived by hand.

Each stage is, for every kernel of it, the cell of `qvr_core.runtime.loops.cells` without a state:

    a = tanh(x W₁ᵀ + c₁),  b = tanh(a W₂ᵀ + c₂),  (m, r) = b W₃ᵀ + c₃,  y = m + s (softplus(r + k) + f) ε

A chain has P lanes that run side by side (the branches of `@` or `fan`), and a stage has Q kernels that read the same
input of their lane (a `fan` inside the chain); all G = P · Q kernels of a stage have one shape and one batched product.
It is no compiled loop since each stage has groups of its own (see docs/architecture.md for the figures).
Sizes: B rows, w width of an input, H hidden, S state of one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from qvr_core.runtime.families.links import FLOOR, SOFTPLUS_SHIFT
from qvr_core.runtime.loops.chain_shapes import ChainShape, StageShape
from qvr_core.runtime.loops.chain_weights import WeightBlocks, home_of
from qvr_core.runtime.loops.engine import below_autograd, traced
from qvr_core.runtime.loops.primitives import UNARY, Call, number
from qvr_core.runtime.loops.run import versions
from qvr_core.runtime.values.buffer_pool import Pooled

FEW = 2
"""Kernels of a stage whose weights have their gradients computed one by one."""


class _Stage:
    """The buffers of one stage, and its passes as calls that are bound to them once: views cost as much as small sums.

    `given` (G, B, w) is what it reads, `weights` are as of `weight_blocks`, `y` (G, B, S) is its value.  `scratch` is
    shared with stages of the same size, so that what is in the cache is used again.
    """

    def __init__(
        self, groups: int, stage: StageShape, given: Tensor, weights: Sequence[Tensor], scratch: Sequence[Tensor]
    ) -> None:
        self.shape, self.given = stage, given
        new, rows, hidden, size = given.new_empty, given.shape[1], stage.hidden, stage.size
        first, second = new(groups, rows, hidden), new(groups, rows, hidden)
        self.slope, self.y = new(groups, rows, size), new(groups, rows, size)
        self.out, raw, self.spread, self.scaled, by_second, by_first, slopes = scratch
        self.own = (first, second, self.slope, self.y)
        see, affine, multiply = (_only, torch.addmm, torch.mm) if groups == 1 else (_as_it_is, torch.baddbmm, torch.bmm)
        w1, c1, w2, c2, w3, c3 = weights
        tanh, softplus = UNARY["tanh"], UNARY["softplus"]
        shift, floor = (number(value, given.dtype, given.device) for value in (SOFTPLUS_SHIFT, FLOOR))
        self.scale = number(stage.scale, given.dtype, given.device)
        mean, of_raw = self.out[..., :size], self.out[..., size:]
        self.mean = mean
        self.forwards: list[Call] = []
        for below, weight, bias, layer in ((given, w1, c1, first), (first, w2, c2, second), (second, w3, c3, self.out)):
            bound = see(bias.unsqueeze(-2)), see(below), see(weight.mT)
            self.forwards.append(partial(affine, *bound, out=see(layer)))
            self.forwards += [] if layer is self.out else tanh.calls(layer, layer)
        # laid close: on rows of a few numbers, a half of `out`, torch's softplus takes five times as long
        self.forwards += [partial(torch.add, of_raw, shift, out=raw), *softplus.calls(raw, self.spread)]
        self.forwards += [
            partial(self.spread.add_, floor),
            partial(torch.addcmul, mean, self.spread, self.scaled, out=self.y),
        ]
        self.forwards += [partial(softplus.slope, raw, self.slope), partial(self.slope.mul_, self.scaled)]
        self.backwards: list[Call] = [partial(torch.mul, mean, self.slope, out=of_raw)]
        above = self.out
        for layer, weight, into in ((second, w3, by_second), (first, w2, by_first)):
            self.backwards.append(partial(tanh.slope, layer, slopes))
            self.backwards.append(partial(multiply, see(above), see(weight), out=see(into)))
            self.backwards.append(partial(into.mul_, slopes))
            above = into
        layers = [(by_first, given), (by_second, first), (self.out, second)]
        self._of_weights = [calls for layer in layers for calls in _weight_calls(*layer)]
        self.of_given = partial(multiply, see(by_first), see(w1))

    def weight_gradients(self) -> list[Tensor]:
        """Gradients of the six weights of each kernel, kernel by kernel."""
        kinds: list[Sequence[Tensor]] = [[call() for call in calls] for calls in self._of_weights]
        if len(self.y) > FEW:
            kinds = [block.unbind(0) for (block,) in kinds]
        return [made for kernel in zip(*kinds, strict=True) for made in kernel]


def _weight_calls(grad: Tensor, value: Tensor) -> tuple[list[Callable[[], Tensor]], list[Callable[[], Tensor]]]:
    """Calls for the gradients of a layer's weights and biases, of all kernels at once or of each by itself.

    A few are quicker by themselves, where nothing is cut from a block: 3.8 against 5.7 us for two weights of 64 by 16
    at 32 rows; eight are even.  A product with ones is a sum in two thirds of the time: 1.5 against 2.5 us there.
    """
    if len(grad) > FEW:
        return [partial(torch.bmm, grad.mT, value)], [partial(grad.sum, 1)]
    pairs, ones = list(zip(grad.unbind(0), value.unbind(0), strict=True)), grad.new_ones(grad.shape[1])
    return [partial(torch.mm, each.T, of) for each, of in pairs], [partial(torch.mv, each.T, ones) for each, _ in pairs]


class _Buffers:
    """The stages of a chain on B rows, on weights that lie together in `home` or are copied to `blocks`."""

    def __init__(self, shape: ChainShape, rows: int, like: Tensor, home: WeightBlocks | None) -> None:
        like = like.detach()
        self.stages: list[_Stage] = []
        scratch: dict[object, list[Tensor]] = {}
        self.blocks = home or WeightBlocks(shape, like)
        own = [block for blocks in self.blocks.stages for block in blocks]
        before: _Stage | None = None
        for stage, weights in zip(shape.stages, self.blocks.stages, strict=True):
            groups = shape.groups(stage)
            key = (stage.kernels, stage.hidden, stage.size)
            widths = (2 * stage.size, *[stage.size] * 3, *[stage.hidden] * 3)
            if key not in scratch:
                scratch[key] = [like.new_empty(groups, rows, width) for width in widths]
            given = before.y if before is not None and before.shape.kernels == stage.kernels == 1 else None
            if given is None:
                own.append(given := like.new_empty(groups, rows, stage.inside))
            before = _Stage(groups, stage, given, weights, scratch[key])
            self.stages.append(before)
            own += before.own
        self.nbytes = sum(tensor.nbytes for tensors in (*scratch.values(), own) for tensor in tensors)


def run_chain(shape: ChainShape, x: Tensor, noises: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
    """The last values (P, B, Q · S) of a chain on `x` (P, B, w).

    `noises` has for each stage (G, B, S), lanes slowest; `weights` for each kernel in that order W₁ (H, w), c₁, W₂, c₂,
    W₃ (2S, H), c₃.
    """
    if traced():
        return plain_chain(shape, x, noises, weights)
    # `Function.apply` looks at each of hundreds of weights for what torch.func left behind: 60 us, for nothing here
    above = super(torch.autograd.Function, _Chain)
    apply = above.apply  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
    return apply(shape, x, *noises, *weights)  # pyright: ignore[reportUnknownVariableType]


def plain_chain(shape: ChainShape, x: Tensor, noises: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
    """The same in plain operations."""
    start = 0
    for stage, noise in zip(shape.stages, noises, strict=True):
        count = 6 * shape.groups(stage)
        w1, c1, w2, c2, w3, c3 = _stacked(weights[start : start + count])
        start += count
        first = torch.tanh(_spread(x, stage.kernels) @ w1.mT + c1.unsqueeze(-2))
        second = torch.tanh(first @ w2.mT + c2.unsqueeze(-2))
        mean, raw = (second @ w3.mT + c3.unsqueeze(-2)).chunk(2, dim=-1)
        x = _gather(mean + (F.softplus(raw + SOFTPLUS_SHIFT) + FLOOR) * stage.scale * noise, shape.lanes)
    return x


def _stacked(weights: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The six weights with the group axis first."""
    if len(weights) == 6:
        return tuple(weight.unsqueeze(0) for weight in weights)
    return tuple(torch.stack(tuple(weights[kind::6])) for kind in range(6))


def _spread(x: Tensor, kernels: int) -> Tensor:
    """(P, B, w) to (P · Q, B, w): every kernel of a lane reads the lane's value."""
    if kernels == 1:
        return x
    lanes, rows, width = x.shape
    return x.unsqueeze(1).expand(lanes, kernels, rows, width).reshape(lanes * kernels, rows, width)


def _gather(value: Tensor, lanes: int) -> Tensor:
    """(P · Q, B, S) to (P, B, Q · S)."""
    groups, rows, size = value.shape
    if groups == lanes:
        return value
    return value.view(lanes, groups // lanes, rows, size).transpose(1, 2).reshape(lanes, rows, -1)


def _scatter(grad: Tensor, kernels: int) -> Tensor:
    """(P, B, Q · S) to (P, Q, B, S): inverse of `_gather` but for the last view."""
    lanes, rows, width = grad.shape
    return grad.view(lanes, rows, kernels, width // kernels).transpose(1, 2)


def _only(tensor: Tensor) -> Tensor:
    return tensor[0]


def _as_it_is(tensor: Tensor) -> Tensor:
    return tensor


class _Chain(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, shape: ChainShape, x: Tensor, *tensors: Tensor) -> Tensor:
        # hundreds of weights: saving each of them the usual way costs more than the arithmetic of a small stage
        ctx.shape, ctx.inputs, ctx.versions = shape, (x, *tensors), versions((x, *tensors))
        noises, weights = tensors[: len(shape.stages)], tensors[len(shape.stages) :]
        keep_spread = any(ctx.needs_input_grad[2 : 2 + len(shape.stages)])
        with below_autograd():
            result, ctx.pooled, ctx.spreads = _forward(shape, x, noises, weights, keep_spread)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The gradients of `forward`'s inputs, in their order; `None` where none is wanted.

        RuntimeError where an input was changed in place in between.
        """
        if torch.is_grad_enabled():
            return _differentiable_backward(ctx, grad)
        if versions(ctx.inputs) != ctx.versions:
            raise RuntimeError("a weight or input of a kernel was modified in place before its gradient was computed")
        with below_autograd():
            return _backward(ctx, grad)


def _forward(
    shape: ChainShape, x: Tensor, noises: Sequence[Tensor], weights: Sequence[Tensor], keep_spread: bool
) -> tuple[Tensor, Pooled[_Buffers], list[Tensor]]:
    """The last values, the buffers that the backward reads, and by stage the scale of the noise where that is kept."""
    rows = x.shape[1]
    home = home_of(shape, weights, x)
    pooled = Pooled((shape, rows, x.dtype, x.device, home), lambda: _Buffers(shape, rows, x, home))
    if home is None:
        torch._foreach_copy_(pooled.buffers.blocks.places, list(weights))  # pyright: ignore
    spreads: list[Tensor] = []
    value = x
    for stage, noise in zip(pooled.buffers.stages, noises, strict=True):
        if value is not stage.given:
            kernels = stage.shape.kernels
            stage.given.view(shape.lanes, kernels, *value.shape[1:]).copy_(value.unsqueeze(1))
        torch.mul(noise, stage.scale, out=stage.scaled)
        for call in stage.forwards:
            call()
        if keep_spread:
            spreads.append(stage.spread * stage.scale)
        value = _gather(stage.y, shape.lanes)
    # what the caller sees is never pooled
    return value.clone(), pooled, spreads


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """Gradients of everything that `_Chain` takes."""
    shape: ChainShape = ctx.shape
    stages: list[_Stage] = ctx.pooled.buffers.stages
    need_noise = ctx.needs_input_grad[2 : 2 + len(stages)]
    need_weights = any(ctx.needs_input_grad[2 + len(stages) :])
    grad_noises: list[Tensor | None] = []
    grad_weights: list[Sequence[Tensor | None]] = []
    for index in range(len(stages) - 1, -1, -1):
        stage = stages[index]
        kernels = stage.shape.kernels
        if kernels == 1:
            stage.mean.copy_(grad)
        else:
            stage.mean.view(shape.lanes, kernels, *stage.mean.shape[1:]).copy_(_scatter(grad, kernels))
        for call in stage.backwards:
            call()
        grad_noises.append(stage.mean * ctx.spreads[index] if need_noise[index] else None)
        grad_weights.append(stage.weight_gradients() if need_weights else [None] * (6 * len(stage.y)))
        if index or ctx.needs_input_grad[1]:
            grad = stage.of_given().view(stage.given.shape)
            if kernels > 1:
                grad = grad.view(shape.lanes, kernels, *stage.given.shape[1:]).sum(1)
    grad_x = grad if ctx.needs_input_grad[1] else None
    return (None, grad_x, *reversed(grad_noises), *chain.from_iterable(reversed(grad_weights)))


def _differentiable_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """For second derivatives: the gradient of the plain operations, itself a graph."""
    inputs: tuple[Any, ...] = ctx.inputs
    needed: tuple[bool, ...] = ctx.needs_input_grad[1:]
    wanted = [tensor for tensor, need in zip(inputs, needed, strict=True) if need]
    count = len(ctx.shape.stages)
    result = plain_chain(ctx.shape, inputs[0], inputs[1 : 1 + count], inputs[1 + count :])
    gradients = iter(torch.autograd.grad(result, wanted, grad, create_graph=True, allow_unused=True))
    return (None, *(next(gradients) if need else None for need in needed))
