"""What an index is called: what the program calls it elsewhere, else a letter of its set's name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from string import ascii_lowercase

from qvr_core.syntax.placing import units_of
from qvr_core.syntax.tree.arithmetic import Binder
from qvr_core.syntax.tree.units import Statement
from qvr_core.syntax.tree_to_text import to_text
from qvr_core.syntax.walk import walk

WORD = re.compile(r"[A-Za-z_]\w*")
USUAL = "ijknmtrpq"
"""Where the first letter of a set is taken."""


class Letters:
    """The indices of one program; each set has the same ones in every step."""

    def __init__(self, statement: Statement, others: Iterable[str]) -> None:
        """`others` are names that an index would hide: labels, and what the file declares."""
        self._of: dict[str, list[str]] = {}
        words: set[str] = set()
        for placed in units_of(statement):
            words.update(WORD.findall(placed.unit.text))
            if placed.unit.node is not None:
                for binder in (part for part in walk(placed.unit.node) if isinstance(part, Binder)):
                    names = self._of.setdefault(to_text(binder.space), [])
                    if binder.name.text not in names:
                        names.append(binder.name.text)
        self._taken = words | set(others)

    def of(self, sets: Sequence[str], within: str) -> tuple[str, ...]:
        """An index for each set of a step, whose text is `within`: none that the step has for something else."""
        there, chosen = set(WORD.findall(within)), list[str]()
        for one in sets:
            names = self._of.setdefault(one, [])
            letter = next((name for name in names if name not in there and name not in chosen), None)
            if letter is None:
                letter = next(name for name in _candidates(one) if name not in self._taken)
                names.append(letter)
                self._taken.add(letter)
            chosen.append(letter)
        return tuple(chosen)


def _candidates(name: str) -> Iterator[str]:
    own = [letter for letter in name.lower() if letter in ascii_lowercase]
    letters = [*own[:1], *USUAL, *own, *ascii_lowercase]
    yield from letters
    count = 2
    while True:
        yield from (f"{letter}{count}" for letter in letters)
        count += 1
