"""What data are read from: tables of columns, and arrays by name, as plain Python values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qvr_core.data.column_names import listed
from qvr_core.data.problems import DataProblem

Cell = str | int | float | bool | None
"""One entry of a column; None where it is missing.  A column may hold lists of them as well."""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of one length.  `path` is what messages call it; `whole` is false where only its first rows were read."""

    path: str
    columns: Mapping[str, Sequence[Any]]
    rows: int
    whole: bool = True

    @property
    def listed(self) -> str:
        """The names of its columns, for messages."""
        return listed(self.columns)


@dataclass(frozen=True, slots=True)
class Array:
    """Numbers in a shape, the last index fastest.  `dims` are the names of its axes and `labels` those of their
    elements, where the source tells them."""

    shape: tuple[int, ...]
    flat: Sequence[Any]
    dims: tuple[str, ...] | None = None
    labels: tuple[tuple[str, ...] | None, ...] = ()
    ragged: str = ""
    """What is wrong with lists of different lengths, which `flat` then holds as they stand; '' of an array."""

    def even(self, path: str, name: str) -> Array:
        """The array.  Raises `DataProblem` where its lists differ in length: only sentences may."""
        if self.ragged:
            raise DataProblem(self.ragged, path=path, column=name, remedy="Give all of them the same length")
        return self


@dataclass(frozen=True, slots=True)
class Arrays:
    """Arrays by name, as of a json or npz file.  Whole numbers that stand for elements count from `first`."""

    path: str
    arrays: Mapping[str, Array]
    first: int = 0

    @property
    def listed(self) -> str:
        """The names of its arrays, for messages."""
        return listed(self.arrays)


Source = Table | Arrays


@dataclass(frozen=True, slots=True)
class Sources:
    """All that data are read from.

    `main` is what is read where nothing else is said; `named` are sources of the rows of a set, or of one data name.
    `columns` says what a name of the program is called there, or which columns make it up.  `first` is the number of
    the first element where positions stand for the elements of a set.
    """

    main: Source | None
    named: Mapping[str, Source]
    columns: Mapping[str, str | tuple[str, ...]]
    first: int = 0
    rows: int | None = None
    """Of a program that reads its input: an array may have one more axis in front, an entry for each of them."""

    def column(self, name: str) -> str:
        """What a name is called in its source."""
        found = self.columns.get(name, name)
        return found if isinstance(found, str) else name

    def listed_columns(self, name: str) -> tuple[str, ...] | None:
        """The columns that a name is made up of, where they are listed."""
        found = self.columns.get(name)
        return None if found is None or isinstance(found, str) else tuple(found)
