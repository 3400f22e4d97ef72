"""The buffers of one fused scan, and the views of each of its steps."""

from __future__ import annotations

import torch
from torch import Tensor

from qvr_core.runtime.workspace import Loan

Views = list[tuple[Tensor, ...]]


class CellBuffers:
    """Buffers ([G,] L, B, ·) for H hidden numbers and a state of S; the backward's are made when first wanted.

    `steps` has for each time (projected, first layer, second layer, output, its mean half, its raw half, spread, scaled
    noise, state).
    """

    def __init__(self, shape: tuple[int, ...], hidden: int, size: int, like: Tensor) -> None:
        self.shape, self.hidden, self.size = shape, hidden, size
        self.dtype, self.device = like.dtype, like.device
        self.named: dict[tuple[str, tuple[int, ...]], Tensor] = {}
        self.projected, self.first, self.second = (self._new(hidden) for _ in range(3))
        self.out = self._new(2 * size)
        self.spread, self.scaled, self.states = (self._new(size) for _ in range(3))
        out = self.out
        forward = (self.projected, self.first, self.second, out, out[..., :size], out[..., size:])
        self.steps = _by_time(*forward, self.spread, self.scaled, self.states)
        self._back: CellGradients | None = None

    def _new(self, width: int) -> Tensor:
        return torch.empty((*self.shape, width), dtype=self.dtype, device=self.device)

    def get(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """A further buffer by name."""
        key = (name, shape)
        if key not in self.named:
            self.named[key] = torch.empty(shape, dtype=self.dtype, device=self.device)
        return self.named[key]

    @property
    def back(self) -> CellGradients:
        """The buffers of the backward."""
        if self._back is None:
            self._back = CellGradients(self.shape, self.hidden, self.size, self.first)
        return self._back

    @property
    def nbytes(self) -> int:
        width = 3 * self.hidden + 5 * self.size + (0 if self._back is None else 4 * self.hidden + 3 * self.size)
        named = sum(tensor.nbytes for tensor in self.named.values())
        return self.first.nbytes // self.hidden * width + named


class CellGradients:
    """The backward's buffers; `steps` has for each time (mean half of the output's gradient, the whole, its raw half,
    second layer's, first layer's, slope of the raw output, slope of the second layer, of the first)."""

    def __init__(self, shape: tuple[int, ...], hidden: int, size: int, like: Tensor) -> None:
        def new(width: int) -> Tensor:
            return torch.empty((*shape, width), dtype=like.dtype, device=like.device)

        self.out, self.second, self.first = new(2 * size), new(hidden), new(hidden)
        self.slope_raw, self.slope_second, self.slope_first = new(size), new(hidden), new(hidden)
        halves = (self.out[..., :size], self.out, self.out[..., size:])
        self.steps = _by_time(*halves, self.second, self.first, self.slope_raw, self.slope_second, self.slope_first)


def _by_time(*tensors: Tensor) -> Views:
    return list(zip(*(tensor.unbind(-3) for tensor in tensors), strict=True))


def lend_cell_buffers(shape: tuple[int, ...], hidden: int, size: int, like: Tensor) -> Loan[CellBuffers]:
    """Buffers for a run over `shape` ([G,] L, B)."""
    key = (CellBuffers, shape, hidden, size, like.dtype, like.device)
    return Loan(key, lambda: CellBuffers(shape, hidden, size, like))
