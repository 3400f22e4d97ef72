"""The lines of a program as they come, and what they share: names, data, sets, centred predictors."""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import dataclass, field
from itertools import chain, count

from qvr_core.data.column_names import plainly
from qvr_core.data.formula.columns import ROWS, Column, Table

_BINDS = re.compile(r"^ *(?:let|sample|observe) (\w+)", re.MULTILINE)
_LABEL = r"[A-Za-z][A-Za-z0-9_]*"


@dataclass(frozen=True)
class Factor:
    """A column as levels: those of its set, the reference first."""

    word: str
    levels: str
    """The set of all levels."""
    labels: tuple[str, ...]
    contrast: str
    """The set of those that are compared with the reference."""
    summed: bool
    """Coded against the mean of all levels, not against a reference."""

    @property
    def reference(self) -> str:
        """The level that the others are compared with."""
        return self.labels[0]


@dataclass
class Text:
    """A program while it is written: its sets, its data, its steps, and the names that are taken."""

    table: Table
    row: str = "i"
    rows: str = ROWS[0]
    """The set of the table's rows."""
    objects: dict[str, str] = field(default_factory=dict[str, str])
    defined: list[str] = field(default_factory=list[str])
    data: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Type and column of each data name."""
    notes: dict[str, str] = field(default_factory=dict[str, str])
    filled: list[str] = field(default_factory=list[str])
    """Steps that fill in missing cells, those of a column as one text."""
    imputed: dict[str, Column] = field(default_factory=dict[str, Column])
    lets: list[str] = field(default_factory=list[str])
    """Predictors as they enter: centred, scaled."""
    steps: list[str] = field(default_factory=list[str])
    keep: list[str] = field(default_factory=list[str])
    left_out: list[str] = field(default_factory=list[str])
    told: list[str] = field(default_factory=list[str])
    taken: set[str] = field(default_factory=set[str])
    target_accept: float | None = None
    _levels: dict[str, str] = field(default_factory=dict[str, str])
    """The sets of columns' levels, by the word of the column."""

    def __post_init__(self) -> None:
        words = {column.word for column in self.table.columns.values()}
        self.row = next(one for one in ("i", "n", "t", "r", "row_", "row__") if one not in words)
        called = {plainly(name) for name in (*words, *self.table.columns)}
        self.rows = next(one for one in (*ROWS, "_".join(ROWS)) if plainly(one) not in called)
        self.letters = [one for one in "klmabcdejuvw" if one not in words and one != self.row]
        self.taken |= words

    @property
    def running(self) -> str:
        """The index of a step over all rows: `i : Row`."""
        return f"{self.row} : {self.rows}"

    def free(self, name: str) -> str:
        """A name for a step that nothing has yet."""
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def datum(self, column: Column, element: str = "") -> str:
        """The name of a column as data whose elements are `element`; a second name where it is another thing too."""
        name = column.word
        if name in self.data and self.data[name] != (element, column.name):
            name = f"{column.word}_{'level' if element.endswith('Levels') else 'number'}"
            while name in self.data and self.data[name] != (element, column.name):
                name += "_"
        self.data[name] = (element, column.name)
        return name

    def number(self, column: Column) -> str:
        """A column as a number at the row; missing cells are filled in."""
        if column.gaps and column.kind == "number":
            self.imputed.setdefault(column.word, column)
        kind = "Bool" if column.kind == "bool" else ""
        shared = self.data.get(column.word)
        if (shared is not None and shared[0] in ("Nat", "Bool")) or (
            shared is not None and shared[0].startswith("Real")
        ):
            kind = shared[0]
        return f"{self.datum(column, kind)}[{self.row}]"

    def factor(self, column: Column, reference: str | None, *, summed: bool) -> Factor:
        """A column as levels, `reference` (else the first by the alphabet) in front; an unknown one is a problem of
        the table."""
        labels = column.labels
        if reference is not None:
            if reference not in labels:
                from qvr_core.data.column_names import listed

                self.table.problems.append(f"`{column.name}` has no level `{reference}`; there are {listed(labels)}")
            labels = [reference, *(one for one in labels if one != reference)]
        levels = self.enumerated(column, labels)
        name = self.datum(column, levels)
        base = levels.removesuffix("Levels")
        return Factor(name, levels, tuple(labels), f"{base}Contrast", summed)

    def contrasts(self, factor: Factor) -> None:
        """Declare the set of the levels but the reference."""
        others = ", ".join(map(label, factor.labels[1:]))
        declared = f"object {factor.contrast} : {{{others}}}  # against {label(factor.reference)}"
        self.objects[factor.contrast] = declared

    def small_steps(self, target_accept: float) -> None:
        """Ask for the smallest steps that any part of the program wants."""
        self.target_accept = max(self.target_accept or 0.0, target_accept)

    def say(self, comment: str) -> None:
        """A comment above the next step, over as many lines as it wants."""
        self.steps += commented(comment)

    def enumerated(self, column: Column, labels: list[str]) -> str:
        """A set whose elements the program names."""
        levels = self._levels_of(column)
        self.objects[levels] = f"object {levels} : {{{', '.join(map(label, labels))}}}"
        return levels

    def group(self, column: Column) -> tuple[str, str]:
        """A column as what rows are grouped by: the data name and the set, whose elements come with the data."""
        levels = self._levels_of(column)
        self.objects.setdefault(levels, f"object {levels} : FinSet _")
        return self.datum(column, levels), levels

    def _levels_of(self, column: Column) -> str:
        """The set of a column's levels, which no other column's is called."""
        if column.word not in self._levels:
            base = "".join(part[:1].upper() + part[1:] for part in column.word.split("_"))
            taken = {*self.objects, *self._levels.values()}
            bases = chain((base,), (f"{base}{number}" for number in count(2)))
            self._levels[column.word] = next(name for one in bases if (name := f"{one}Levels") not in taken)
        return self._levels[column.word]

    def ordered_steps(self) -> list[str]:
        """All steps, each predictor behind those that fill in what it reads."""
        return [*_behind_what_they_read([*self.filled, *self.lets]), *self.steps]


def _behind_what_they_read(texts: list[str]) -> list[str]:
    """Steps in their order, but none before one that binds what it reads; a comment stays in front of its step."""
    whole, comment = list[str](), ""
    for one in texts:
        comment += one + "\n" if one.lstrip().startswith("#") and "\n" not in one else ""
        if not comment.endswith(f"{one}\n"):
            whole.append(comment + one)
            comment = ""
    binds = {one: set(_BINDS.findall(one)) for one in whole}
    reads = {one: set(re.findall(r"\w+", re.sub("#.*", "", one))) - binds[one] for one in whole}
    ordered = list[str]()
    while whole:
        later = set[str]().union(*(binds[one] for one in whole))
        # where two columns are filled in by each other nothing is free
        free = next((one for one in whole if not reads[one] & later), whole[0])
        whole.remove(free)
        ordered.append(free)
    return ordered


def commented(text: str) -> list[str]:
    """A text as comments of a body, over as many lines as it wants."""
    return [f"    # {line}" for line in textwrap.wrap(text, 105)]


def label(text: str) -> str:
    """A level as an enumeration writes it."""
    plain = re.fullmatch(_LABEL, text) and text not in _RESERVED
    return text if plain else json.dumps(text, ensure_ascii=False)


def _reserved() -> frozenset[str]:
    from qvr_core.syntax.layout import STATEMENT_WORDS, STEP_WORDS

    return frozenset({*STATEMENT_WORDS, *STEP_WORDS, "for", "if", "from", "in", "factor", "as"})


_RESERVED = _reserved()
