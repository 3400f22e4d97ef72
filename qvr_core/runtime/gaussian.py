"""Chains of tanh-network kernels with Normal heads as one autograd function with a backward derived by hand.

Each stage is, for every kernel of it, the step of `qvr_core.runtime.fused` without a state:

    a = tanh(x W₁ᵀ + c₁),  b = tanh(a W₂ᵀ + c₂),  (m, r) = b W₃ᵀ + c₃,  y = m + s (softplus(r + k) + f) ε

A chain has P lanes that run side by side (the branches of `@` or `fan`), and a stage has Q kernels that read the same
input of their lane (a `fan` inside the chain); all G = P · Q kernels of a stage have one shape and one batched product.
Sizes: B rows, w width of an input, H hidden, S state of one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from qvr_core.runtime.families.heads import FLOOR, SOFTPLUS_SHIFT
from qvr_core.runtime.fused import MANY, can_fuse, softplus_into, tanh_by_sigmoid
from qvr_core.runtime.workspace import Loan


@dataclass(frozen=True, slots=True)
class StageShape:
    """A stage: kernels per lane, widths, and the scale of the noise."""

    kernels: int
    inside: int
    hidden: int
    size: int
    scale: float


@dataclass(frozen=True, slots=True)
class ChainShape:
    """Lanes and stages of a chain."""

    lanes: int
    stages: tuple[StageShape, ...]

    def groups(self, stage: StageShape) -> int:
        return self.lanes * stage.kernels


class _StageBuffers:
    def __init__(self, groups: int, rows: int, stage: StageShape, like: Tensor) -> None:
        def new(width: int) -> Tensor:
            return torch.empty(groups, rows, width, dtype=like.dtype, device=like.device)

        self.first, self.second, self.out = new(stage.hidden), new(stage.hidden), new(2 * stage.size)
        self.spread, self.scaled, self.value = new(stage.size), new(stage.size), new(stage.size)
        self.mean, self.raw = self.out[..., : stage.size], self.out[..., stage.size :]
        self.grad_first, self.grad_second, self.grad_out = new(stage.hidden), new(stage.hidden), new(2 * stage.size)
        self.slope_first, self.slope_second, self.slope_raw = new(stage.hidden), new(stage.hidden), new(stage.size)
        self.grad_mean, self.grad_raw = self.grad_out[..., : stage.size], self.grad_out[..., stage.size :]
        self.nbytes = self.first.nbytes // stage.hidden * (6 * stage.hidden + 8 * stage.size)


class _ChainBuffers:
    def __init__(self, shape: ChainShape, rows: int, like: Tensor) -> None:
        self.stages = [_StageBuffers(shape.groups(stage), rows, stage, like) for stage in shape.stages]
        self.nbytes = sum(stage.nbytes for stage in self.stages)


def run_chain(shape: ChainShape, x: Tensor, noises: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
    """The last values (P, B, Q · S) of a chain on `x` (P, B, w).

    `noises` has for each stage (G, B, S), lanes slowest; `weights` for each kernel in that order W₁ (H, w), c₁, W₂, c₂,
    W₃ (2S, H), c₃.
    """
    if can_fuse():
        return _FusedChain.apply(shape, x, *noises, *weights)  # pyright: ignore[reportReturnType]
    return plain_chain(shape, x, noises, weights)


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


def _products(groups: int) -> tuple[Callable[..., Tensor], Callable[[Tensor], Tensor]]:
    """Matrix product for a number of groups, and how to see a (G, ·, ·) tensor for it."""
    if groups == 1:
        return torch.mm, _only
    return torch.bmm, _as_it_is


def _only(tensor: Tensor) -> Tensor:
    return tensor[0]


def _as_it_is(tensor: Tensor) -> Tensor:
    return tensor


class _FusedChain(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, shape: ChainShape, x: Tensor, *tensors: Tensor) -> Tensor:
        rows = x.shape[1]
        loan = Loan((shape, rows, x.dtype, x.device), lambda: _ChainBuffers(shape, rows, x))
        noises, weights = tensors[: len(shape.stages)], tensors[len(shape.stages) :]
        inner: list[tuple[Tensor, tuple[Tensor, ...]]] = []
        start, value = 0, x
        for stage, noise, lent in zip(shape.stages, noises, loan.buffers.stages, strict=True):
            groups = shape.groups(stage)
            w1, c1, w2, c2, w3, c3 = _stacked(weights[start : start + 6 * groups])
            start += 6 * groups
            given = _spread(value, stage.kernels)
            inner.append((given, (w1, w2, w3)))
            by_sigmoid = groups * rows * stage.hidden >= MANY
            twice = 2.0 if by_sigmoid else 1.0
            tanh_ = tanh_by_sigmoid if by_sigmoid else torch.tanh_
            affine, see = (torch.addmm, _only) if groups == 1 else (torch.baddbmm, _as_it_is)
            c3 = c3.clone() if groups == 1 else c3
            c3[:, stage.size :] += SOFTPLUS_SHIFT
            c1, c2, c3 = c1.unsqueeze(-2), c2.unsqueeze(-2), c3.unsqueeze(-2)
            first, second, out = see(lent.first), see(lent.second), see(lent.out)
            tanh_(affine(see(c1), see(given), see(w1).mT, beta=twice, alpha=twice, out=first))
            tanh_(affine(see(c2), first, see(w2).mT, beta=twice, alpha=twice, out=second))
            affine(see(c3), second, see(w3).mT, out=out)
            torch.mul(noise, stage.scale, out=lent.scaled)
            softplus_into(lent.raw, out=lent.spread).add_(FLOOR)
            torch.addcmul(lent.mean, lent.spread, lent.scaled, out=lent.value)
            value = _gather(lent.value, shape.lanes)
        ctx.shape, ctx.loan, ctx.inner = shape, loan, inner
        # hundreds of weights: saving each of them the usual way costs more than the arithmetic of a small stage
        ctx.inputs, ctx.versions = (x, *tensors), _versions((x, *tensors))
        # what the caller sees is never lent
        return value.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        if torch.is_grad_enabled():
            return _differentiable_backward(ctx, grad)
        if _versions(ctx.inputs) != ctx.versions:
            raise RuntimeError("a weight or input of a kernel was modified in place before its gradient was computed")
        shape: ChainShape = ctx.shape
        buffers: _ChainBuffers = ctx.loan.buffers
        stages = shape.stages
        need_noise = ctx.needs_input_grad[2 : 2 + len(stages)]
        need_weights = any(ctx.needs_input_grad[2 + len(stages) :])
        grad_noises: list[Tensor | None] = []
        grad_weights: list[list[Tensor | None]] = []
        one = grad.new_ones(())
        for index in range(len(stages) - 1, -1, -1):
            stage, lent = stages[index], buffers.stages[index]
            given, (w1, w2, w3) = ctx.inner[index]
            multiply, see = _products(shape.groups(stage))
            torch.sigmoid(lent.raw, out=lent.slope_raw).mul_(lent.scaled)
            torch.addcmul(one, lent.first, lent.first, value=-1.0, out=lent.slope_first)
            torch.addcmul(one, lent.second, lent.second, value=-1.0, out=lent.slope_second)
            if stage.kernels == 1:
                lent.grad_mean.copy_(grad)
            else:
                lent.grad_mean.view(shape.lanes, stage.kernels, *lent.grad_mean.shape[1:]).copy_(
                    _scatter(grad, stage.kernels)
                )
            torch.mul(lent.grad_mean, lent.slope_raw, out=lent.grad_raw)
            g_out, g_second, g_first = see(lent.grad_out), see(lent.grad_second), see(lent.grad_first)
            multiply(g_out, see(w3), out=g_second).mul_(see(lent.slope_second))
            multiply(g_second, see(w2), out=g_first).mul_(see(lent.slope_first))
            grad_noises.append((lent.grad_mean * lent.spread).mul_(stage.scale) if need_noise[index] else None)
            if need_weights:
                grad_weights.append(_weight_gradients(lent, given, multiply, see))
            else:
                grad_weights.append([None] * (6 * shape.groups(stage)))
            if index or ctx.needs_input_grad[1]:
                grad = multiply(g_first, see(w1)).view(shape.groups(stage), *given.shape[1:])
                if stage.kernels > 1:
                    grad = grad.view(shape.lanes, stage.kernels, *given.shape[1:]).sum(1)
        grad_x = grad if ctx.needs_input_grad[1] else None
        return (None, grad_x, *reversed(grad_noises), *(g for each in reversed(grad_weights) for g in each))


def _versions(tensors: Sequence[Tensor]) -> int:
    return sum([tensor._version for tensor in tensors])


def _weight_gradients(
    lent: _StageBuffers, given: Tensor, multiply: Callable[..., Tensor], see: Callable[[Tensor], Tensor]
) -> list[Tensor | None]:
    """Gradients of the six weights of each kernel of a stage, kernel by kernel."""
    each: list[Sequence[Tensor]] = []
    for grad, value in ((lent.grad_first, given), (lent.grad_second, lent.first), (lent.grad_out, lent.second)):
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
