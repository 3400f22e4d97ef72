"""A csv as it comes: what is no text, has other separators or ragged rows is told with its row."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from qvr_core.data.problems import DataProblem
from qvr_core.data.size_limits import LineEnds, check_room
from qvr_core.data.tables.lines import IN_PARTS, first_line, numbered_lines
from qvr_core.data.typed.cell_values import NULLS
from qvr_core.data.typed.csv_rows import CsvRows

if TYPE_CHECKING:
    import polars as pl


def read_csv_frame(path: str, room: int | None) -> pl.DataFrame:
    """A csv by polars, types by all of its rows; lines with nothing in them are passed over.  `room` is in bytes.
    Raises `DataProblem` with the row of what is no csv, and for more than the room holds."""
    import polars as pl

    gaps = check_csv(path, room)
    try:
        text = _without_empty_lines(line for _, line in numbered_lines(path)) if gaps else path
        frame = pl.read_csv(text, infer_schema_length=None, null_values=[*NULLS])
        return frame.rename(lambda name: name.replace('""', '"'))
    except pl.exceptions.PolarsError as error:
        raise broken_csv(path, error) from error


def check_csv(path: str, room: int | None) -> bool:
    """Raise `DataProblem` where a csv is not to be read; whether lines with nothing in them stand among its rows."""
    check_separator(path)
    cells, gaps = _check_text(path)
    # Its text, and each cell as a number of eight bytes, once more while columns are put together.
    check_room(path, os.path.getsize(path) + 16 * cells, room, remedy=IN_PARTS)
    return gaps


def _without_empty_lines(lines: Iterable[bytes]) -> bytes:
    """The text of a csv that was looked at, without the lines that are no rows."""
    rows = CsvRows("")
    return b"".join(line for line in lines if not rows.empty(line))


def _check_text(path: str) -> tuple[int, bool]:
    """How many cells a csv has at most, and whether lines with nothing in them stand among its rows.  Raises
    `DataProblem` where it is no text, or a row has too few fields: polars' own message gives no place, if there is
    one."""
    cells, gaps, ends, rows = 0, False, LineEnds(path), CsvRows(path)
    for row, line in numbered_lines(path):
        cells += line.count(b",") + 1
        try:
            ends.check(line.decode(), row)
        except UnicodeDecodeError as error:
            raise DataProblem(
                f"byte {line[error.start]:#04x} is not UTF-8", path=path, row=row, remedy="Save the table as UTF-8"
            ) from error
        if b"\x00" in line:
            raise DataProblem(
                "there is a NUL byte: this is not a text table",
                path=path,
                row=row,
                remedy="Is it a parquet or npz file? Then name it as `parquet:` or `npz:`",
            )
        gaps |= rows.empty(line)
    rows.end()
    return cells, gaps


def check_separator(path: str) -> None:
    """Raise `DataProblem` where the values of a csv stand between semicolons or tabs, as spreadsheets write them."""
    with open(path, encoding="utf-8", errors="replace") as file:
        header, first = (file.readline().strip().strip('"') for _ in range(2))
    for mark, written, name in ((";", ";", "semicolons"), ("\t", "\\t", "tabs")):
        if mark in header and "," not in header:
            decimal = ", decimal_comma=True" if re.search(r"\d,\d", first) else ""
            command = f'polars.read_csv("{path}", separator="{written}"{decimal}).write_csv("commas.csv")'
            raise DataProblem(
                f"the values are separated by {name}, and commas are wanted",
                path=path,
                remedy=f"Save it with commas, or write such a file by `python -c 'import polars; {command}'`",
            )


def broken_csv(path: str, error: Exception) -> DataProblem:
    """Find what is not text, the first row with another number of fields than the header, or what is no csv."""
    import csv

    _check_text(path)
    row = 0
    with open(path, newline="", encoding="utf-8") as file:
        try:
            for row, _ in enumerate(csv.reader(file)):  # noqa: B007
                pass
        except csv.Error as problem:
            remedy = "Is a quote opened there and not closed?"
            return DataProblem(f"this is not csv: {problem}", path=path, row=row + 1, remedy=remedy)
    return DataProblem(
        f"this is not a csv file: {first_line(error)}", path=path, remedy="Check the separators and quotes"
    )
