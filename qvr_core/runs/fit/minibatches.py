"""Which rows a step sees: a pure function of the seed and the step, so that a resumed run sees the same ones."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# Up to this many rows an epoch's permutation is held (8 MB); beyond, it is computed where it is read.
PERMUTED = 1 << 20
ROUNDS = 4


@dataclass
class RowOrder:
    """Epochs over `rows` rows in batches of `batch`; each with its own permutation, ragged end left out."""

    rows: int
    batch: int
    seed: int
    shuffle: bool = True
    _epoch: int = field(default=-1, init=False)
    _permutation: Tensor = field(default_factory=lambda: torch.empty(0), init=False)

    def __post_init__(self) -> None:
        self.batch = min(self.batch, self.rows)

    def rows_of(self, step: int) -> Tensor:
        """Row numbers of a step, int64 (batch,)."""
        per_epoch = self.rows // self.batch
        epoch, number = divmod(step, per_epoch)
        places = torch.arange(number * self.batch, (number + 1) * self.batch)
        if not self.shuffle:
            return places
        if self.rows > PERMUTED:
            return torch.from_numpy(permuted(places.numpy(), self.rows, self.seed_of(epoch)))
        if epoch != self._epoch:
            self._epoch = epoch
            self._permutation = torch.randperm(self.rows, generator=self.generator(epoch))
        return self._permutation[number * self.batch : (number + 1) * self.batch]

    def generator(self, number: int) -> torch.Generator:
        """A generator of its own for a step (or an epoch)."""
        return torch.Generator().manual_seed(self.seed_of(number))

    def seed_of(self, number: int) -> int:
        """A seed of its own for a step (or an epoch)."""
        return (self.seed * 1_000_003 + number * 7_919 + 17) % (1 << 63)


def permuted(places: NDArray[np.int64], rows: int, seed: int) -> NDArray[np.int64]:
    """Where a permutation of `rows` rows, chosen by `seed`, sends these places; nothing of its size is held.

    A Feistel network on the next power of four, walked until it ends below `rows` (Black & Rogaway 2002).
    """
    half = np.uint64(((rows - 1).bit_length() + 1) // 2)
    low = (np.uint64(1) << half) - np.uint64(1)
    keys = np.random.SeedSequence(seed).generate_state(ROUNDS, np.uint64)

    def once(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
        left, right = numbers >> half, numbers & low
        for key in keys:
            left, right = right, left ^ (_mixed(right ^ key) & low)
        return (left << half) | right

    found = once(places.astype(np.uint64))
    while (outside := found >= rows).any():
        found[outside] = once(found[outside])
    return found.astype(np.int64)


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A multiplicative hash whose high bits come down."""
    numbers = (numbers ^ (numbers >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    return numbers ^ (numbers >> np.uint64(29))
