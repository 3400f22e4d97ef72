"""What a row of a csv is: as many fields as the header has.  A line with nothing in it is none.

Readers differ here: some fill a short row up with missing cells, and make one of a line at the end of a file that holds
nothing.
"""

from __future__ import annotations

import csv
import io
import re

from qvr_core.data.problems import DataProblem
from qvr_core.data.size_limits import LINE

OPENED = rb'"[^"]*(""[^"]*)*'
FIELD = rb'([^"\r\n,][^",\r\n]*|' + OPENED + rb'")?'
START = rb"(\xef\xbb\xbf)?(" + FIELD + rb",)*"
ROW, UNENDED = re.compile(START + FIELD + rb"\r?\n?"), re.compile(START + OPENED)
"""Fields of one row, some of them in quotes; and of one whose last quote is not closed."""


class CsvRows:
    """Looks at the lines of a file, one after another, the header first."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.width = 0
        self.rows = 0
        self._quoted = b""
        self._open = False
        self._empty: int | None = None

    def empty(self, line: bytes) -> bool:
        """Look at the next line, with its end: whether nothing is in it.  Raises `DataProblem` for a row of another
        number of fields, and for a cell of a table of one column that may be missing or may be none."""
        if self._open or b'"' in line:
            self._quoted += line if len(self._quoted) <= LINE else b""
            self._open ^= line.count(b'"') % 2 == 1
            if self._open:
                return False
            line, self._quoted = self._quoted, b""
            if not ROW.fullmatch(line):
                raise self._inside()
        if not line.strip(b"\r\n"):
            self._empty = self.rows + 1
            return True
        fields = _fields(line)
        if not self.width:
            self.width, self._empty = fields, None
            return False
        self.rows += 1
        if fields != self.width:
            message = f"the row has {fields} fields and the header {self.width}"
            remedy = "Give every row the same number of fields; quote fields that hold commas"
            raise DataProblem(message, path=self.path, row=self.rows, remedy=remedy)
        if self.width == 1 and self._empty is not None:
            message = "the line before it is empty: a missing value, or no row at all"
            remedy = "Write `NA` where the value is missing, and leave the line out where there is no row"
            raise DataProblem(message, path=self.path, row=self._empty, remedy=remedy)
        return False

    def end(self) -> None:
        """Raise `DataProblem` where the file ends inside a quoted field."""
        if self._open:
            if not UNENDED.fullmatch(self._quoted):
                raise self._inside()
            message = "a quote is opened there and not closed"
            remedy = "Close it; inside quotes a quote is written twice"
            raise DataProblem(message, path=self.path, row=self._row, remedy=remedy)

    def _inside(self) -> DataProblem:
        remedy = 'Put the field into quotes, and write the quote twice: `"5"" pipe"`'
        return DataProblem("a quote stands inside a field", path=self.path, row=self._row, remedy=remedy)

    @property
    def _row(self) -> int | None:
        return self.rows + 1 if self.width else None


def _fields(line: bytes) -> int:
    if b'"' not in line:
        return line.count(b",") + 1
    return len(next(csv.reader(io.StringIO(line.decode("utf-8", "replace"), newline="")), list[str]()))
