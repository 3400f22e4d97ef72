"""A csv file as a table, by Python's own reader: for those who load no polars."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import Any, TextIO

from qvr_core.data.problems import DataProblem, a_folder, no_file, not_readable
from qvr_core.data.size_limits import LINE, LineEnds, check_line, check_regular
from qvr_core.data.typed.cell_values import NULLS
from qvr_core.data.typed.csv_rows import CsvRows
from qvr_core.data.typed.sources import Table

MOST_CELLS = 2_000_000


def read_csv(path: str, most_rows: int) -> Table:
    """The first rows of a file, text that is numbers in all of a column as numbers.  Raises `DataProblem`."""
    try:
        if os.path.isdir(path):
            raise a_folder(path, "Name the data file inside it")
        if not os.path.exists(path):
            raise no_file(path)
        check_regular(path)
        before = csv.field_size_limit(LINE)
        try:
            with open(path, newline="\n", encoding="utf-8-sig") as file:
                return _table(path, file, most_rows)
        finally:
            csv.field_size_limit(before)  # it is one for the whole process
    except PermissionError as error:
        raise not_readable(path) from error
    except UnicodeDecodeError as error:
        raise DataProblem("this is not UTF-8", path=path, remedy="Save the table as UTF-8") from error
    except csv.Error as error:
        remedy = "Is a quote opened and not closed?"
        raise DataProblem(f"this is not csv: {error}", path=path, remedy=remedy) from error


def _table(path: str, file: TextIO, most_rows: int) -> Table:
    reader = csv.reader(_lines(path, file))
    header = [name.strip() for name in next(reader, list[str]())]
    if not header:
        raise DataProblem("the file is empty", path=path, remedy="It needs a header and at least one row")
    if len(set(header)) < len(header):
        twice = next(name for at, name in enumerate(header) if name in header[:at])
        raise DataProblem("two columns have this name", path=path, column=twice, remedy="Rename one of them")
    most = max(1, min(most_rows, MOST_CELLS // len(header)))
    rows = list(islice(reader, most + 1))
    whole = len(rows) <= most
    rows = rows[:most]
    if not rows:
        raise DataProblem("the table has no rows", path=path, remedy="It needs at least one row below its header")
    columns = {name: _typed([row[at] for row in rows]) for at, name in enumerate(header)}
    return Table(path, columns, len(rows), whole)


def _lines(path: str, file: TextIO) -> Iterator[str]:
    """The lines of a file; those of a quoted field are several."""
    ends, rows = LineEnds(path), CsvRows(path)
    for row in count():
        line = file.readline(LINE + 1)
        if not line:
            rows.end()
            return
        check_line(line, path, row or None)
        ends.check(line, row or None)
        if not rows.empty(line.encode()):
            yield line


def _typed(cells: Sequence[str]) -> list[Any]:
    """A column as whole numbers, numbers, truth values, or text; None for what is missing.  A spelling is a number
    where it is one for polars, which reads what is larger."""
    plain = [None if cell in NULLS else cell for cell in cells]
    held = [cell for cell in plain if cell is not None]
    if held and all(map(WHOLE.fullmatch, held)):
        return [None if cell is None else int(cell) for cell in plain]
    if held and all(map(NUMBER.fullmatch, held)):
        return [None if cell is None else float(cell) for cell in plain]
    if held and all(cell.lower() in TRUTH for cell in held):
        return [None if cell is None else TRUTH[cell.lower()] for cell in plain]
    return plain


WHOLE = re.compile(r"-?[0-9]+")
NUMBER = re.compile(r"-?[0-9]+|[-+]?([0-9]*\.[0-9]+([eE][-+]?[0-9]+)?|inf|NaN|[0-9]+[eE][-+]?[0-9]+|[0-9]+\.)")
TRUTH = {"true": True, "false": False}
