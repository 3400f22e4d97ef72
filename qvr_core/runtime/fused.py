"""The scan of a tanh-network cell with a Normal head, as one autograd function with a backward derived by hand.

    a = tanh(x_t W_xᵀ + h_{t-1} W_hᵀ + c₁),  b = tanh(a W₂ᵀ + c₂),  (m, r) = b W₃ᵀ + c₃,
    h_t = m + s (softplus(r + k) + f) ε_t

The items' share of the first layer is computed for all times at once, gradients of weights are one product over all
times.  Several cells of one shape run side by side along a leading group axis, written [G,] below.  Sizes: L times,
B rows, V rows of a table, M width of an item, H hidden, S state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from qvr_core.runtime.cell_buffers import CellBuffers, lend_cell_buffers
from qvr_core.runtime.families.heads import FLOOR, SOFTPLUS_SHIFT
from qvr_core.runtime.indices import recording

MANY = 1024
"""Numbers in one step's layer from which the sigmoid's speed outweighs one more operation."""

softplus_into: Callable[..., Tensor] = torch._C._nn.softplus  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]


@dataclass(frozen=True, slots=True)
class CellRun:
    """A run apart from its tensors: the scale of the noise, all states or the last, and how many groups (0: none)."""

    scale: float
    emit_all: bool
    groups: int


def run_cell(
    run: CellRun, source: Tensor, index: Tensor | None, noise: Tensor, start: Tensor | None, *weights: Tensor
) -> Tensor:
    """States ([G,] [L,] B, S) of the scan.

    `source` holds the items ([G,] L, B, M), or is a table (V, M) of which `index` ([G,] L, B) takes rows; `noise`
    ([G,] L, B, S); `start` ([G,] B, S) or None for zeros.  `weights` are for each group W (H, M + S), c₁ (H,),
    W₂ (H, H), c₂ (H,), W₃ (2S, H), c₃ (2S,).
    """
    if can_fuse():
        return _FusedCell.apply(run, source, index, noise, start, *weights)  # pyright: ignore[reportReturnType]
    return plain_cell(run, source, index, noise, start, *weights)


def can_fuse() -> bool:
    """False inside torch.func transforms and while compiling, where plain operations are wanted."""
    functorch_active = torch._C._are_functorch_transforms_active()  # pyright: ignore[reportPrivateUsage]
    return not (functorch_active or recording())


def plain_cell(
    run: CellRun, source: Tensor, index: Tensor | None, noise: Tensor, start: Tensor | None, *weights: Tensor
) -> Tensor:
    """The same in plain operations: what transforms see, and what the fused path is tested against."""
    w_in, b_in, w_hidden, b_hidden, w_out, b_out = _side_by_side(run, weights)
    items = source if index is None else F.embedding(index, source)
    time = -3
    state = torch.zeros_like(noise.select(time, 0)) if start is None else start
    states: list[Tensor] = []
    for item, fresh in zip(items.unbind(time), noise.unbind(time), strict=True):
        first = torch.tanh(torch.cat([item, state], -1) @ w_in.mT + b_in.unsqueeze(-2))
        second = torch.tanh(first @ w_hidden.mT + b_hidden.unsqueeze(-2))
        mean, raw = (second @ w_out.mT + b_out.unsqueeze(-2)).chunk(2, dim=-1)
        state = mean + (F.softplus(raw + SOFTPLUS_SHIFT) + FLOOR) * run.scale * fresh
        states.append(state)
    return torch.stack(states, dim=time) if run.emit_all else state


def _side_by_side(run: CellRun, weights: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The six weights, those of all groups stacked."""
    if not run.groups:
        return tuple(weights)
    return tuple(torch.stack(tuple(weights[kind::6])) for kind in range(6))


_minus_one: dict[tuple[torch.dtype, torch.device], Tensor] = {}


def tanh_by_sigmoid(twice_z: Tensor) -> Tensor:
    """tanh z in place of 2z, as 2 σ(2z) − 1: torch's sigmoid is some five times faster than its tanh."""
    key = (twice_z.dtype, twice_z.device)
    if key not in _minus_one:
        _minus_one[key] = torch.tensor(-1.0, dtype=twice_z.dtype, device=twice_z.device)
    return torch.add(_minus_one[key], twice_z.sigmoid_(), alpha=2.0, out=twice_z)


class _FusedCell(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        run: CellRun,
        source: Tensor,
        index: Tensor | None,
        noise: Tensor,
        start: Tensor | None,
        *weights: Tensor,
    ) -> Tensor:
        w_in, b_in, w_hidden, b_hidden, w_out, b_out = _side_by_side(run, weights)
        rows, size = noise.shape[-2:]
        hidden, inside = w_hidden.shape[-1], w_in.shape[-1] - size
        loan = lend_cell_buffers(tuple(noise.shape[:-1]), hidden, size, noise)
        lent = loan.buffers
        items = _project(lent, source, index, w_in[..., :inside], b_in)
        torch.mul(noise, run.scale, out=lent.scaled)
        affine = torch.baddbmm if run.groups else torch.addmm
        inner_bias, outer_bias = b_hidden.unsqueeze(-2), b_out.unsqueeze(-2).clone()
        outer_bias[..., size:] += SOFTPLUS_SHIFT
        by_sigmoid = rows * hidden * max(1, run.groups) >= MANY
        twice = 2.0 if by_sigmoid else 1.0
        tanh_ = tanh_by_sigmoid if by_sigmoid else torch.tanh_
        into_first, into_second, into_out = w_in[..., inside:].mT, w_hidden.mT, w_out.mT
        before = start
        for p, a, b, o, mean, raw, sp, e, after in lent.steps:
            if before is None:
                torch.mul(p, twice, out=a)
            else:
                affine(p, before, into_first, beta=twice, alpha=twice, out=a)
            tanh_(a)
            tanh_(affine(inner_bias, a, into_second, beta=twice, alpha=twice, out=b))
            affine(outer_bias, b, into_out, out=o)
            softplus_into(raw, out=sp).add_(FLOOR)
            torch.addcmul(mean, sp, e, out=after)
            before = after
        ctx.run, ctx.loan, ctx.inner = run, loan, (w_in, w_hidden, w_out, items)
        ctx.save_for_backward(source, index, noise, start, *weights)
        # what the caller sees is never lent
        return (lent.states if run.emit_all else lent.steps[-1][-1]).clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        if torch.is_grad_enabled():
            return _differentiable_backward(ctx, grad)
        run: CellRun = ctx.run
        lent: CellBuffers = ctx.loan.buffers
        back = lent.back
        source, index, _, start, *_ = ctx.saved_tensors
        w_in, w_hidden, w_out, items = ctx.inner
        inside = w_in.shape[-1] - lent.size
        into_state = w_in[..., inside:]
        multiply, affine = (torch.bmm, torch.baddbmm) if run.groups else (torch.mm, torch.addmm)
        torch.sigmoid(lent.out[..., lent.size :], out=back.slope_raw).mul_(lent.scaled)
        one = lent.first.new_ones(())
        torch.addcmul(one, lent.first, lent.first, value=-1.0, out=back.slope_first)
        torch.addcmul(one, lent.second, lent.second, value=-1.0, out=back.slope_second)
        emitted = grad.unbind(-3) if run.emit_all else None
        back.steps[-1][0].copy_(grad if emitted is None else emitted[-1])
        for t in range(len(back.steps) - 1, -1, -1):
            g_mean, g_out, g_raw, g_second, g_first, slope, slope2, slope1 = back.steps[t]
            torch.mul(g_mean, slope, out=g_raw)
            multiply(g_out, w_out, out=g_second).mul_(slope2)
            multiply(g_second, w_hidden, out=g_first).mul_(slope1)
            if t and emitted is None:
                multiply(g_first, into_state, out=back.steps[t - 1][0])
            elif t and emitted is not None:
                affine(emitted[t - 1], g_first, into_state, out=back.steps[t - 1][0])
        need_source, need_noise, need_start = (ctx.needs_input_grad[i] for i in (1, 3, 4))
        grad_start = multiply(back.steps[0][4], into_state) if need_start else None
        grad_source, input_side = _grad_items(lent, source, index, items, w_in[..., :inside], need_source)
        grads = _grad_weights(run, input_side, start, lent)
        grad_noise = (back.out[..., : lent.size] * lent.spread).mul_(run.scale) if need_noise else None
        return (None, grad_source, None, grad_noise, grad_start, *grads)


def _project(lent: CellBuffers, source: Tensor, index: Tensor | None, weight: Tensor, bias: Tensor) -> Tensor | None:
    """x W_xᵀ + c₁ into `lent.projected`; gives the items ([G,] L · B, M) where they were needed for it.

    A table with fewer rows than there are items is projected itself, and its projected rows are taken.
    """
    *group, length, rows = lent.shape
    count, hidden = length * rows, lent.hidden
    affine = torch.baddbmm if group else torch.addmm
    bias = bias.unsqueeze(-2)
    if index is None or source.shape[0] > count:
        if index is None:
            items = source.reshape(*group, count, source.shape[-1])
        else:
            items = lent.get("items", (*group, count, source.shape[-1]))
            torch.index_select(source, 0, index.reshape(-1), out=items.view(-1, source.shape[-1]))
        affine(bias, items, weight.mT, out=lent.projected.view(*group, count, hidden))
        return items
    table = source.expand(*group, *source.shape) if group else source
    whole = affine(bias, table, weight.mT, out=lent.get("table", (*group, source.shape[0], hidden)))
    taken = _rows_of_groups(index, source.shape[0])
    torch.index_select(whole.view(-1, hidden), 0, taken, out=lent.projected.view(-1, hidden))
    return None


def _rows_of_groups(index: Tensor, size: int) -> Tensor:
    """Flat row numbers where each group has a table of its own, one below the other."""
    if index.dim() == 2:
        return index.reshape(-1)
    offset = torch.arange(0, index.shape[0] * size, size, device=index.device)
    return (index + offset[:, None, None]).view(-1)


def _grad_items(
    lent: CellBuffers, source: Tensor, index: Tensor | None, items: Tensor | None, weight: Tensor, needed: bool
) -> tuple[Tensor | None, tuple[Tensor, Tensor]]:
    """The gradient of the items or table, and what the input's weights get theirs from: (values, gradients)."""
    flat = lent.back.first.flatten(-3, -2)
    if items is not None:
        if not needed:
            return None, (items, flat)
        if index is None:
            return (flat @ weight).view_as(source), (items, flat)
        multiply = torch.bmm if flat.dim() == 3 else torch.mm
        each = multiply(flat, weight, out=lent.get("grad items", tuple(items.shape)))
        grad_source = torch.zeros_like(source)
        return grad_source.index_add_(0, index.reshape(-1), each.view(-1, source.shape[-1])), (items, flat)
    assert index is not None
    groups = lent.shape[:-2]
    by_row = lent.get("grad table", (*groups, source.shape[0], lent.hidden)).zero_()
    taken = _rows_of_groups(index, source.shape[0])
    by_row.view(-1, lent.hidden).index_add_(0, taken, flat.reshape(-1, lent.hidden))
    grad_source = None
    if needed:
        grad_source = by_row @ weight
        grad_source = grad_source.sum(0) if groups else grad_source
    return grad_source, (source.expand(*groups, *source.shape) if groups else source, by_row)


def _grad_weights(
    run: CellRun, input_side: tuple[Tensor, Tensor], start: Tensor | None, lent: CellBuffers
) -> list[Tensor]:
    """Gradients of the six weights of each group, in their order."""
    result: list[Tensor] = []
    items, by_item = input_side
    inside, back = items.shape[-1], lent.back
    for g in range(run.groups) if run.groups else (...,):
        grad_in = lent.first.new_empty(lent.hidden, inside + lent.size)
        torch.mm(by_item[g].mT, items[g], out=grad_in[:, :inside])
        g_first, states = back.first[g], lent.states[g]
        into_state = grad_in[:, inside:]
        torch.mm(g_first[1:].flatten(0, 1).mT, states[:-1].flatten(0, 1), out=into_state)
        if start is not None:
            into_state.addmm_(g_first[0].mT, start[g])
        g_first, g_second, g_out = (t[g].flatten(0, 1) for t in (back.first, back.second, back.out))
        result += [grad_in, g_first.sum(0)]
        result += [g_second.mT @ lent.first[g].flatten(0, 1), g_second.sum(0)]
        result += [g_out.mT @ lent.second[g].flatten(0, 1), g_out.sum(0)]
    return result


def _differentiable_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """For second derivatives: the gradient of the plain operations, itself a graph."""
    inputs: tuple[Any, ...] = ctx.saved_tensors
    source, index, noise, start, *weights = inputs
    needed: tuple[bool, ...] = ctx.needs_input_grad[1:]
    wanted = [tensor for tensor, need in zip(inputs, needed, strict=True) if need]
    result = plain_cell(ctx.run, source, index, noise, start, *weights)
    gradients = iter(torch.autograd.grad(result, wanted, grad, create_graph=True, allow_unused=True))
    return (None, *(next(gradients) if need else None for need in needed))
