"""Chains of tanh-network kernels with Normal heads as one autograd function with a backward derived by hand.

Each stage is, for every kernel of it, the step of `qvr_core.runtime.loops.fused` without a state:

    a = tanh(x W₁ᵀ + c₁),  b = tanh(a W₂ᵀ + c₂),  (m, r) = b W₃ᵀ + c₃,  y = m + s (softplus(r + k) + f) ε

A chain has P lanes that run side by side (the branches of `@` or `fan`), and a stage has Q kernels that read the same
input of their lane (a `fan` inside the chain); all G = P · Q kernels of a stage have one shape and one batched product.
Sizes: B rows, w width of an input, H hidden, S state of one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from qvr_core.runtime.families.links import FLOOR, SOFTPLUS_SHIFT
from qvr_core.runtime.loops.fused import below_autograd, can_fuse, number, softplus_into, tanh_in_place
from qvr_core.runtime.values.workspace import Buffers, Loan

Lent = TypeVar("Lent", bound=Buffers)


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

    def new(self, stage: StageShape, rows: int, width: int, like: Tensor) -> Tensor:
        """An empty tensor (G, B, width) for a stage."""
        return torch.empty(self.groups(stage), rows, width, dtype=like.dtype, device=like.device)

    def scratch(self, make: Callable[[StageShape], Lent]) -> tuple[Lent, ...]:
        """Scratch for each stage; stages of one size share theirs."""
        made: dict[tuple[int, int, int], Lent] = {}
        for stage in self.stages:
            key = (stage.kernels, stage.hidden, stage.size)
            if key not in made:
                made[key] = make(stage)
        return tuple(made[stage.kernels, stage.hidden, stage.size] for stage in self.stages)


class _Kept:
    """What the backward reads of a stage: both layers, the slope of the raw output; and the value."""

    def __init__(self, shape: ChainShape, rows: int, stage: StageShape, like: Tensor) -> None:
        self.first, self.second = (shape.new(stage, rows, stage.hidden, like) for _ in range(2))
        self.slope, self.value = (shape.new(stage, rows, stage.size, like) for _ in range(2))
        self.spread: Tensor | None = None
        self.nbytes = 2 * (self.first.nbytes + self.slope.nbytes)


class _ForwardScratch:
    """Scratch of a stage's forward: output, spread, scaled noise."""

    def __init__(self, shape: ChainShape, rows: int, stage: StageShape, like: Tensor) -> None:
        self.out = shape.new(stage, rows, 2 * stage.size, like)
        self.mean, self.raw = self.out[..., : stage.size], self.out[..., stage.size :]
        self.spread, self.scaled = (shape.new(stage, rows, stage.size, like) for _ in range(2))
        self.nbytes = 2 * self.out.nbytes


class _BackwardScratch:
    """Scratch of a stage's backward: gradients of the output and both layers, slopes of the layers."""

    def __init__(self, shape: ChainShape, rows: int, stage: StageShape, like: Tensor) -> None:
        self.out = shape.new(stage, rows, 2 * stage.size, like)
        self.mean, self.raw = self.out[..., : stage.size], self.out[..., stage.size :]
        self.by_lane = self.mean.view(shape.lanes, stage.kernels, rows, stage.size)
        self.first, self.second, self.slope = (shape.new(stage, rows, stage.hidden, like) for _ in range(3))
        self.nbytes = self.out.nbytes + 3 * self.first.nbytes


class _Stages(Generic[Lent]):
    """Buffers of all stages of a chain."""

    def __init__(self, stages: Sequence[Lent]) -> None:
        self.stages = stages
        self.nbytes = sum(each.nbytes for each in {id(stage): stage for stage in stages}.values())


class _LentChain:
    """A chain's buffers on loan; scratch is lent only while a pass runs, so that what is in the cache is used again."""

    def __init__(self, shape: ChainShape, rows: int, like: Tensor) -> None:
        self.shape, self.rows, self.like = shape, rows, like.new_empty(())
        self.key = (shape, rows, like.dtype, like.device)
        self.kept = Loan(("chain", self.key), lambda: _Stages([self._make(_Kept, stage) for stage in shape.stages]))

    def _make(self, kind: Callable[[ChainShape, int, StageShape, Tensor], Lent], stage: StageShape) -> Lent:
        return kind(self.shape, self.rows, stage, self.like)

    def forward(self) -> Loan[_Stages[_ForwardScratch]]:
        """Scratch for a forward pass."""
        make = partial(self._make, _ForwardScratch)
        return Loan(("chain forward", self.key), lambda: _Stages(self.shape.scratch(make)))

    def backward(self) -> Loan[_Stages[_BackwardScratch]]:
        """Scratch for a backward pass."""
        make = partial(self._make, _BackwardScratch)
        return Loan(("chain backward", self.key), lambda: _Stages(self.shape.scratch(make)))


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
        # hundreds of weights: saving each of them the usual way costs more than the arithmetic of a small stage
        ctx.shape, ctx.inputs, ctx.versions = shape, (x, *tensors), _versions((x, *tensors))
        noises, weights = tensors[: len(shape.stages)], tensors[len(shape.stages) :]
        keep_spread = any(ctx.needs_input_grad[2 : 2 + len(shape.stages)])
        with below_autograd():
            result, ctx.loan, ctx.inner = _forward(shape, x, noises, weights, keep_spread)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        if torch.is_grad_enabled():
            return _differentiable_backward(ctx, grad)
        if _versions(ctx.inputs) != ctx.versions:
            raise RuntimeError("a weight or input of a kernel was modified in place before its gradient was computed")
        with below_autograd():
            return _backward(ctx, grad)


Inner = list[tuple[Tensor, tuple[Tensor, ...]]]
"""By stage the input (G, B, w), and W₁, W₂, W₃ with the group axis first."""


def _forward(
    shape: ChainShape, x: Tensor, noises: Sequence[Tensor], weights: Sequence[Tensor], keep_spread: bool
) -> tuple[Tensor, _LentChain, Inner]:
    """The last values, and what the backward reads."""
    rows = x.shape[1]
    loan = _LentChain(shape, rows, x)
    passing = loan.forward()
    shift, floor = (number(value, x.dtype, x.device) for value in (SOFTPLUS_SHIFT, FLOOR))
    inner: Inner = []
    start, value = 0, x
    stages = zip(shape.stages, noises, loan.kept.buffers.stages, passing.buffers.stages, strict=True)
    for stage, noise, kept, lent in stages:
        groups = shape.groups(stage)
        w1, c1, w2, c2, w3, c3 = _stacked(weights[start : start + 6 * groups])
        start += 6 * groups
        given = _spread(value, stage.kernels)
        inner.append((given, (w1, w2, w3)))
        tanh_ = tanh_in_place(groups * rows * stage.hidden)
        affine, see = (torch.addmm, _only) if groups == 1 else (torch.baddbmm, _as_it_is)
        first, second = see(kept.first), see(kept.second)
        tanh_(affine(see(c1.unsqueeze(-2)), see(given), see(w1).mT, out=first))
        tanh_(affine(see(c2.unsqueeze(-2)), first, see(w2).mT, out=second))
        affine(see(c3.unsqueeze(-2)), second, see(w3).mT, out=see(lent.out))
        torch.mul(noise, stage.scale, out=lent.scaled)
        softplus_into(lent.raw.add_(shift), out=lent.spread).add_(floor)
        torch.addcmul(lent.mean, lent.spread, lent.scaled, out=kept.value)
        torch.sigmoid(lent.raw, out=kept.slope).mul_(lent.scaled)
        kept.spread = lent.spread * stage.scale if keep_spread else None
        value = _gather(kept.value, shape.lanes)
    # what the caller sees is never lent
    return value.clone(), loan, inner


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """Gradients of everything that `_FusedChain` takes."""
    shape: ChainShape = ctx.shape
    loan: _LentChain = ctx.loan
    passing = loan.backward()
    stages = shape.stages
    need_noise = ctx.needs_input_grad[2 : 2 + len(stages)]
    need_weights = any(ctx.needs_input_grad[2 + len(stages) :])
    grad_noises: list[Tensor | None] = []
    grad_weights: list[list[Tensor | None]] = []
    one = number(1.0, grad.dtype, grad.device)
    for index in range(len(stages) - 1, -1, -1):
        stage, kept, lent = stages[index], loan.kept.buffers.stages[index], passing.buffers.stages[index]
        given, (w1, w2, w3) = ctx.inner[index]
        groups = shape.groups(stage)
        multiply, see = _products(groups)
        if stage.kernels == 1:
            lent.mean.copy_(grad)
        else:
            lent.by_lane.copy_(_scatter(grad, stage.kernels))
        torch.mul(lent.mean, kept.slope, out=lent.raw)
        g_out, g_second, g_first = see(lent.out), see(lent.second), see(lent.first)
        torch.addcmul(one, kept.second, kept.second, value=-1.0, out=lent.slope)
        multiply(g_out, see(w3), out=g_second).mul_(see(lent.slope))
        torch.addcmul(one, kept.first, kept.first, value=-1.0, out=lent.slope)
        multiply(g_second, see(w2), out=g_first).mul_(see(lent.slope))
        if need_noise[index]:
            assert kept.spread is not None
            grad_noises.append(lent.mean * kept.spread)
        else:
            grad_noises.append(None)
        if need_weights:
            grad_weights.append(_weight_gradients(kept, lent, given, multiply, see))
        else:
            grad_weights.append([None] * (6 * groups))
        if index or ctx.needs_input_grad[1]:
            grad = multiply(g_first, see(w1)).view(groups, *given.shape[1:])
            if stage.kernels > 1:
                grad = grad.view(shape.lanes, stage.kernels, *given.shape[1:]).sum(1)
    grad_x = grad if ctx.needs_input_grad[1] else None
    return (None, grad_x, *reversed(grad_noises), *(g for each in reversed(grad_weights) for g in each))


def _versions(tensors: Sequence[Tensor]) -> int:
    return sum([tensor._version for tensor in tensors])


def _weight_gradients(
    kept: _Kept,
    lent: _BackwardScratch,
    given: Tensor,
    multiply: Callable[..., Tensor],
    see: Callable[[Tensor], Tensor],
) -> list[Tensor | None]:
    """Gradients of the six weights of each kernel of a stage, kernel by kernel."""
    each: list[Sequence[Tensor]] = []
    for grad, value in ((lent.first, given), (lent.second, kept.first), (lent.out, kept.second)):
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
