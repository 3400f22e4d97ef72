"""Which rows a step sees: a pure function of the seed and the step, so that a resumed run sees the same ones."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

# Above this many rows a permutation costs more memory than it is worth: rows are drawn with replacement.
PERMUTED = 1 << 22


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
        if self.shuffle and self.rows > PERMUTED:
            return torch.randint(self.rows, (self.batch,), generator=self.generator(step))
        per_epoch = self.rows // self.batch
        epoch, number = divmod(step, per_epoch)
        if not self.shuffle:
            return torch.arange(number * self.batch, (number + 1) * self.batch)
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
