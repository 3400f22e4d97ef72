"""Files that were read, tables and archives, as typed sources.  Polars is loaded only where a column is one of its."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from qvr_core.data.npz_archives import Arrays as Members
from qvr_core.data.tables.columns import Columns
from qvr_core.data.typed.sources import Array, Arrays, Source, Table


class Lists(Mapping[str, Sequence[Any]]):
    """Columns as Python lists, made when asked for."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = columns
        self._made: dict[str, Sequence[Any]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> Sequence[Any]:
        if name not in self._made:
            self._made[name] = plain(self._columns[name])
        return self._made[name]


def plain(column: Any) -> list[Any]:
    """A column as plain values: dates as text, a missing entry as None."""
    if isinstance(column, list):
        return cast(list[Any], column)
    if isinstance(column, np.ndarray):
        return column.tolist()
    import polars as pl

    if isinstance(column, pl.Series):
        labels = isinstance(column.dtype, pl.Categorical | pl.Enum)
        return (column.cast(pl.String) if labels or column.dtype.is_temporal() else column).to_list()
    if hasattr(column, "isna"):  # a column of pandas
        kept = zip(column.tolist(), column.isna(), strict=True)
        return [None if gone else str(cell) if hasattr(cell, "isoformat") else cell for cell, gone in kept]
    return np.asarray(column).tolist()


def of_columns(columns: Columns, first: int) -> Source:
    """A file that was read."""
    if columns.table:
        return Table(columns.path, Lists(columns.columns), columns.rows or 0)
    if isinstance(columns.columns, Members):
        return Arrays(columns.path, _Unpacked(columns.columns), first)
    held = {name: np.asarray(value) for name, value in columns.columns.items()}
    return Arrays(columns.path, {name: Array(value.shape, in_a_row(value)) for name, value in held.items()}, first)


class _Unpacked(Mapping[str, Array]):
    """The arrays of an archive: their shapes when asked for, their numbers when these are looked at."""

    def __init__(self, members: Members) -> None:
        self._members = members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __getitem__(self, name: str) -> Array:
        return Array(self._members.shape(name), _Numbers(self._members, name))


class _Numbers(Sequence[Any]):
    """The numbers of an archive's array, the last index fastest, unpacked when the first is looked at."""

    def __init__(self, members: Members, name: str) -> None:
        self._members, self._name = members, name
        self._made: Sequence[Any] | None = None

    def _all(self) -> Sequence[Any]:
        if self._made is None:
            self._made = in_a_row(self._members[self._name])
        return self._made

    def __len__(self) -> int:
        return prod(self._members.shape(self._name))

    def __getitem__(self, at: Any) -> Any:
        return self._all()[at]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all())


def in_a_row(array: NDArray[Any]) -> list[Any]:
    """The numbers of an array, the last index fastest; dates and bytes as a table would hold them."""
    if array.dtype.kind in "SMm":
        array = np.char.decode(array, "utf-8", "replace") if array.dtype.kind == "S" else array.astype(str)
    return array.reshape(-1).tolist()
