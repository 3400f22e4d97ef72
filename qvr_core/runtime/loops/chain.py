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
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from qvr_core.runtime.families.links import FLOOR, SOFTPLUS_SHIFT
from qvr_core.runtime.loops.chain_shapes import ChainShape, StageShape
from qvr_core.runtime.loops.engine import below_autograd, traced
from qvr_core.runtime.loops.primitives import UNARY, number
from qvr_core.runtime.loops.run import versions
from qvr_core.runtime.values.buffer_pool import Pooled


class _Stages:
    """Tensors (G, B, width) by stage; with `shared`, stages of one size have the same."""

    def __init__(
        self, shape: ChainShape, rows: int, like: Tensor, widths: Callable[[StageShape], Sequence[int]], shared: bool
    ) -> None:
        made: dict[object, list[Tensor]] = {}
        self.stages: list[list[Tensor]] = []
        for at, stage in enumerate(shape.stages):
            key = (stage.kernels, stage.hidden, stage.size) if shared else at
            if key not in made:
                made[key] = [like.new_empty(shape.groups(stage), rows, width) for width in widths(stage)]
            self.stages.append(made[key])
        self.nbytes = sum(tensor.nbytes for tensors in made.values() for tensor in tensors)


def _widths_for_backward(stage: StageShape) -> Sequence[int]:
    """Widths of what the backward reads: both layers, the slope of the raw output; and of the value."""
    return stage.hidden, stage.hidden, stage.size, stage.size


def _forward_scratch(stage: StageShape) -> Sequence[int]:
    """Widths of the output, the spread and the scaled noise."""
    return 2 * stage.size, stage.size, stage.size


def _backward_scratch(stage: StageShape) -> Sequence[int]:
    """Widths of the gradients of the output and of both layers, and of the layers' slopes."""
    return 2 * stage.size, stage.hidden, stage.hidden, stage.hidden


def _pooled(
    shape: ChainShape, rows: int, like: Tensor, widths: Callable[[StageShape], Sequence[int]]
) -> Pooled[_Stages]:
    """Buffers of all stages; scratch is borrowed only while a pass runs, so that what is in the cache is used again."""
    key = (widths, shape, rows, like.dtype, like.device)
    return Pooled(key, lambda: _Stages(shape, rows, like.detach(), widths, shared=widths is not _widths_for_backward))


def run_chain(shape: ChainShape, x: Tensor, noises: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
    """The last values (P, B, Q · S) of a chain on `x` (P, B, w).

    `noises` has for each stage (G, B, S), lanes slowest; `weights` for each kernel in that order W₁ (H, w), c₁, W₂, c₂,
    W₃ (2S, H), c₃.
    """
    if traced():
        return plain_chain(shape, x, noises, weights)
    return _Chain.apply(shape, x, *noises, *weights)  # pyright: ignore[reportReturnType]


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
            result, ctx.pooled, ctx.inner = _forward(shape, x, noises, weights, keep_spread)
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


Inner = list[tuple[Tensor, tuple[Tensor, ...], Tensor | None]]
"""By stage the input (G, B, w), W₁, W₂, W₃ with the group axis first, and the scale of its noise where that is kept."""


def _forward(
    shape: ChainShape, x: Tensor, noises: Sequence[Tensor], weights: Sequence[Tensor], keep_spread: bool
) -> tuple[Tensor, Pooled[_Stages], Inner]:
    """The last values, and what the backward reads."""
    rows = x.shape[1]
    pooled, passing = _pooled(shape, rows, x, _widths_for_backward), _pooled(shape, rows, x, _forward_scratch)
    shift, floor = (number(value, x.dtype, x.device) for value in (SOFTPLUS_SHIFT, FLOOR))
    inner: Inner = []
    start, value = 0, x
    for stage, noise, kept, scratch in zip(
        shape.stages, noises, pooled.buffers.stages, passing.buffers.stages, strict=True
    ):
        groups = shape.groups(stage)
        w1, c1, w2, c2, w3, c3 = _stacked(weights[start : start + 6 * groups])
        start += 6 * groups
        given = _spread(value, stage.kernels)
        affine, see = (torch.addmm, _only) if groups == 1 else (torch.baddbmm, _as_it_is)
        first, second, slope, y = kept
        out, spread, scaled = scratch
        below = see(given)
        for weight, bias, layer in ((w1, c1, see(first)), (w2, c2, see(second))):
            affine(see(bias.unsqueeze(-2)), below, see(weight).mT, out=layer)
            UNARY["tanh"].write(layer, layer)
            below = layer
        affine(see(c3.unsqueeze(-2)), below, see(w3).mT, out=see(out))
        mean, raw = out[..., : stage.size], out[..., stage.size :]
        torch.mul(noise, stage.scale, out=scaled)
        UNARY["softplus"].write(raw.add_(shift), spread)
        torch.addcmul(mean, spread.add_(floor), scaled, out=y)
        UNARY["softplus"].slope(raw, slope)
        slope.mul_(scaled)
        inner.append((given, (w1, w2, w3), spread * stage.scale if keep_spread else None))
        value = _gather(y, shape.lanes)
    # what the caller sees is never pooled
    return value.clone(), pooled, inner


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """Gradients of everything that `_Chain` takes."""
    shape: ChainShape = ctx.shape
    stages, kept = shape.stages, ctx.pooled.buffers.stages
    passing = _pooled(shape, grad.shape[1], grad, _backward_scratch)
    need_noise = ctx.needs_input_grad[2 : 2 + len(stages)]
    need_weights = any(ctx.needs_input_grad[2 + len(stages) :])
    grad_noises: list[Tensor | None] = []
    grad_weights: list[list[Tensor | None]] = []
    for index in range(len(stages) - 1, -1, -1):
        stage, (given, (w1, w2, w3), spread) = stages[index], ctx.inner[index]
        first, second, slope, _ = kept[index]
        out, by_second, by_first, slopes = passing.buffers.stages[index]
        groups = shape.groups(stage)
        multiply, see = (torch.mm, _only) if groups == 1 else (torch.bmm, _as_it_is)
        mean, raw = out[..., : stage.size], out[..., stage.size :]
        if stage.kernels == 1:
            mean.copy_(grad)
        else:
            mean.view(shape.lanes, stage.kernels, *mean.shape[1:]).copy_(_scatter(grad, stage.kernels))
        torch.mul(mean, slope, out=raw)
        above = see(out)
        for layer, weight, into in ((second, w3, see(by_second)), (first, w2, see(by_first))):
            UNARY["tanh"].slope(layer, slopes)
            multiply(above, see(weight), out=into).mul_(see(slopes))
            above = into
        grad_noises.append(mean * spread if need_noise[index] else None)
        if need_weights:
            layers = ((by_first, given), (by_second, first), (out, second))
            grad_weights.append(_weight_gradients(layers, multiply, see))
        else:
            grad_weights.append([None] * (6 * groups))
        if index or ctx.needs_input_grad[1]:
            grad = multiply(above, see(w1)).view(groups, *given.shape[1:])
            if stage.kernels > 1:
                grad = grad.view(shape.lanes, stage.kernels, *given.shape[1:]).sum(1)
    grad_x = grad if ctx.needs_input_grad[1] else None
    return (None, grad_x, *reversed(grad_noises), *(g for each in reversed(grad_weights) for g in each))


def _weight_gradients(
    layers: Sequence[tuple[Tensor, Tensor]],
    multiply: Callable[..., Tensor],
    see: Callable[[Tensor], Tensor],
) -> list[Tensor | None]:
    """Gradients of the six weights of each kernel of a stage, kernel by kernel, from (gradient, value) by layer."""
    each: list[Sequence[Tensor]] = []
    for grad, value in layers:
        weight, bias = multiply(see(grad).mT, see(value)), grad.sum(1)
        each += [(weight,) if weight.dim() == 2 else weight.unbind(0), bias.unbind(0)]
    return [kinds[group] for group in range(len(each[0])) for kinds in each]


def _differentiable_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """For second derivatives: the gradient of the plain operations, itself a graph."""
    inputs: tuple[Any, ...] = ctx.inputs
    needed: tuple[bool, ...] = ctx.needs_input_grad[1:]
    wanted = [tensor for tensor, need in zip(inputs, needed, strict=True) if need]
    count = len(ctx.shape.stages)
    result = plain_chain(ctx.shape, inputs[0], inputs[1 : 1 + count], inputs[1 + count :])
    gradients = iter(torch.autograd.grad(result, wanted, grad, create_graph=True, allow_unused=True))
    return (None, *(next(gradients) if need else None for need in needed))
