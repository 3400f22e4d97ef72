"""The elements of a set: what the data call them, and which position each has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isfinite, isnan
from typing import Any

DATE = re.compile(r"\d{4}-\d\d(-\d\d)?([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?")


def missing(cell: Any) -> bool:
    """Whether an entry is left out, or not a number."""
    return cell is None or (isinstance(cell, float) and isnan(cell))


def word(cell: Any) -> str | None:
    """What an entry calls an element: text as it stands, numbers without a fraction as whole ones; None for others."""
    if missing(cell):
        return None
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, int):
        return str(cell)
    if isinstance(cell, float):
        return str(int(cell)) if isfinite(cell) and cell.is_integer() else None
    return str(cell).strip()


def whole(cell: Any) -> int | None:
    """An entry as a whole number; None where it is none."""
    if isinstance(cell, bool):
        return int(cell)
    if isinstance(cell, int):
        return cell
    if isinstance(cell, float):
        return int(cell) if abs(cell) < 2**62 and cell.is_integer() else None
    text = str(cell).strip()
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else None


def in_order(found: Iterable[str]) -> tuple[str, ...]:
    """The labels of an open set: whole numbers and dates ascending, other text in order of appearance."""
    distinct = list(dict.fromkeys(found))
    if all(re.fullmatch(r"[+-]?\d+", one) for one in distinct):
        return tuple(sorted(distinct, key=int))
    if all(DATE.fullmatch(one) for one in distinct):
        return tuple(sorted(distinct))
    return tuple(distinct)


@dataclass(frozen=True)
class Elements:
    """A set as the data know it.

    `labels` are None where positions stand for the elements, counted from `first`.  `source` is the file that told
    them, or '' for the program.
    """

    name: str
    size: int
    labels: tuple[str, ...] | None = None
    first: int = 0
    source: str = ""
    _places: dict[str, int] = field(default_factory=dict[str, int], repr=False, compare=False)

    def place(self, cell: Any) -> int | None:
        """The position of an element from 0; None for what is not in the set."""
        if self.labels is not None:
            if not self._places:
                self._places.update({label: place for place, label in enumerate(self.labels)})
            named = word(cell)
            found = self._places.get(named) if named is not None else None
            if found is not None or self.source or isinstance(cell, str):
                return found
        number = whole(cell)
        place = None if number is None else number - self.first
        return place if place is not None and 0 <= place < self.size else None

    @property
    def remedy(self) -> str:
        """What to do about one that is not there."""
        if self.labels is None and not self.source and self.name:
            return f"Correct it, or let the elements come with the data: `object {self.name} : FinSet _`"
        return f"Correct it, or add the element{' there' if self.source and self.labels is not None else ''}"

    @property
    def wanted(self) -> str:
        """What may stand for an element, in words."""
        if self.labels is not None:
            more = f" and {len(self.labels) - 6} more" if len(self.labels) > 6 else ""
            return ", ".join(f"`{label}`" for label in self.labels[:6]) + more
        return f"{self.first} to {self.size - 1 + self.first}"
