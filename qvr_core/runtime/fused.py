"""The scan of a tanh-network cell with a Normal head, as one autograd function with a backward derived by hand.

    a = tanh(p_t + h_{t-1} W_hᵀ),  b = tanh(a W₂ᵀ + c₂),  (m, r) = b W₃ᵀ + c₃,  h_t = m + s (softplus(r + k) + f) ε_t

`p` is the input's share of the first layer, computed for all times at once by the caller.  Time is the first axis; an
optional group axis after it runs several cells of one shape side by side.  Gradients of the weights are one product
over all times.  Sizes: L times, G cells, B rows, H hidden, S state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from qvr_core.runtime.families.heads import FLOOR, SOFTPLUS_SHIFT
from qvr_core.runtime.workspace import Workspace

_softplus_into: Callable[..., Tensor] = torch._C._nn.softplus  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]


MANY = 1024
"""Numbers in one step's layer from which the sigmoid's speed outweighs one more operation."""


def _tanh_by_sigmoid(twice_z: Tensor) -> Tensor:
    return torch.add(-1.0, twice_z.sigmoid_(), alpha=2.0, out=twice_z)  # pyright: ignore[reportCallIssue, reportArgumentType]


def can_fuse() -> bool:
    """False inside torch.func transforms and while compiling, where plain operations are wanted."""
    functorch_active = torch._C._are_functorch_transforms_active()  # pyright: ignore[reportPrivateUsage]
    return not (functorch_active or torch.compiler.is_compiling())


def run_cell(
    projected: Tensor,
    index: Tensor | None,
    start: Tensor,
    state_weight: Tensor,
    hidden_weight: Tensor,
    hidden_bias: Tensor,
    output_weight: Tensor,
    output_bias: Tensor,
    noise: Tensor,
    scale: float,
    emit_all: bool,
) -> Tensor:
    """States ([L,] [G,] B, S) of the scan.

    `projected` (L, [G,] B, H), or a table (V, H) of whose rows `index` (L, [G,] B) takes one at each step; `start`
    ([G,] B, S), `state_weight` ([G,] H, S), `hidden_weight` ([G,] H, H), `output_weight` ([G,] 2S, H), biases
    ([G,] ·), `noise` (L, [G,] B, S).
    """
    arguments = (projected, index, start, state_weight, hidden_weight, hidden_bias, output_weight, output_bias, noise)
    if can_fuse():
        return _FusedCell.apply(*arguments, scale, emit_all)  # pyright: ignore[reportReturnType]
    return plain_cell(*arguments, scale, emit_all)


def plain_cell(
    projected: Tensor,
    index: Tensor | None,
    start: Tensor,
    state_weight: Tensor,
    hidden_weight: Tensor,
    hidden_bias: Tensor,
    output_weight: Tensor,
    output_bias: Tensor,
    noise: Tensor,
    scale: float,
    emit_all: bool,
) -> Tensor:
    """The same in plain operations: what transforms see, and what the fused path is tested against."""
    state = start
    states: list[Tensor] = []
    projected = projected if index is None else F.embedding(index, projected)
    for step, fresh in zip(projected.unbind(0), noise.unbind(0), strict=True):
        first = torch.tanh(step + state @ state_weight.mT)
        second = torch.tanh(first @ hidden_weight.mT + hidden_bias.unsqueeze(-2))
        mean, raw = (second @ output_weight.mT + output_bias.unsqueeze(-2)).chunk(2, dim=-1)
        state = mean + (F.softplus(raw + SOFTPLUS_SHIFT) + FLOOR) * scale * fresh
        states.append(state)
    return torch.stack(states) if emit_all else state


class _FusedCell(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        index: Tensor | None,
        start: Tensor,
        state_weight: Tensor,
        hidden_weight: Tensor,
        hidden_bias: Tensor,
        output_weight: Tensor,
        output_bias: Tensor,
        noise: Tensor,
        scale: float,
        emit_all: bool,
    ) -> Tensor:
        *lead, size = start.shape
        length = noise.shape[0]
        affine = torch.addmm if start.dim() == 2 else torch.baddbmm
        hidden = projected.shape[-1]
        lent = Workspace(projected)
        first, second = (lent.take((length, *lead, hidden)) for _ in range(2))
        out = lent.take((length, *lead, 2 * size))
        spread = lent.take((length, *lead, size))
        shape = (length + 1, *lead, size)
        # what the caller sees is never lent
        states = projected.new_empty(shape) if emit_all else lent.take(shape)
        states[0] = start
        given = projected
        if index is not None:
            given = lent.take((length, *lead, hidden))
            torch.index_select(projected, 0, index.reshape(-1), out=given.view(-1, hidden))
        scaled = torch.mul(noise, scale, out=lent.take((length, *lead, size)))
        inner_bias, outer_bias = hidden_bias.unsqueeze(-2), output_bias.unsqueeze(-2).clone()
        outer_bias[..., size:] += SOFTPLUS_SHIFT
        # tanh z = 2 σ(2z) − 1: torch's sigmoid is some five times faster than its tanh where there is much of it
        by_sigmoid = first[0].numel() >= MANY
        twice = 2.0 if by_sigmoid else 1.0
        tanh_ = _tanh_by_sigmoid if by_sigmoid else torch.tanh_
        into_first, into_second, into_out = state_weight.mT, hidden_weight.mT, output_weight.mT
        steps = zip(
            given.unbind(0), first.unbind(0), second.unbind(0), out.unbind(0), out[..., :size].unbind(0),
            out[..., size:].unbind(0), spread.unbind(0), scaled.unbind(0), states[:-1].unbind(0),
            states[1:].unbind(0), strict=True,
        )  # fmt: skip
        for p, a, b, o, mean, raw, sp, e, before, after in steps:
            tanh_(affine(p, before, into_first, beta=twice, alpha=twice, out=a))
            tanh_(affine(inner_bias, a, into_second, beta=twice, alpha=twice, out=b))
            affine(outer_bias, b, into_out, out=o)
            _softplus_into(raw, out=sp).add_(FLOOR)
            torch.addcmul(mean, sp, e, out=after)
        ctx.save_for_backward(
            projected, index, start, state_weight, hidden_weight, hidden_bias, output_weight, output_bias, noise
        )
        ctx.lent, ctx.inner = lent, (first, second, out, spread, states, scaled)
        ctx.scale, ctx.emit_all = scale, emit_all
        return states[1:] if emit_all else states[-1].clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        if torch.is_grad_enabled():
            return _differentiable_backward(ctx, grad)
        saved = ctx.saved_tensors
        state_weight, hidden_weight, output_weight = saved[3], saved[4], saved[6]
        first, second, out, spread, states, scaled = ctx.inner
        lent = ctx.lent
        length, size = scaled.shape[0], scaled.shape[-1]
        multiply = torch.mm if grad.dim() - ctx.emit_all == 2 else torch.bmm
        through_spread = torch.sigmoid(out[..., size:], out=lent.take(scaled.shape)).mul_(scaled)
        one = first.new_ones(())
        slope_first = torch.addcmul(one, first, first, value=-1.0, out=lent.take(first.shape))
        slope_second = torch.addcmul(one, second, second, value=-1.0, out=lent.take(second.shape))
        grad_out, grad_second = lent.take(out.shape), lent.take(second.shape)
        index = saved[1]
        grad_first = torch.empty_like(first) if index is None else lent.take(first.shape)
        carried = scaled.new_zeros(scaled.shape[1:]) if ctx.emit_all else grad
        grad_mean, grad_raw = grad_out[..., :size].unbind(0), grad_out[..., size:].unbind(0)
        emitted = grad.unbind(0) if ctx.emit_all else None
        parts = tuple(
            t.unbind(0) for t in (grad_out, grad_first, grad_second, through_spread, slope_first, slope_second)
        )
        for t in range(length - 1, -1, -1):
            g_out, g_first, g_second, through, slope1, slope2 = (part[t] for part in parts)
            if emitted is not None:
                torch.add(carried, emitted[t], out=grad_mean[t])
            else:
                grad_mean[t].copy_(carried)
            torch.mul(grad_mean[t], through, out=grad_raw[t])
            multiply(g_out, output_weight, out=g_second).mul_(slope2)
            multiply(g_second, hidden_weight, out=g_first).mul_(slope1)
            carried = multiply(g_first, state_weight)
        need = ctx.needs_input_grad
        grad_projected = grad_first
        if index is not None:
            grad_projected = torch.zeros_like(saved[0])
            grad_projected.index_add_(0, index.reshape(-1), grad_first.view(-1, grad_first.shape[-1]))
        return (
            grad_projected,
            None,
            carried if need[2] else None,
            _outer(grad_first, states[:-1]) if need[3] else None,
            _outer(grad_second, first) if need[4] else None,
            _over_rows(grad_second) if need[5] else None,
            _outer(grad_out, second) if need[6] else None,
            _over_rows(grad_out) if need[7] else None,
            (grad_out[..., :size] * spread).mul_(ctx.scale) if need[8] else None,
            None,
            None,
        )


def _outer(grad: Tensor, value: Tensor) -> Tensor:
    """Σ over times and rows of grad ⊗ value, per group: ([G,] n, m)."""
    if grad.dim() == 3:
        return grad.flatten(0, 1).mT @ value.flatten(0, 1)
    return grad.transpose(0, 1).flatten(1, 2).mT @ value.transpose(0, 1).flatten(1, 2)


def _over_rows(grad: Tensor) -> Tensor:
    return grad.sum((0, -2))


def _differentiable_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """For second derivatives: the gradient of the plain operations, itself a graph."""
    inputs: tuple[Any, ...] = ctx.saved_tensors
    wanted = [tensor for tensor, need in zip(inputs, ctx.needs_input_grad, strict=False) if need]
    p, index, start, w_state, w_hidden, b_hidden, w_out, b_out, noise = inputs
    result = plain_cell(p, index, start, w_state, w_hidden, b_hidden, w_out, b_out, noise, ctx.scale, ctx.emit_all)
    gradients = iter(torch.autograd.grad(result, wanted, grad, create_graph=True, allow_unused=True))
    return (*(next(gradients) if need else None for need in ctx.needs_input_grad[:9]), None, None)
