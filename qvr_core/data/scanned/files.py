"""The files of a parquet table, how many rows each has, and stretches of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from qvr_core.data.column_names import listed
from qvr_core.data.problems import NoColumn
from qvr_core.data.tables.columns import by_name, no_rows
from qvr_core.data.tables.parquet import broken_parquet, parquet_files, read_parquet_heads


@dataclass(frozen=True)
class Part:
    """One file: its rows, and how its columns are written there, by their names."""

    path: str
    rows: int
    written: dict[str, str]

    def read(self, start: int, count: int, names: Sequence[str]) -> pl.DataFrame:
        """The columns of these names in `count` rows from `start`.  Raises `DataProblem`."""
        try:
            columns = [pl.col(self.written[name]).alias(name) for name in names]
            table = pl.scan_parquet(self.path, hive_partitioning=False)
            return table.slice(start, count).select(columns).collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise broken_parquet(self.path, error) from error


@dataclass(frozen=True)
class ParquetTable:
    """A file, or the files of a folder as one table.  `path` is what messages call it."""

    path: str
    parts: tuple[Part, ...]

    @cached_property
    def rows(self) -> int:
        """Of all parts together."""
        return sum(part.rows for part in self.parts)

    @property
    def columns(self) -> list[str]:
        """The names of the first file's columns."""
        return list(self.parts[0].written)

    def check(self, names: Sequence[str]) -> None:
        """Raise `DataProblem` where one of the files lacks a column of these names."""
        for part in self.parts:
            lacking = [name for name in names if name not in part.written]
            if lacking:
                raise NoColumn(
                    f"there is no column `{lacking[0]}`, which {self.parts[0].path} has; the columns are "
                    f"{listed(part.written)}",
                    path=part.path,
                    remedy="Give all files of the folder the same columns",
                )

    def stretches(self, rows: int) -> Iterator[tuple[Part, int, int]]:
        """All rows in their order, at most so many of one file at a time: (file, the first of its rows, how many)."""
        for part in self.parts:
            for start in range(0, part.rows, rows):
                yield part, start, min(rows, part.rows - start)


def parquet_table(path: str) -> ParquetTable:
    """A table by the ends of its files, which say what is in them.  Raises `DataProblem`."""
    read_parquet_heads(path)
    found: list[Part] = []
    for name in parquet_files(path):
        try:
            table = pl.scan_parquet(name, hive_partitioning=False)
            rows = int(table.select(pl.len()).collect().item())
            none = table.head(0).collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise broken_parquet(name, error) from error
        by_name(name, none)  # raises where two columns have one name
        found.append(Part(name, rows, {written.strip(): written for written in none.columns}))
    table = ParquetTable(path, tuple(part for part in found if part.rows) or tuple(found[:1]))
    if not table.rows:
        raise no_rows(path)
    return table
