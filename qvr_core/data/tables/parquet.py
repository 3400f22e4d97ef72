"""Parquet files by polars: one, or all of a folder as one table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from qvr_core.data.problems import DataProblem, a_folder, not_readable
from qvr_core.data.size_limits import check_room
from qvr_core.data.tables.columns import read_head
from qvr_core.data.tables.lines import IN_PARTS, first_line

if TYPE_CHECKING:
    import polars as pl

MOST_FILES = 100_000
"""Of a folder."""


def parquet_files(path: str | os.PathLike[str]) -> list[str]:
    """The files of a table, in the order of its rows: `path` itself, or of a folder all `*.parquet` below it by their
    paths.  What begins with a dot or an underscore is left out, as by those who write such folders.  Raises
    `DataProblem`, also for a folder without any."""
    named = str(path)
    if not os.path.isdir(named):
        return [named]
    found: list[str] = []
    try:
        for folder, folders, names in os.walk(named, onerror=_raise):
            folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
            found += [
                os.path.join(folder, name)
                for name in names
                if name.endswith(".parquet") and not name.startswith((".", "_"))
            ]
            if len(found) > MOST_FILES:
                message = f"the folder has more than {MOST_FILES:,} parquet files"
                raise DataProblem(message, path=named, remedy="Join them to fewer")
    except PermissionError as error:
        raise not_readable(named) from error
    if not found:
        raise a_folder(named, "Name a data file inside it, or a folder of `*.parquet`")
    return sorted(found, key=lambda name: Path(name).parts)


def _raise(error: OSError) -> None:
    raise error


def read_parquet_heads(path: str) -> None:
    """Raise `DataProblem` where one of a table's files cannot be read at all, or holds nothing."""
    for name in parquet_files(path):
        read_head(name)


def scanned(path: str) -> pl.LazyFrame:
    """The rows of a file, or of all files of a folder, read when collected.  Raises `DataProblem`."""
    import polars as pl

    files = parquet_files(path)
    if files == [path]:
        return pl.scan_parquet(path, hive_partitioning=False)
    return pl.concat([pl.scan_parquet(name, hive_partitioning=False) for name in files], how="vertical_relaxed")


def read_parquet(path: str, room: int | None) -> pl.DataFrame:
    """All rows at once.  Raises `DataProblem`, also where they take more than `room` bytes."""
    import polars as pl

    try:
        table = scanned(path)
        # Packed, a row may take no byte at all.
        rows = int(table.select(pl.len()).collect().item())
        check_room(path, 16 * rows * len(table.collect_schema()), room, remedy=IN_PARTS)
        return table.collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise broken_parquet(path, error) from error


def broken_parquet(path: str, error: Exception) -> DataProblem:
    """What is said where polars cannot read a table."""
    import polars as pl

    if isinstance(error, pl.exceptions.SchemaError | pl.exceptions.ShapeError | pl.exceptions.ColumnNotFoundError):
        message = f"its files have other columns than the first: {first_line(error)}"
        return DataProblem(message, path=path, remedy="Give all files the same columns")
    message = f"this is not a whole parquet file: {first_line(error)}"
    return DataProblem(message, path=path, remedy="Write it again")
