"""What the columns of a table are to a formula: numbers, factors, truth values, dates, names of rows."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from qvr_core.data.column_names import listed, nearest
from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.syntax.layout import STATEMENT_WORDS, STEP_WORDS

_LETTERS = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss", "ø": "o", "Ø": "O"}
)
ROWS = ("Row", "Observation", "Record", "TableRow")
"""What the set of rows may be called: a column of the same name would say which element each row is."""
_SETS = re.compile(r"[A-Z]\w*(Levels|Contrast|Knot|Wave|Step|LevelsEffect)|Lag")
"""Sets that programs which are written may have."""
OWN = (
    *ROWS,
    "intercept",
    "sigma",
    "mean",
    "eta",
    "nu",
    "shape",
    "phi",
    "zi",
    "hu",
    "cuts",
    "dispersion",
    "logits",
    "bump",
    "bump_slope",
    "in_data",
    "spline",
    "ar",
    "model",
)
"""Names of the programs that are written."""
_FOLD = 20
"""A text column with more levels than rows divided by this is one that names rows, or groups at best."""


@dataclass(frozen=True)
class Column:
    """A column of the table, and what it is to a formula."""

    name: str
    """As the table has it."""
    word: str
    """As a program has it."""
    series: pl.Series

    @cached_property
    def kind(self) -> str:
        """`number`, `bool`, `factor`, `date`, or `other` (lists and the like)."""
        dtype = self.series.dtype
        if dtype == pl.Boolean:
            return "bool"
        if dtype.is_numeric():
            return "number"
        if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
            return "date" if self._dates else "factor"
        return "date" if dtype.is_temporal() else "other"

    @cached_property
    def _dates(self) -> bool:
        found = self.series.drop_nulls().cast(pl.String)
        return len(found) > 0 and bool(found.str.contains(r"^\d{4}-\d\d-\d\d([T ].*)?$").all())

    @cached_property
    def gaps(self) -> int:
        """How many cells are missing."""
        return self.series.null_count()

    @cached_property
    def distinct(self) -> int:
        """How many different values there are, missing cells left out."""
        return self.series.drop_nulls().n_unique()

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The values, NaN where there is none."""
        return self.series.cast(pl.Float64).to_numpy().astype(np.float64)

    @cached_property
    def labels(self) -> list[str]:
        """The levels as a program writes them, in sorted order."""
        found = self.series.drop_nulls().unique()
        if self.kind == "bool":
            return ["false", "true"]
        return [str(one) for one in sorted(found.to_list())]

    @property
    def binary(self) -> bool:
        """Truth values, or 0 and 1: not centred."""
        return self.kind == "bool" or (self.kind == "number" and set(np.unique(self.known)) <= {0.0, 1.0})

    @property
    def known(self) -> NDArray[np.float64]:
        """The numbers that are there, (n − gaps,)."""
        return self.numbers[~np.isnan(self.numbers)]

    @property
    def identity(self) -> str | None:
        """Why the column explains nothing, where it does not."""
        if self.distinct <= 1:
            return "the same value in every row"
        if self.kind == "date":
            return "a date"
        rows = len(self.series) - self.gaps
        whole = self.kind == "number" and self.series.dtype.is_integer()
        named = re.search(r"(?:^|[\W_])(?:id|nr|no|number|index|row)(?:$|[\W_])", self.name, re.IGNORECASE)
        if self.distinct == rows and rows > 2 and (self.kind == "factor" or (whole and named)):
            return "another value in every row"
        if self.kind == "number" and whole and self.distinct == rows and bool((np.diff(self.known) == 1).all()):
            return "the number of the row"
        if self.kind == "factor" and self.distinct * _FOLD > 2 * rows and self.distinct > 10:
            return f"{self.distinct} levels: a group, as (1 | {self.word})"
        return "it holds neither numbers nor text" if self.kind == "other" else None


@dataclass
class Table:
    """The columns of a table under names that can stand in programs."""

    columns: Mapping[str, Column]
    rows: int
    problems: list[str] = field(default_factory=list[str])
    """What is wrong with what was asked for: told all at once."""

    def column(self, name: str) -> Column | None:
        """A column; where there is none, a problem with the nearest name."""
        if name in self.columns:
            return self.columns[name]
        near = nearest(name, list(self.columns))
        instead = f"; did you mean `{near}`?" if near else f"; there are {listed(self.columns)}"
        said = f"no column `{name}`{instead}"
        if said not in self.problems:
            self.problems.append(said)
        return None


def table(columns: Mapping[str, pl.Series]) -> Table:
    """The columns of a file, each with a name that a program can say."""
    taken: set[str] = {*OWN, *FAMILIES, *STEP_WORDS, *STATEMENT_WORDS}
    taken |= {name for name, builtin in BUILTINS.items() if builtin.reserved}
    found: dict[str, Column] = {}
    for name, series in columns.items():
        word = word_of(name)
        while word in taken or _SETS.fullmatch(word):
            word += "_"
        taken.add(word)
        found[name] = Column(name, word, series)
    return Table(found, len(next(iter(columns.values()), ())))


def word_of(name: str) -> str:
    """A name of letters, digits and `_` for a column."""
    plain = unicodedata.normalize("NFKD", name.translate(_LETTERS)).encode("ascii", "ignore").decode()
    word = re.sub(r"_+", "_", re.sub(r"\W", "_", plain)).strip("_") or "column"
    return word if re.match(r"[A-Za-z_]", word) else f"x_{word}"
