"""Rows of a table by their numbers, of which some blocks are held."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.arrays.typed_engine import from_numpy
from qvr_core.data.scanned.files import Part
from qvr_core.data.scanned.numbers import Numbers
from qvr_core.data.typed.sources import Sources

BLOCK = 2**21
"""Bytes of the numbers of a block."""
MOST_ROWS, FEWEST_ROWS = 2**17, 2**6
"""Of a block."""
POOL = 32
"""Blocks whose rows are shuffled together."""
HELD = 2 * POOL + 2
"""Blocks that are held: those of two pools, between which a step may lie."""
LOOKED_INTO = 8
"""Blocks from which rows are taken that shall show what the table is like."""


@dataclass
class BlockRows:
    """The rows of a table that is read by blocks.  What is held does not grow with the table."""

    numbers: Numbers
    _held: OrderedDict[int, NDArray[Any]] = field(default_factory=OrderedDict[int, "NDArray[Any]"], init=False)
    _layout: np.dtype[Any] | None = field(default=None, init=False)

    @cached_property
    def _blocks(self) -> list[tuple[Part, int, int]]:
        plan = self.numbers.plan
        rows = min(max(BLOCK // (8 * plan.numbers), FEWEST_ROWS), MOST_ROWS)
        return list(plan.table.stretches(rows))

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The number of each block's first row, and of all rows: (blocks + 1,)."""
        return np.concatenate([[0], np.cumsum([count for _, _, count in self._blocks])])

    @property
    def rows(self) -> int:
        """Of all blocks together."""
        return int(self.starts[-1])

    @property
    def sources(self) -> Sources:
        """All sources of the run; of this table the labels."""
        return self.numbers.sets.layout.sources

    @property
    def bytes(self) -> int:
        """Those of the numbers of all rows."""
        return 8 * self.numbers.plan.numbers * self.rows

    def take(self, rows: NDArray[np.int64]) -> Mapping[str, Tensor]:
        """The numbers of each name in rows of these numbers, (rows, …).  Raises `DataProblem` where the table has
        changed since it was looked through."""
        blocks = np.searchsorted(self.starts, rows, side="right") - 1
        found: NDArray[Any] | None = None
        for block in np.unique(blocks).tolist():
            values = self._block(block)
            if found is None:
                found = np.empty(len(rows), values.dtype)
            here = blocks == block
            found[here] = values[rows[here] - self.starts[block]]
        assert found is not None
        return {name: self._tensor(found[name]) for name in found.dtype.names or ()}

    def spread(self, count: int) -> Tensor:
        """Numbers of `count` rows from all of the table, out of a few blocks."""
        spaced = np.linspace(0, len(self._blocks) - 1, min(LOOKED_INTO, len(self._blocks))).round().astype(np.int64)
        chosen = list(dict.fromkeys(spaced.tolist()))
        found: list[int] = []
        for at, block in enumerate(chosen):
            rows = int(self.starts[block + 1] - self.starts[block])
            here = (count * (at + 1)) // len(chosen) - (count * at) // len(chosen)
            found += [int(self.starts[block] + place * rows // max(here, 1)) for place in range(here)]
        return arrays.tensor(found, dtype=arrays.int64)

    def whole(self) -> Mapping[str, Tensor]:
        """The numbers of all rows."""
        found: NDArray[Any] = np.empty(0)
        columns: dict[str, NDArray[Any]] = {}
        for block, start in enumerate(self.starts[:-1].tolist()):
            found = self._read(block)
            for name in found.dtype.names or ():
                if name not in columns:
                    columns[name] = np.empty((self.rows, *found[name].shape[1:]), found[name].dtype)
                columns[name][start : start + len(found)] = found[name]
        return {name: self._tensor(values) for name, values in columns.items()}

    def _tensor(self, values: NDArray[Any]) -> Tensor:
        tensor = from_numpy(np.ascontiguousarray(values))
        return tensor.to(arrays.get_default_dtype()) if tensor.is_floating_point() else tensor

    def _block(self, number: int) -> NDArray[Any]:
        if number in self._held:
            self._held.move_to_end(number)
            return self._held[number]
        while len(self._held) >= HELD:
            self._held.popitem(last=False)
        found = self._held[number] = self._read(number)
        return found

    def _read(self, number: int) -> NDArray[Any]:
        """The rows of a block, a record each."""
        plan = self.numbers.plan
        part, start, count = self._blocks[number]
        frame = part.read(start, count, plan.columns)
        values = {need.name: self.numbers.of(need, frame, part.path, start) for need in plan.needs}
        layout = np.dtype([(name, array.dtype, array.shape[1:]) for name, array in values.items()])
        self._layout = self._layout or layout
        found = np.empty(len(frame), self._layout)
        for name, array in values.items():
            found[name] = array
        return found
