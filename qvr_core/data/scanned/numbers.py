"""The numbers of a stretch of rows, as `typed/filling.py` reads them, by columns.

What is not plainly right by columns is read cell by cell there: it says what is wrong, or what was meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan, prod
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from qvr_core.data.file_sources import Lists, plain
from qvr_core.data.needs import Axis, Need
from qvr_core.data.problems import DataProblem
from qvr_core.data.scanned.plan import Plan
from qvr_core.data.typed.cell_values import Wrong, reader
from qvr_core.data.typed.filling import ROUNDING
from qvr_core.data.typed.labels import Elements
from qvr_core.data.typed.layout import Layout
from qvr_core.data.typed.sequence_ends import fill_sequences
from qvr_core.data.typed.sets import Sets
from qvr_core.data.typed.sources import Table


class _SetsOfRows(Sets):
    """The sets of a table, of whose rows these are a stretch."""

    def __init__(self, layout: Layout, whole: Sets, rows: Elements) -> None:
        super().__init__(layout)
        self._whole, self._rows = whole, rows

    def of(self, axis: Axis, need: Need) -> Elements:
        return self._rows if axis.name == self._rows.name else self._whole.of(axis, need)


@dataclass(frozen=True)
class Numbers:
    """Reads the names of a plan: `sets` are its sets with all their elements, and `missing` the names of which some
    cell of the table is missing."""

    plan: Plan
    sets: Sets
    missing: frozenset[str] = frozenset()

    def of(self, need: Need, frame: pl.DataFrame, path: str, first: int) -> NDArray[Any]:
        """The numbers of a name, (rows, …): int64 of elements and counts, float64 of others and where any is missing
        (NaN).  `first` rows of the file `path` stand before these.  Raises `DataProblem`."""
        found = self._by_columns(need, frame)
        if found is None:
            found = self._by_cells(need, frame, path, first)
        whole = need.kind in ("finite", "count") and need.name not in self.missing
        return found if whole and np.isnan(found).any() else found.astype(np.int64 if whole else np.float64)

    # ---------------------------------------------------------------- by columns

    def _by_columns(self, need: Need, frame: pl.DataFrame) -> NDArray[Any] | None:
        """None where something is wrong, or may mean something else."""
        columns = self.plan.layout.columns(need)
        if need.counted:
            return None
        element = prod(need.element)
        if len(columns.names) == 1 and columns.spread == "":
            found = self._column(need, frame[columns.names[0]], element if need.element else 0)
            if found is not None and need.element:
                found = found.reshape(len(frame), *need.element)
        else:
            parts = [self._column(need, frame[name], 0) for name in columns.names]
            if any(part is None for part in parts):
                return None
            order = self._order(need, columns.names) if columns.spread == "axis" else range(len(parts))
            if order is None or (columns.spread == "element" and len(need.element) != 1):
                return None
            found = np.empty((len(frame), len(parts)), np.result_type(*parts))  # pyright: ignore[reportArgumentType, reportCallIssue]
            for place, part in zip(order, parts, strict=True):
                found[:, place] = part
        if found is not None and need.constraint == "Simplex":
            sums = found.sum(axis=-1)
            if (np.abs(sums - 1.0) > 0.5 * ROUNDING).any():
                return None
        return found

    def _order(self, need: Need, names: Sequence[str]) -> list[int] | None:
        """Which element of the last axis each column stands for."""
        assert need.axes
        axis = self.sets.of(need.axes[-1], need)
        if axis.size != len(names):
            return None
        if not (axis.source and axis.labels is not None):
            return list(range(len(names)))
        places = [axis.place(name) for name in names]
        found = [at if place is None else place for at, place in enumerate(places)]
        return found if sorted(found) == list(range(len(found))) else None

    def _column(self, need: Need, series: pl.Series, width: int) -> NDArray[Any] | None:
        """The numbers of a column; of one that holds lists of `width` entries these in a row."""
        if isinstance(series.dtype, pl.List | pl.Array):
            lengths = series.list.len() if isinstance(series.dtype, pl.List) else None
            if not width or series.null_count() or (lengths is not None and (lengths != width).any()):
                return None
            if isinstance(series.dtype, pl.Array) and series.dtype.shape != (width,):
                return None
            series = series.explode()
            if isinstance(series.dtype, pl.List | pl.Array):
                return None
        elif width:
            return None
        if need.kind in ("finite", "count") or (need.values is not None and need.values.name):
            return self._elements(need, series)
        return _reals(need, series)

    def _elements(self, need: Need, series: pl.Series) -> NDArray[Any] | None:
        values = self.sets.of(need.values, need) if need.values is not None else None
        if values is not None and values.labels is None:
            values = replace(values, first=self.plan.sources.first)
        if series.dtype.is_temporal() or isinstance(series.dtype, pl.Categorical | pl.Enum):
            series = series.cast(pl.String)
        if series.dtype.is_float():
            series = series.fill_nan(None)
        if series.null_count() and not need.missing:
            return None
        read = reader(need, values)
        distinct = series.drop_nulls().unique()
        try:
            numbers = [read(cell) for cell in plain(distinct)]
        except Wrong:
            return None
        if not numbers:
            return np.full(len(series), nan)
        kind = pl.Int64 if all(isinstance(number, int) for number in numbers) else pl.Float64
        found = series.replace_strict(distinct, pl.Series(numbers, dtype=kind), default=None, return_dtype=kind)
        if found.null_count() != series.null_count():
            return None
        return found.to_numpy() if not found.null_count() else found.cast(pl.Float64).fill_null(nan).to_numpy()

    # ---------------------------------------------------------------- by cells

    def _by_cells(self, need: Need, frame: pl.DataFrame, path: str, first: int) -> NDArray[Any]:
        rows = Elements(self.plan.rows, len(frame), None, self.plan.sources.first, path)
        needs = [_of_rows(one, len(frame)) for one in self.plan.needs]
        table = Table(path, Lists({name: frame[name] for name in frame.columns}), len(frame), whole=False)
        layout = Layout([*needs, *self.plan.others], replace(self.plan.sources, main=table))
        own = next(one for one in needs if one.name == need.name)
        try:
            filled = fill_sequences(own, layout, _SetsOfRows(layout, self.sets, rows))
        except DataProblem as problem:
            raise problem.below(first) from problem
        flat = [nan if number is None else number for number in filled.flat] if filled.missing else filled.flat
        return np.array(flat).reshape(filled.shape)


def _of_rows(need: Need, count: int) -> Need:
    assert need.axes
    return replace(need, axes=(replace(need.axes[0], size=count), *need.axes[1:]))


def _reals(need: Need, series: pl.Series) -> NDArray[np.float64] | None:
    """Real numbers that are what a name takes."""
    if not (series.dtype.is_numeric() or series.dtype == pl.Boolean) or series.dtype.is_decimal():
        return None
    if series.null_count():
        if not need.missing:
            return None
        series = series.cast(pl.Float64).fill_null(nan)
    found = series.cast(pl.Float64).to_numpy()
    gone = np.isnan(found)
    if not need.missing and gone.any():
        return None
    there = found[~gone] if gone.any() else found
    if not len(there):
        return found
    low, high = there.min(), there.max()
    finite = np.isfinite(low) and (np.isfinite(high) or need.endless)
    within = (need.low is None or low >= need.low) and (need.high is None or high <= need.high)
    if not finite or not within or any((there == end).any() for end in need.excluded):
        return None
    return found
