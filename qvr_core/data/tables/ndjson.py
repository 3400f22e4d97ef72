"""One JSON object a line, by polars."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from qvr_core.data.problems import DataProblem
from qvr_core.data.size_limits import check_nesting, check_room
from qvr_core.data.tables.columns import no_rows
from qvr_core.data.tables.lines import IN_PARTS, first_line, numbered_lines

if TYPE_CHECKING:
    import polars as pl


def read_ndjson(path: str, room: int | None) -> pl.DataFrame:
    """One JSON object a line by polars, types by all of them.  `room` is in bytes.  Raises `DataProblem` for what is
    deeply nested, is no JSON, has no rows, or is more than the room holds."""
    import polars as pl

    cells = 0
    for row, line in numbered_lines(path):
        check_nesting(line, path, (row or 0) + 1)
        cells += line.count(b":")
    check_room(path, os.path.getsize(path) + 16 * cells, room, remedy=IN_PARTS)
    if not cells:
        raise no_rows(path)
    try:
        return pl.read_ndjson(path, infer_schema_length=None)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise broken_ndjson(path, error) from error


def first_of_ndjson(path: str, rows: int, most_bytes: int) -> tuple[pl.DataFrame, bool]:
    """The first rows of a file, and whether they are all.  Raises `DataProblem`."""
    import polars as pl

    held: list[bytes] = []
    size, whole = 0, True
    for row, line in numbered_lines(path):
        check_nesting(line, path, (row or 0) + 1)
        if not line.strip():
            continue
        whole = len(held) < rows and size + len(line) <= most_bytes
        if not whole:
            break
        held.append(line if line.endswith(b"\n") else line + b"\n")
        size += len(line)
    if not held:
        raise no_rows(path)
    try:
        return pl.read_ndjson(b"".join(held), infer_schema_length=None), whole
    except (pl.exceptions.PolarsError, OSError) as error:
        raise broken_ndjson(path, error) from error


def broken_ndjson(path: str, error: Exception) -> DataProblem:
    """Find the first line that is no JSON object."""
    import json

    with open(path, encoding="utf-8", errors="replace") as file:
        for row, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                content = json.loads(line)
            except ValueError as problem:
                return DataProblem(f"the line is not JSON: {problem}", path=path, row=row, remedy="Fix that line")
            if not isinstance(content, dict):
                return DataProblem(
                    "the line is not a JSON object", path=path, row=row, remedy="Write one object per line"
                )
    return DataProblem(f"this is not ndjson: {first_line(error)}", path=path, remedy="Write one object per line")
