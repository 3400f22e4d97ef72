"""Which rows and which noise a step sees: functions of the seed and the step, so that a resumed run sees the same."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.runs.prepare.parts_of_rows import Parts
from qvr_core.runs.prepare.prepare import Rows
from qvr_core.runs.record.config import RunConfig

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
    _permutation: Tensor = field(default_factory=lambda: arrays.empty(0), init=False)

    def __post_init__(self) -> None:
        self.batch = min(self.batch, self.rows)

    def rows_of(self, step: int) -> Tensor:
        """Row numbers of a step, int64 (batch,)."""
        per_epoch = self.rows // self.batch
        epoch, number = divmod(step, per_epoch)
        places = arrays.arange(number * self.batch, (number + 1) * self.batch)
        if not self.shuffle:
            return places
        if self.rows > PERMUTED:
            return arrays.from_numpy(permuted(places.numpy(), self.rows, self.seed_of(epoch)))
        if epoch != self._epoch:
            self._epoch = epoch
            self._permutation = arrays.randperm(self.rows, generator=self.generator(epoch))
        return self._permutation[number * self.batch : (number + 1) * self.batch]

    def generator(self, number: int) -> Generator:
        """A generator of its own for a step (or an epoch)."""
        return Generator().manual_seed(self.seed_of(number))

    def seed_of(self, number: int) -> int:
        """A seed of its own for a step (or an epoch)."""
        return (self.seed * 1_000_003 + number * 7_919 + 17) % (1 << 63)


@dataclass
class BlockOrder(RowOrder):
    """Epochs over a table that is read by blocks: `starts` are the numbers of each block's first row and of all rows.

    The blocks of an epoch come in an order of its own, and the rows of `pool` blocks are shuffled together, so that
    each block is read once an epoch; a row that does not stand near another may be in a step with it.
    """

    starts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    pool: int = 1
    _blocks: tuple[int, NDArray[np.int64], NDArray[np.int64]] | None = field(default=None, init=False)
    _pools: dict[tuple[int, int], NDArray[np.int64]] = field(
        default_factory=dict[tuple[int, int], "NDArray[np.int64]"], init=False
    )

    def rows_of(self, step: int) -> Tensor:
        """Row numbers of a step, int64 (batch,)."""
        if not self.shuffle:
            return super().rows_of(step)
        epoch, number = divmod(step, self.rows // self.batch)
        blocks, ends = self._order(epoch)
        first, last = number * self.batch, (number + 1) * self.batch
        pools = range(int(np.searchsorted(ends, first, "right")), int(np.searchsorted(ends, last - 1, "right")) + 1)
        found: list[NDArray[np.int64]] = []
        for at in pools:
            start = int(ends[at - 1]) if at else 0
            rows = self._pool(epoch, at, blocks)
            found.append(rows[max(first - start, 0) : last - start])
        self._pools = {key: rows for key, rows in self._pools.items() if key[0] == epoch and key[1] in pools}
        return arrays.from_numpy(np.concatenate(found))

    def _order(self, epoch: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The blocks of an epoch in their order, and how many rows the pools have up to each."""
        if self._blocks is None or self._blocks[0] != epoch:
            blocks = np.random.default_rng(self.seed_of(epoch)).permutation(len(self.starts) - 1)
            sizes = np.diff(self.starts)[blocks]
            ends = np.cumsum(np.add.reduceat(sizes, np.arange(0, len(sizes), self.pool)))
            self._blocks = (epoch, blocks, ends)
        return self._blocks[1], self._blocks[2]

    def _pool(self, epoch: int, at: int, blocks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of a pool in their order."""
        if (epoch, at) not in self._pools:
            mine = blocks[at * self.pool : (at + 1) * self.pool]
            bounds = [(int(self.starts[block]), int(self.starts[block + 1])) for block in mine.tolist()]
            rows = np.concatenate([np.arange(start, end, dtype=np.int64) for start, end in bounds])
            np.random.default_rng((self.seed_of(epoch), at)).shuffle(rows)
            self._pools[epoch, at] = rows
        return self._pools[epoch, at]


def row_order(train: Rows, config: RunConfig) -> RowOrder:
    """The order in which the steps of a fit see its rows."""
    batch, seed, shuffle = config.batch_rows, config.seed, config.shuffle
    if not isinstance(train, Parts) or train.blocks is None:
        return RowOrder(train.rows, batch, seed, shuffle)
    from qvr_core.data.scanned.rows import POOL

    return BlockOrder(train.rows, batch, seed, shuffle, train.blocks.starts, POOL)


NOISE_AT_ONCE, STEPS_AT_ONCE = 1 << 16, 64
"""Numbers, and steps, whose noise is drawn together."""


@dataclass
class StepNoise:
    """Standard normal numbers of each step of a fit, `after` a step where those of the fit itself end; as many of them
    each time."""

    seed: int
    after: int | None = None
    _block: int = field(default=-1, init=False)
    _drawn: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)), init=False)

    def of(self, step: int, count: int) -> NDArray[np.float64]:
        """Those of a step, (count,)."""
        together = max(1, min(STEPS_AT_ONCE, NOISE_AT_ONCE // max(count, 1)))
        block, row = divmod(step, together)
        if block != self._block:
            self._block = block
            seeds = (self.seed, block) if self.after is None else (self.seed, block, self.after)
            self._drawn = np.random.default_rng(seeds).standard_normal((together, count))
        return self._drawn[row]


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
