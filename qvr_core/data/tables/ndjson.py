"""One JSON object a line, by polars."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

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
    except pl.exceptions.PolarsError as error:
        with open(path, "rb") as file:
            return _by_line(file, path, error)
    except OSError as error:
        raise broken_ndjson(path, error) from error


def _by_line(lines: Iterable[bytes], path: str, error: Exception) -> pl.DataFrame:
    """A table that polars has refused, by Python's reader: what is nested in it stands as the text of its JSON, for
    trees have lists and objects of different things beside each other.  Raises `DataProblem` where nothing is."""
    import json

    import polars as pl

    try:
        rows = [json.loads(line) for line in lines if line.strip()]
    except ValueError:
        raise broken_ndjson(path, error) from error
    objects = [cast("dict[str, Any]", row) for row in rows if isinstance(row, dict)]
    if len(objects) < len(rows):
        raise broken_ndjson(path, error) from error
    names = dict.fromkeys(chain.from_iterable(objects))
    found: dict[str, list[Any]] = {name: [row.get(name) for row in objects] for name in names}
    nested = {name for name, cells in found.items() if any(isinstance(cell, list | dict) for cell in cells)}
    if not nested:
        raise broken_ndjson(path, error) from error
    for name in nested:
        found[name] = [json.dumps(cell) if isinstance(cell, list | dict) else cell for cell in found[name]]
    try:
        return pl.DataFrame(found)
    except (pl.exceptions.PolarsError, TypeError):
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
    except pl.exceptions.PolarsError as error:
        return _by_line(held, path, error), whole


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
