"""Buffers that are lent from call to call.

A training step allocates the same megabytes again and again; the allocator gives them back to the system, and touching
fresh pages costs more than the arithmetic (measured: two thirds of a scan's time).
"""

from __future__ import annotations

import math
from collections import defaultdict

import torch
from torch import Tensor

MOST_KEPT = 2**28
"""Bytes that the pool keeps at most."""

_Key = tuple[torch.dtype, torch.device, int]
_free: defaultdict[_Key, list[Tensor]] = defaultdict(list)
_kept = 0


class Workspace:
    """Flat buffers on loan; they return when the workspace is dropped, so nothing taken here may outlive it."""

    def __init__(self, like: Tensor) -> None:
        self.dtype, self.device = like.dtype, like.device
        self.lent: list[tuple[_Key, Tensor]] = []

    def take(self, shape: tuple[int, ...]) -> Tensor:
        """An uninitialised tensor of this shape."""
        global _kept  # noqa: PLW0603 - one pool for the process
        size = math.prod(shape)
        key = (self.dtype, self.device, size)
        try:
            flat = _free[key].pop()
            _kept -= flat.nbytes
        except IndexError:
            flat = torch.empty(size, dtype=self.dtype, device=self.device)
        self.lent.append((key, flat))
        return flat.view(shape)

    def __del__(self) -> None:
        global _kept  # noqa: PLW0603
        for key, flat in self.lent:
            if _kept + flat.nbytes <= MOST_KEPT:
                _kept += flat.nbytes
                _free[key].append(flat)
