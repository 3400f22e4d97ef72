"""Tables and arrays as columns: csv, parquet and ndjson by polars, npz by numpy (never unpickled)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import NDArray

from qvr_core.data.arrays import Arrays
from qvr_core.data.column_names import listed, nearest, renaming
from qvr_core.data.limits import LINE, LineEnds, check_line, check_nesting, check_regular, check_room
from qvr_core.data.problems import DataProblem, NoColumn, a_folder, no_file, not_readable
from qvr_core.data.typed.cell_values import NULLS
from qvr_core.data.typed.csv_rows import CsvRows
from qvr_core.data.typed.csv_text import read_csv

if TYPE_CHECKING:
    import polars as pl

IN_PARTS = "Let the run read it in parts with batch_size"
LABELS = "Number the labels from 0, or declare the set as an enumeration `{first, second, …}`"


Column: TypeAlias = "pl.Series | NDArray[Any] | list[Any]"
SMALL = 2**20
"""Bytes of a csv that Python has read before polars is loaded."""
STREAMED = 64 * 2**20
"""Files above this many bytes are copied to records instead of being read at once."""


@dataclass(frozen=True)
class Columns:
    """A file's columns by name.  A table's are of one length, polars series or, of a small csv, lists of cells (whole
    numbers, numbers, truth values or text, None where one is missing); an npz's are arrays of any shape."""

    path: str
    source: str
    columns: Mapping[str, Column]
    first: int = 0
    """Rows of the file before these."""

    @property
    def table(self) -> bool:
        """Whether the file holds columns of one length, not arrays of shapes of their own."""
        return self.source != "npz"

    @property
    def rows(self) -> int | None:
        """Rows of a table; None for arrays, which may differ."""
        return len(next(iter(self.columns.values()))) if self.table and self.columns else None

    def find(self, name: str, site: str) -> Column:
        """The column called `name`.  Raises `DataProblem` with the nearest names."""
        if name in self.columns:
            return self.columns[name]
        near = nearest(name, self.columns)
        guess = f"Did you mean `{near}`? " if near else ""
        what = "columns" if self.table else "arrays"
        raise NoColumn(
            f"there is no {what[:-1]} `{name}`; the {what} are {self.listed}",
            path=self.path,
            site=site,
            remedy=f"{guess}Say what it is called: `{renaming(site, near or '…')}`, or "
            f'`columns = {{ {site} = "{near or "…"}" }}` in qvr.toml',
            usage=name != site,
        )

    @property
    def listed(self) -> str:
        """The names, for a message."""
        return listed(self.columns)


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
    read_head(path)
    frame = FRAMES[source](path, room)
    columns = Columns(path, source, by_name(path, frame))
    if columns.rows in (None, 0):
        raise no_rows(path)
    return columns


def no_rows(path: str) -> DataProblem:
    """A table with a header at most."""
    return DataProblem("the table has no rows", path=path, remedy="It needs at least one row below its header")


def by_name(path: str, frame: pl.DataFrame) -> dict[str, pl.Series]:
    """The columns by name; blanks around a name do not count."""
    found: dict[str, pl.Series] = {}
    for written in frame.columns:
        name = written.partition("_duplicated_")[0].strip()
        if name in found:
            remedy = "Rename one of them in the header"
            raise DataProblem("two columns have this name", path=path, column=name, remedy=remedy)
        found[name] = frame[written]
    return found


def read_head(path: str) -> None:
    """Raise `DataProblem` where a file cannot be read at all, or holds nothing."""
    try:
        if os.path.isdir(path):
            raise a_folder(path, "Name the data file inside it")
        if not os.path.exists(path):
            raise no_file(path)
        check_regular(path)
        with open(path, "rb") as opened:
            if not opened.read(1):
                raise DataProblem("the file is empty", path=path, remedy="It needs a header and at least one row")
    except PermissionError as error:
        raise not_readable(path) from error


def _csv(path: str, room: int | None) -> pl.DataFrame:
    import polars as pl

    gaps = check_csv(path, room)
    try:
        text = _without_empty_lines(line for _, line in _lines(path)) if gaps else path
        frame = pl.read_csv(text, infer_schema_length=None, null_values=[*NULLS])
        return frame.rename(lambda name: name.replace('""', '"'))
    except pl.exceptions.PolarsError as error:
        raise ragged_or_broken(path, "csv", error) from error


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
    for row, line in _lines(path):
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


def _lines(path: str) -> Iterator[tuple[int | None, bytes]]:
    """The lines of a text with the numbers of their rows, the header without one."""
    with open(path, "rb") as file:
        for row in count():
            line = file.readline(LINE + 1)
            if not line:
                return
            check_line(line, path, row or None)
            yield row or None, line


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


def ragged_or_broken(path: str, source: str, error: Exception) -> DataProblem:
    """What is wrong with a table that polars cannot read."""
    match source:
        case "csv":
            return _broken_csv(path, error)
        case "ndjson":
            return _broken_json(path, error)
        case _:
            return _broken_parquet(path, error)


def _broken_csv(path: str, error: Exception) -> DataProblem:
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
        f"this is not a csv file: {_first_line(error)}", path=path, remedy="Check the separators and quotes"
    )


def _parquet(path: str, room: int | None) -> pl.DataFrame:
    import polars as pl

    try:
        table = pl.scan_parquet(path)
        # Packed, a row may take no byte at all.
        rows = int(table.select(pl.len()).collect().item())
        check_room(path, 16 * rows * len(table.collect_schema()), room, remedy=IN_PARTS)
        return table.collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _broken_parquet(path, error) from error


def _broken_parquet(path: str, error: Exception) -> DataProblem:
    message = f"this is not a whole parquet file: {_first_line(error)}"
    return DataProblem(message, path=path, remedy="Write it again")


def _ndjson(path: str, room: int | None) -> pl.DataFrame:
    import polars as pl

    cells = 0
    for row, line in _lines(path):
        check_nesting(line, path, (row or 0) + 1)
        cells += line.count(b":")
    check_room(path, os.path.getsize(path) + 16 * cells, room, remedy=IN_PARTS)
    if not cells:
        raise no_rows(path)
    try:
        return pl.read_ndjson(path, infer_schema_length=None)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _broken_json(path, error) from error


def first_of_ndjson(path: str, rows: int, most_bytes: int) -> tuple[pl.DataFrame, bool]:
    """The first rows of a file, and whether they are all.  Raises `DataProblem`."""
    import polars as pl

    held: list[bytes] = []
    size, whole = 0, True
    for row, line in _lines(path):
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
        raise _broken_json(path, error) from error


def _broken_json(path: str, error: Exception) -> DataProblem:
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
    return DataProblem(f"this is not ndjson: {_first_line(error)}", path=path, remedy="Write one object per line")


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


FRAMES: dict[str, Callable[[str, int | None], pl.DataFrame]] = {"csv": _csv, "parquet": _parquet, "ndjson": _ndjson}
