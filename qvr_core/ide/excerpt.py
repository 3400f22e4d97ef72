"""What a few lines of a long text mean before the whole of it is analysed: those lines, and the declarations that they
need, in their places; everything else is blank.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence

from qvr_core.analysis import Snapshot, analyse

DECLARATION = re.compile(
    r"(?:object|morphism|let|define|program|deduction|composition|def|family|transformation|encoder|decoder|data\s+type)\s+(\w+(?:\s*,\s*\w+)*)"
)
WORD = re.compile(r"[A-Za-z_]\w*")

# Lines that an excerpt holds at most: some 20 ms of work.
MOST = 200


class Excerpts:
    """Excerpts of one text.  Statements are told by their first letter alone, which is enough for all but the steps of
    a program that stand unindented."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._starts = [number for number, line in enumerate(lines) if line[:1].isalpha() or line[:1] == "_"]
        self._owners: dict[str, int] = {}
        for index, start in enumerate(self._starts):
            declared = DECLARATION.match(lines[start])
            for name in WORD.findall(declared[1]) if declared is not None else ():
                self._owners.setdefault(name, index)

    def around(self, first: int, last: int) -> Snapshot | None:
        """The analysis of the statements on the lines `first` to `last` and of what they use, as far as there is room;
        None where there is none for the statements themselves."""
        shown = {number: self._lines[number] for number in range(first, min(last + 1, len(self._lines)))}
        asked = range(max(0, bisect_right(self._starts, first) - 1), bisect_right(self._starts, last))
        waiting, seen = deque(asked), set(asked)
        while waiting:
            numbers = self._numbers(waiting.popleft())
            if len(shown) + len(numbers) > MOST:
                break
            shown.update((number, self._lines[number]) for number in numbers)
            used = [index for index in self._used(numbers) if index not in seen]
            waiting.extend(used)
            seen.update(used)
        if len(shown) > MOST or any(self._starts[index] not in shown for index in asked):
            return None
        return analyse("\n".join(shown.get(number, "") for number in range(len(self._lines))))

    def _used(self, numbers: range) -> Iterable[int]:
        words = {word for number in numbers for word in WORD.findall(self._lines[number])}
        return sorted(self._owners[word] for word in words if word in self._owners)

    def _numbers(self, index: int) -> range:
        """The lines of a statement, its comment included."""
        start = self._starts[index]
        end = self._starts[index + 1] if index + 1 < len(self._starts) else len(self._lines)
        while start > 0 and self._lines[start - 1].startswith("#"):
            start -= 1
        return range(start, end)
