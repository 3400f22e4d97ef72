"""The first rows of a parquet or ndjson file, or the arrays of an npz, as JSON: for a server that loads no polars and
no numpy.

python -m qvr_core.data.typed.excerpt_process parquet trial.parquet 100000 2000000
"""

from __future__ import annotations

import json
import sys
from typing import Any

from qvr_core.data.problems import DataProblem

MOST_BYTES = 50_000_000
"""Of an ndjson file, whose lines may be of any length."""


def main(kind: str, path: str, rows: str, cells: str) -> int:
    """Write `columns` or `arrays`, `large` where they hold more than so many cells, or the `problem` of the file."""
    try:
        found = {"parquet": _table, "ndjson": _lines, "npz": _arrays}[kind](path, int(rows), int(cells))
    except DataProblem as problem:
        found = {"problem": str(problem)}
    sys.stdout.write(json.dumps(found, default=str))
    return 0


def _table(path: str, rows: int, cells: int) -> dict[str, Any]:
    import polars as pl

    from qvr_core.data.tables.columns import by_name, no_rows
    from qvr_core.data.tables.parquet import read_parquet_heads, scanned
    from qvr_core.data.tables.reading import ragged_or_broken

    read_parquet_heads(path)
    try:
        table = scanned(path)
        most = max(1, min(rows, cells // max(1, len(table.collect_schema()))))
        frame = table.head(most + 1).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ragged_or_broken(path, "parquet", error) from error
    if not frame.height:
        raise no_rows(path)
    columns = {name: _plain(series.head(most)) for name, series in by_name(path, frame).items()}
    return {"columns": columns, "rows": min(frame.height, most), "whole": frame.height <= most}


def _lines(path: str, rows: int, cells: int) -> dict[str, Any]:
    from qvr_core.data.tables.columns import by_name, read_head
    from qvr_core.data.tables.ndjson import first_of_ndjson

    read_head(path)
    frame, whole = first_of_ndjson(path, rows, MOST_BYTES)
    most = max(1, min(rows, cells // max(1, frame.width)))
    columns = {name: _plain(series.head(most)) for name, series in by_name(path, frame).items()}
    return {"columns": columns, "rows": min(frame.height, most), "whole": whole and frame.height <= most}


def _plain(series: Any) -> list[Any]:
    """A column as plain values: dates and categories as text."""
    import polars as pl

    spelt = series.dtype.is_temporal() or isinstance(series.dtype, pl.Categorical | pl.Enum)
    return (series.cast(pl.String) if spelt else series).to_list()


def _arrays(path: str, rows: int, cells: int) -> dict[str, Any]:
    from qvr_core.data.npz_archives import Arrays
    from qvr_core.data.tables.columns import read_head

    read_head(path)
    held = Arrays(path, 16 * cells)
    found: dict[str, Any] = {}
    for name in held:
        try:
            array = held[name]
        except DataProblem as problem:
            if "memory_limit" in problem.remedy:
                return {"large": True}
            raise
        cells -= array.size
        if cells < 0:
            return {"large": True}
        found[name] = {"shape": list(array.shape), "flat": array.reshape(-1).tolist()}
    return {"arrays": found}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
