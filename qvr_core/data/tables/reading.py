"""Tables and arrays as columns: csv, parquet and ndjson by polars, npz by numpy (never unpickled)."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from qvr_core.data.npz_archives import Arrays
from qvr_core.data.problems import DataProblem
from qvr_core.data.tables.columns import Columns, by_name, no_rows, read_head
from qvr_core.data.tables.csv_tables import broken_csv, check_csv, read_csv_frame
from qvr_core.data.tables.ndjson import broken_ndjson, read_ndjson
from qvr_core.data.tables.parquet import broken_parquet, read_parquet, read_parquet_heads
from qvr_core.data.typed.csv_text import read_csv

if TYPE_CHECKING:
    import polars as pl

SMALL = 2**20
"""Bytes of a csv that Python has read before polars is loaded."""
STREAMED = 64 * 2**20
"""Files above this many bytes are copied to records instead of being read at once."""


def read_columns(path: str, source: str, room: int | None = None) -> Columns:
    """Read a file into at most `room` bytes.  Raises `DataProblem` for everything that can be wrong with it."""
    if source == "npz":
        read_head(path)
        return Columns(path, source, Arrays(path, room))
    if source == "csv" and os.path.isfile(path) and os.path.getsize(path) <= SMALL:
        read_head(path)
        check_csv(path, room)
        return Columns(path, source, {name: list(cells) for name, cells in read_csv(path, SMALL).columns.items()})
    return read_frame(path, source, room)


def read_frame(path: str, source: str, room: int | None = None) -> Columns:
    """The same of a table, its columns as series of polars."""
    if source == "parquet":
        read_parquet_heads(path)
    else:
        read_head(path)
    frame = FRAMES[source](path, room)
    columns = Columns(path, source, by_name(path, frame))
    if columns.rows in (None, 0):
        raise no_rows(path)
    return columns


def ragged_or_broken(path: str, source: str, error: Exception) -> DataProblem:
    """What is wrong with a table that polars cannot read."""
    match source:
        case "csv":
            return broken_csv(path, error)
        case "ndjson":
            return broken_ndjson(path, error)
        case _:
            return broken_parquet(path, error)


FRAMES: dict[str, Callable[[str, int | None], pl.DataFrame]] = {
    "csv": read_csv_frame,
    "parquet": read_parquet,
    "ndjson": read_ndjson,
}
