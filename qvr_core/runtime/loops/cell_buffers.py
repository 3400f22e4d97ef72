"""The buffers of one fused scan, and the views of each of its steps.

Only what the backward reads is kept for all times; everything else lives in scratch of one block of steps, small enough
to stay in the cache.  Axes: G groups, L times (K in a block), B rows.
"""

from __future__ import annotations

import torch
from torch import Tensor

from qvr_core.runtime.values.workspace import Loan

BLOCK_NUMBERS = 2**19
"""Numbers that the scratch of a block of steps may hold: about half of a second-level cache."""

Each = tuple[Tensor, ...]
"""A tensor's part of each group."""


class CellShape:
    """Sizes of a run: G groups, L times, B rows, H hidden, a state of S; and its cut into blocks of steps."""

    def __init__(self, lead: tuple[int, ...], hidden: int, size: int, like: Tensor) -> None:
        self.groups, self.length, self.rows = lead
        self.hidden, self.size = hidden, size
        self.dtype, self.device = like.dtype, like.device
        width = (4 * hidden + 4 * size) * self.rows * self.groups
        self.most = max(1, min(self.length, BLOCK_NUMBERS // width))
        starts = range(0, self.length, self.most)
        self.blocks = [(start, min(start + self.most, self.length)) for start in starts]

    def new(self, length: int, width: int) -> Tensor:
        """An empty tensor (G, length, B, width)."""
        return torch.empty(self.groups, length, self.rows, width, dtype=self.dtype, device=self.device)


def flat(tensor: Tensor) -> Each:
    """Each group's times and rows as rows of a matrix."""
    return tensor.flatten(1, 2).unbind(0)


def by_time(*tensors: Tensor) -> list[tuple[Tensor, ...]]:
    """The slices (G, B, ·) of all of them at each time."""
    return list(zip(*(tensor.unbind(1) for tensor in tensors), strict=True))


def by_time_and_group(tensor: Tensor) -> list[Each]:
    """The slices (B, ·) of each group at each time."""
    return [step.unbind(0) for step in tensor.unbind(1)]


class CellBuffers:
    """Kept for all times: both layers, the slope of the raw output, the states, the gradient of the first layer.

    `steps` has for each time (first layer, second layer, state), `grad_steps` (slope, gradient of the first layer), the
    `each_…` one of them for each time by group; `blocks` has for each block (first layer, second layer, slope),
    `layers` its layers by group with times and rows as rows.
    """

    def __init__(self, shape: CellShape) -> None:
        new, length = shape.new, shape.length
        self.shape = shape
        self.first, self.second = new(length, shape.hidden), new(length, shape.hidden)
        self.slope, self.states = new(length, shape.size), new(length, shape.size)
        self.grad_first = new(length, shape.hidden)
        self.steps = by_time(self.first, self.second, self.states)
        self.each_first, self.each_second = by_time_and_group(self.first), by_time_and_group(self.second)
        self.each_state = by_time_and_group(self.states)
        self.grad_steps = by_time(self.slope, self.grad_first)
        self.each_grad = by_time_and_group(self.grad_first)
        self.blocks = [
            tuple(tensor.narrow(1, low, high - low) for tensor in (self.first, self.second, self.slope))
            for low, high in shape.blocks
        ]
        self.layers = [(flat(first), flat(second)) for first, second, _ in self.blocks]
        self.flat_first, self.flat_grads = flat(self.first), flat(self.grad_first)
        # what the state's weights get their gradient from: every step but the first, and the state before it
        self.later = tuple(grad.mT for grad in flat(self.grad_first.narrow(1, 1, length - 1)))
        self.earlier = flat(self.states.narrow(1, 0, length - 1))
        self.named: dict[tuple[str, tuple[int, ...]], Tensor] = {}

    def get(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """A further buffer by name."""
        key = (name, shape)
        if key not in self.named:
            self.named[key] = torch.empty(shape, dtype=self.shape.dtype, device=self.shape.device)
        return self.named[key]

    @property
    def nbytes(self) -> int:
        width = 3 * self.shape.hidden + 2 * self.shape.size
        return self.first.nbytes // self.shape.hidden * width + sum(tensor.nbytes for tensor in self.named.values())


class ForwardScratch:
    """Scratch of a block's forward: output, spread, scaled noise.

    `steps` has for each time (mean half of the output, its raw half, spread, scaled noise).
    """

    def __init__(self, shape: CellShape) -> None:
        out, size = shape.new(shape.most, 2 * shape.size), shape.size
        self.mean, self.raw = out[..., :size], out[..., size:]
        self.spread, self.scaled = shape.new(shape.most, size), shape.new(shape.most, size)
        self.steps = by_time(self.mean, self.raw, self.spread, self.scaled)
        self.each_out = by_time_and_group(out)
        self.nbytes = out.nbytes + self.spread.nbytes + self.scaled.nbytes


class BackwardScratch:
    """Scratch of a block's backward: gradients of the output and of the second layer, slopes of both layers.

    `steps` has for each time (mean half of the output's gradient, its raw half, second layer's, slope of the second
    layer, of the first); `flat` for a length of a block the gradients of the second layer and the output by group, with
    times and rows as rows.
    """

    def __init__(self, shape: CellShape) -> None:
        size, hidden, most = shape.size, shape.hidden, shape.most
        self.out = shape.new(most, 2 * size)
        self.mean, raw = self.out[..., :size], self.out[..., size:]
        self.second, self.slope_first, self.slope_second = (shape.new(most, hidden) for _ in range(3))
        self.steps = by_time(self.mean, raw, self.second, self.slope_second, self.slope_first)
        self.each_mean, self.each_out = by_time_and_group(self.mean), by_time_and_group(self.out)
        self.each_second = by_time_and_group(self.second)
        self.carry = torch.empty_like(self.steps[0][0])
        self.each_carry = self.carry.unbind(0)
        self.flat = {
            count: (flat(self.second.narrow(1, 0, count)), flat(self.out.narrow(1, 0, count)))
            for count in {high - low for low, high in shape.blocks}
        }
        self.nbytes = self.out.nbytes + 3 * self.second.nbytes


class LentCell:
    """A run's buffers on loan; scratch is lent only while a pass runs, so that all runs share what is in the cache."""

    def __init__(self, lead: tuple[int, ...], hidden: int, size: int, like: Tensor) -> None:
        self.key = (lead, hidden, size, like.dtype, like.device)
        self.kept = Loan(("cell", self.key), lambda: CellBuffers(CellShape(lead, hidden, size, like)))
        self.buffers = self.kept.buffers

    def forward(self) -> Loan[ForwardScratch]:
        """Scratch for a forward pass."""
        return Loan(("cell forward", self.key), lambda: ForwardScratch(self.buffers.shape))

    def backward(self) -> Loan[BackwardScratch]:
        """Scratch for a backward pass."""
        return Loan(("cell backward", self.key), lambda: BackwardScratch(self.buffers.shape))
