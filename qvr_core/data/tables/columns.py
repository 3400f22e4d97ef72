"""The columns of a table or the arrays of a file by their names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import NDArray

from qvr_core.data.column_names import listed, nearest, renaming
from qvr_core.data.problems import DataProblem, NoColumn, a_folder, no_file, not_readable
from qvr_core.data.size_limits import check_regular

if TYPE_CHECKING:
    import polars as pl

LABELS = "Number the labels from 0, or declare the set as an enumeration `{first, second, …}`"
Column: TypeAlias = "pl.Series | NDArray[Any] | list[Any]"


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
