"""Places in arrays of Stan, which count from 1, and texts that know how closely they bind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

TERNARY, OR, AND, EQUAL, LESS, SUM, PRODUCT, UNARY, POWER, ATOM = range(10)
"""How closely Stan's operators bind."""


class Text(NamedTuple):
    """An expression, and how closely its outermost operator binds."""

    text: str
    level: int = ATOM

    def at(self, level: int) -> str:
        """In brackets where what stands around it binds more closely."""
        return f"({self.text})" if self.level < level else self.text


@dataclass(frozen=True)
class Place:
    """A place, from 1: `text`, so many further."""

    text: str
    shift: int = 0

    def __str__(self) -> str:
        if self.text.isdigit():
            return str(int(self.text) + self.shift)
        if self.shift == 0:
            return self.text
        return f"{self.text} {'+' if self.shift > 0 else '-'} {abs(self.shift)}"

    def moved(self, by: int) -> Place:
        """So many further still."""
        return Place(self.text, self.shift + by)

    @property
    def printed(self) -> Text:
        """As an expression."""
        text = str(self)
        return Text(text, SUM if " + " in text or " - " in text else ATOM)


def shifted(place: Place, by: int, again: int) -> Place:
    """So many places further; one before the first is `again` later."""
    moved = place.moved(by)
    return moved if by >= 0 else Place(f"({moved.text} > {-moved.shift} ? {moved} : {moved.moved(again)})")


ALL = Place("\0")
"""The whole of an axis."""
BEFORE = Place("\1")
"""The hidden value before, where there is none."""
