"""Parquet files by polars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.data.limits import check_room
from qvr_core.data.problems import DataProblem
from qvr_core.data.tables.lines import IN_PARTS, first_line

if TYPE_CHECKING:
    import polars as pl


def read_parquet(path: str, room: int | None) -> pl.DataFrame:
    import polars as pl

    try:
        table = pl.scan_parquet(path)
        # Packed, a row may take no byte at all.
        rows = int(table.select(pl.len()).collect().item())
        check_room(path, 16 * rows * len(table.collect_schema()), room, remedy=IN_PARTS)
        return table.collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise broken_parquet(path, error) from error


def broken_parquet(path: str, error: Exception) -> DataProblem:
    message = f"this is not a whole parquet file: {first_line(error)}"
    return DataProblem(message, path=path, remedy="Write it again")
