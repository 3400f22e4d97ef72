"""The scan of a tanh-network cell with a Normal head, as one autograd function with a backward derived by hand.

    a = tanh(x_t W_xᵀ + h_{t-1} W_hᵀ + c₁),  b = tanh(a W₂ᵀ + c₂),  (m, r) = b W₃ᵀ + c₃,
    h_t = m + s (softplus(r + k) + f) ε_t

The items' share of the first layer is computed for all times at once, gradients of weights are one product over all
times.  Several cells of one shape run side by side along a leading group axis, written [G,] below.  Sizes: L times,
B rows, V rows of a table, M width of an item, H hidden, S state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from qvr_core.runtime.families.links import FLOOR, SOFTPLUS_SHIFT
from qvr_core.runtime.loops.cell_buffers import BackwardScratch, CellBuffers, ForwardScratch, LentCell
from qvr_core.runtime.values.indices import in_transform, recording

MANY = 1024
"""Numbers from which the sigmoid's speed outweighs two more operations."""

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
    return not (in_transform() or recording())


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


@cache
def _vectorised_tanh() -> bool:
    """True where MKL's own tanh runs: elsewhere torch's takes some five times as long as its sigmoid."""
    try:
        return torch.backends.mkl.is_available() and "GenuineIntel" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


@cache
def number(value: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A number as a tensor: operations convert a Python one each time."""
    return torch.tensor(value, dtype=dtype, device=device)


def _tanh_by_sigmoid(z: Tensor) -> Tensor:
    """tanh z in place, as 2 σ(2z) − 1."""
    return torch.add(number(-1.0, z.dtype, z.device), z.mul_(2.0).sigmoid_(), alpha=2.0, out=z)


def tanh_in_place(count: int) -> Callable[[Tensor], Tensor]:
    """The fastest tanh of `count` numbers, in place."""
    return torch.tanh_ if count < MANY or _vectorised_tanh() else _tanh_by_sigmoid


def below_autograd() -> AbstractContextManager[None]:
    """Inside an autograd function nothing is recorded: its operations need not ask."""
    return torch._C._AutoDispatchBelowAutograd()  # pyright: ignore


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
        ctx.run, ctx.index = run, index
        ctx.save_for_backward(source, noise, start, *weights)
        with below_autograd():
            result, ctx.loan, ctx.inner = _forward(run, source, index, noise, start, weights, ctx.needs_input_grad[3])
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        if torch.is_grad_enabled():
            return _differentiable_backward(ctx, grad)
        with below_autograd():
            return _backward(ctx, grad)


def _forward(
    run: CellRun,
    source: Tensor,
    index: Tensor | None,
    noise: Tensor,
    start: Tensor | None,
    weights: Sequence[Tensor],
    keep_spread: bool,
) -> tuple[Tensor, LentCell, tuple[Sequence[Tensor] | None, Tensor | None]]:
    """The states, the buffers that the backward reads, and the items (or None) with the rows of the table taken."""
    groups = max(1, run.groups)
    each_noise = noise if run.groups else noise.unsqueeze(0)
    rows, size = noise.shape[-2:]
    hidden = weights[1].shape[0]
    inside = weights[0].shape[1] - size
    loan = LentCell(tuple(each_noise.shape[:3]), hidden, size, noise)
    passing = loan.forward()
    lent, scratch = loan.buffers, passing.buffers
    taken = None if index is None else index.reshape(groups, -1)
    into_first = [w[:, inside:].t() for w in weights[::6]]
    into_second, into_out = [w.t() for w in weights[2::6]], [w.t() for w in weights[4::6]]
    tanh_ = tanh_in_place(rows * hidden * groups)
    items = _project(lent, source, taken, [w[:, :inside] for w in weights[::6]], weights[1::6])
    each_first, each_second, each_out = lent.each_first, lent.each_second, scratch.each_out
    before = None if start is None else start.unbind(0) if run.groups else (start,)
    for (low, high), (_, second, slope) in zip(lent.shape.blocks, lent.blocks, strict=True):
        _set_biases(scratch, second, each_noise, (low, high), run.scale, weights)
        for t in range(low, high):
            a, b, after = lent.steps[t]
            m, r, sp, e = scratch.steps[t - low]
            if before is not None:
                for a_g, h, w in zip(each_first[t], before, into_first, strict=True):
                    a_g.addmm_(h, w)
            tanh_(a)
            for b_g, a_g, w in zip(each_second[t], each_first[t], into_second, strict=True):
                b_g.addmm_(a_g, w)
            tanh_(b)
            for o, b_g, w in zip(each_out[t - low], each_second[t], into_out, strict=True):
                o.addmm_(b_g, w)
            torch.addcmul(m, softplus_into(r, out=sp), e, out=after)
            before = lent.each_state[t]
        count = high - low
        raw, spread, scaled = (t.narrow(1, 0, count) for t in (scratch.raw, scratch.spread, scratch.scaled))
        torch.sigmoid(raw, out=slope).mul_(scaled)
        if keep_spread:
            lent.get("spread", tuple(each_noise.shape))[:, low:high].copy_(spread)
    # what the caller sees is never lent
    result = lent.states if run.emit_all else lent.steps[-1][-1]
    return (result if run.groups else result[0]).clone(), loan, (items, taken)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """Gradients of everything that `_FusedCell` takes."""
    run: CellRun = ctx.run
    loan: LentCell = ctx.loan
    passing = loan.backward()
    lent, scratch = loan.buffers, passing.buffers
    source, noise, start, *weights = ctx.saved_tensors
    items, index = ctx.inner
    inside = weights[0].shape[1] - lent.shape.size
    into_item, into_state = [w[:, :inside] for w in weights[::6]], [w[:, inside:] for w in weights[::6]]
    into_hidden, into_out = weights[2::6], weights[4::6]
    one = number(1.0, grad.dtype, grad.device)
    grad = grad if run.groups else grad.unsqueeze(0)
    emitted = [step.unbind(0) for step in grad.unbind(1)] if run.emit_all else None
    need_source, need_noise, need_start = (ctx.needs_input_grad[i] for i in (1, 3, 4))
    grad_noise = torch.empty_like(noise) if need_noise else None
    sums = _WeightSums(lent, scratch)
    each_first, each_second, each_out = lent.each_grad, scratch.each_second, scratch.each_out
    carry = grad[:, -1] if run.emit_all else grad
    for block in range(len(lent.blocks) - 1, -1, -1):
        (low, high), (first, second, _) = lent.shape.blocks[block], lent.blocks[block]
        count = high - low
        torch.addcmul(one, first, first, value=-1.0, out=scratch.slope_first.narrow(1, 0, count))
        torch.addcmul(one, second, second, value=-1.0, out=scratch.slope_second.narrow(1, 0, count))
        scratch.steps[count - 1][0].copy_(carry)
        carry = scratch.carry
        for t in range(high - 1, low - 1, -1):
            g_mean, g_raw, g_second, slope2, slope1 = scratch.steps[t - low]
            slope, g_first = lent.grad_steps[t]
            torch.mul(g_mean, slope, out=g_raw)
            for g_o, w, g_b in zip(each_out[t - low], into_out, each_second[t - low], strict=True):
                torch.mm(g_o, w, out=g_b)
            g_second.mul_(slope2)
            for g_b, w, g_a in zip(each_second[t - low], into_hidden, each_first[t], strict=True):
                torch.mm(g_b, w, out=g_a)
            g_first.mul_(slope1)
            if not t:
                break
            each_before = scratch.each_mean[t - low - 1] if t > low else scratch.each_carry
            for group, (g_a, w, g_h) in enumerate(zip(each_first[t], into_state, each_before, strict=True)):
                if emitted is None:
                    torch.mm(g_a, w, out=g_h)
                else:
                    torch.addmm(emitted[t - 1][group], g_a, w, out=g_h)
        sums.add(block)
        if grad_noise is not None:
            spread = lent.get("spread", (lent.shape.groups, *noise.shape[-3:]))[:, low:high]
            part = (grad_noise if run.groups else grad_noise.unsqueeze(0))[:, low:high]
            torch.mul(scratch.mean.narrow(1, 0, count), spread + FLOOR, out=part).mul_(run.scale)
    grad_start = None
    if need_start:
        each_start = [g @ w for g, w in zip(lent.each_grad[0], into_state, strict=True)]
        grad_start = torch.stack(each_start) if run.groups else each_start[0]
    grad_source, input_side = _grad_items(lent, source, index, items, into_item, need_source)
    grads = sums.all(input_side, None if start is None else start.unbind(0) if run.groups else (start,))
    return (None, grad_source, None, grad_noise, grad_start, *grads)


def _set_biases(
    scratch: ForwardScratch,
    second: Tensor,
    noise: Tensor,
    block: tuple[int, int],
    scale: float,
    weights: Sequence[Tensor],
) -> None:
    """Put what a block's layers start from where the products will be added: biases, and the floor of the spread."""
    low, high = block
    mean, raw, scaled = (t.narrow(1, 0, high - low) for t in (scratch.mean, scratch.raw, scratch.scaled))
    torch.mul(noise.narrow(1, low, high - low), scale, out=scaled)
    size = scaled.shape[-1]
    outer = weights[5] if len(weights) == 6 else torch.stack(tuple(weights[5::6])).view(-1, 1, 1, 2 * size)
    inner = weights[3] if len(weights) == 6 else torch.stack(tuple(weights[3::6])).view(-1, 1, 1, second.shape[-1])
    torch.add(outer[..., :size], scaled, alpha=FLOOR, out=mean)
    raw.copy_(outer[..., size:] + SOFTPLUS_SHIFT)
    second.copy_(inner)


class _WeightSums:
    """Gradients of the weights, added up block by block while the block's numbers are in the cache."""

    def __init__(self, lent: CellBuffers, scratch: BackwardScratch) -> None:
        self.lent, self.scratch = lent, scratch
        self.sums: list[list[Tensor]] = [[] for _ in range(lent.shape.groups)]

    def add(self, block: int) -> None:
        """Add a block's part: those of the second layer and of the output."""
        low, high = self.lent.shape.blocks[block]
        layers = zip(*self.lent.layers[block], *self.scratch.flat[high - low], strict=True)
        for sums, (first, second, g_second, g_out) in zip(self.sums, layers, strict=True):
            if not sums:
                sums += [torch.mm(g_second.t(), first), g_second.sum(0), torch.mm(g_out.t(), second), g_out.sum(0)]
                continue
            for weight, bias, gradient, value in ((*sums[:2], g_second, first), (*sums[2:], g_out, second)):
                weight.addmm_(gradient.t(), value)
                bias.add_(gradient.sum(0))

    def all(self, input_side: Sequence[tuple[Tensor, Tensor]], start: Sequence[Tensor] | None) -> list[Tensor]:
        """Gradients of the six weights of each group, in their order."""
        lent = self.lent
        result: list[Tensor] = []
        for group, (sums, (items, by_item)) in enumerate(zip(self.sums, input_side, strict=True)):
            inside = items.shape[-1]
            w_in = items.new_empty(lent.shape.hidden, inside + lent.shape.size)
            torch.mm(by_item.t(), items, out=w_in[:, :inside])
            into_state = torch.mm(lent.later[group], lent.earlier[group], out=w_in[:, inside:])
            if start is not None:
                into_state.addmm_(lent.each_grad[0][group].t(), start[group])
            result += [w_in, lent.flat_grads[group].sum(0), *sums]
        return result


def _project(
    lent: CellBuffers,
    source: Tensor,
    index: Tensor | None,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
) -> Sequence[Tensor] | None:
    """x W_xᵀ + c₁ into `lent.first`; gives each group's items (L · B, M) where they were needed for it.

    A table with fewer rows than there are items is projected itself, and of it rows are taken; `index` (G, L · B) tells
    which.
    """
    shape, inside = lent.shape, source.shape[-1]
    count = shape.length * shape.rows
    if index is not None and source.shape[0] <= count:
        table = lent.get("table", (source.shape[0], shape.hidden))
        for into, taken, weight, bias in zip(lent.flat_first, index, weights, biases, strict=True):
            torch.index_select(torch.addmm(bias, source, weight.t(), out=table), 0, taken, out=into)
        return None
    if index is None:
        items = source.reshape(shape.groups, count, inside).unbind(0)
    else:
        items = lent.get("items", (shape.groups, count, inside)).unbind(0)
        for into, taken in zip(items, index, strict=True):
            torch.index_select(source, 0, taken, out=into)
    for into, each, weight, bias in zip(lent.flat_first, items, weights, biases, strict=True):
        torch.addmm(bias, each, weight.t(), out=into)
    return items


def _grad_items(
    lent: CellBuffers,
    source: Tensor,
    index: Tensor | None,
    items: Sequence[Tensor] | None,
    weights: Sequence[Tensor],
    needed: bool,
) -> tuple[Tensor | None, list[tuple[Tensor, Tensor]]]:
    """The gradient of the items or table; by group what the input's weights get theirs from: (values, gradients)."""
    if items is not None:
        side = list(zip(items, lent.flat_grads, strict=True))
        if not needed:
            return None, side
        if index is None:
            each = [grad @ weight for grad, weight in zip(lent.flat_grads, weights, strict=True)]
            return (each[0] if len(each) == 1 else torch.stack(each)).view_as(source), side
        grad_source = torch.zeros_like(source)
        for grad, taken, weight in zip(lent.flat_grads, index, weights, strict=True):
            grad_source.index_add_(0, taken, grad @ weight)
        return grad_source, side
    assert index is not None
    by_row = lent.get("grad table", (lent.shape.groups, source.shape[0], lent.shape.hidden)).zero_().unbind(0)
    grad_source = torch.zeros_like(source) if needed else None
    for sums, taken, grad, weight in zip(by_row, index, lent.flat_grads, weights, strict=True):
        sums.index_add_(0, taken, grad)
        if grad_source is not None:
            grad_source.addmm_(sums, weight)
    return grad_source, [(source, sums) for sums in by_row]


def _differentiable_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """For second derivatives: the gradient of the plain operations, itself a graph."""
    source, noise, start, *weights = ctx.saved_tensors
    index = ctx.index
    inputs = (source, index, noise, start, *weights)
    needed: tuple[bool, ...] = ctx.needs_input_grad[1:]
    wanted = [tensor for tensor, need in zip(inputs, needed, strict=True) if need]
    result = plain_cell(ctx.run, source, index, noise, start, *weights)
    gradients = iter(torch.autograd.grad(result, wanted, grad, create_graph=True, allow_unused=True))
    return (None, *(next(gradients) if need else None for need in needed))
