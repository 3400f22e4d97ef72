"""The document that grows by what is typed: what it takes, what it refuses and why, and the way back."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from qvr_core.analysis import Analyzer, LocatedDiagnostic, Snapshot
from qvr_core.cli.output.diagnostics_text import Finding
from qvr_core.disk import Disk, location_of_file
from qvr_core.semantics.file.placed_diagnostics import LocatedRelated
from qvr_core.semantics.types.diagnostics import Severity
from qvr_core.syntax.source import Cursor, Range, split_lines
from qvr_core.workspace import Workspace

Lines = tuple[str, ...]
KEPT = 100
"""States that `:undo` leads back to."""


class Scratch:
    """An analyzer that becomes any text by one edit: a text is mostly the one before with another end."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._begin()

    def _begin(self) -> None:
        self._analyzer = Analyzer("", None, self._location, Workspace(Disk()))
        self._lines: Lines = ()

    def snapshot(self, lines: Lines) -> Snapshot:
        """The analysis of these lines."""
        old, first = self._lines, 0
        most = min(len(old), len(lines))
        while first < most and old[first] == lines[first]:
            first += 1
        last = 0
        while last < most - first and old[-1 - last] == lines[-1 - last]:
            last += 1
        between = lines[first : len(lines) - last]
        text = "".join(f"{line}\n" for line in between)
        try:
            self._analyzer.edit(Cursor(first, 0), Cursor(len(old) - last, 0), text)
        except KeyboardInterrupt:
            self._begin()  # the edit was made by half
            raise
        self._lines = lines
        return self._analyzer.snapshot()


@dataclass(frozen=True)
class Excerpt:
    """Where what was typed stands in an analysed text: its first line is line `line` there, moved to the right by
    `column`; `called` is what diagnostics call it, and `whole` the text around it."""

    snapshot: Snapshot
    typed: Lines
    line: int
    column: int
    called: str
    whole: str

    def holds(self, range: Range) -> bool:
        """Whether a place begins in what was typed, or right behind it."""
        return self.line <= range.start.line < self.line + len(self.typed) and (
            range.start.line > self.line or range.start.column >= self.column
        )

    def there(self, cursor: Cursor) -> Cursor:
        """A place of what was typed, in the text."""
        column = self.column if cursor.line == 0 else 0
        return Cursor(cursor.line + self.line, cursor.column + column)

    def here(self, cursor: Cursor) -> Cursor:
        """A place of the text, in what was typed."""
        column = self.column if cursor.line == self.line else 0
        return Cursor(cursor.line - self.line, max(cursor.column - column, 0))

    def moved(self, range: Range) -> Range:
        return Range(self.here(range.start), self.here(range.end))

    def finding(self, found: LocatedDiagnostic) -> Finding:
        """A diagnostic as it is printed: counted from what was typed, other places by the name of the text."""
        if not self.holds(found.range):
            return Finding(self.whole, "\n".join(self.snapshot.lines), found)
        related = tuple(one if one.location else self._related(one) for one in found.related)
        moved = replace(found, range=self.moved(found.range), related=related)
        return Finding(self.called, "\n".join(self.typed), moved)

    def _related(self, one: LocatedRelated) -> LocatedRelated:
        if self.holds(one.range):
            return replace(one, range=self.moved(one.range))
        lines = self.snapshot.lines
        return replace(one, location=self.whole, lines=(lines[one.range.start.line], lines[one.range.end.line]))


@dataclass(frozen=True)
class State:
    """What `:undo` leads back to, and what it takes back."""

    lines: Lines
    path: Path | None
    what: str


class Document:
    """Declarations as they stand in a file, saved or not."""

    def __init__(self) -> None:
        self.path: Path | None = None
        self.lines: Lines = ()
        self.stored: Lines = ()
        """As the file has them."""
        self.newline = "\n"
        self._before = deque[State](maxlen=KEPT)
        self.scratch = Scratch(location_of_file("-"))

    @property
    def name(self) -> str:
        """What diagnostics and messages call it."""
        return str(self.path) if self.path is not None else "the document"

    @property
    def text(self) -> str:
        return "".join(line + self.newline for line in self.lines)

    def snapshot(self) -> Snapshot:
        return self.scratch.snapshot(self.lines)

    def load(self, path: Path, text: str, what: str) -> None:
        """Hold the text of a file, and what its imports say now."""
        self._remember(what)
        self.path, self.newline = path, "\r\n" if "\r\n" in text else "\n"
        lines = split_lines(text.removeprefix("\ufeff"))[0]
        self.lines = self.stored = tuple(lines[:-1] if lines and not lines[-1] else lines)
        self.scratch = Scratch(location_of_file(path))

    def placed(self, path: Path) -> None:
        """The document was written to a file, which it is from now on."""
        if path != self.path:
            self.scratch = Scratch(location_of_file(path))
        self.path, self.stored = path, self.lines

    def undo(self) -> State | None:
        """The state before the last change, which is the document's from now on."""
        if not self._before:
            return None
        state = self._before.pop()
        if state.path != self.path:
            self.scratch = Scratch(location_of_file(state.path or "-"))
        self.lines, self.path = state.lines, state.path
        return state

    def excerpt(self, typed: Lines) -> Excerpt:
        """The document with some lines more, at its end or in place of the declarations whose names they have."""
        bare = self.scratch.snapshot((*self.lines, *typed))
        first, taken = _replaced(bare, len(self.lines))
        if taken:
            kept = [(line, number) for number, line in enumerate(self.lines) if number not in taken]
            before = [line for line, number in kept if number < first]
            lines = (*before, *typed, *(line for line, number in kept if number > first))
            return Excerpt(self.scratch.snapshot(lines), typed, len(before), 0, "input", self.name)
        gap = ("",) if self.lines and self.lines[-1].strip() and _set_apart(bare, len(self.lines)) else ()
        start = len(self.lines) + len(gap)
        return Excerpt(self.scratch.snapshot((*self.lines, *gap, *typed)), typed, start, 0, "input", self.name)

    def take(self, excerpt: Excerpt, what: str) -> None:
        """Hold a text that was looked at."""
        self._remember(what)
        lines = tuple(excerpt.snapshot.lines)
        self.lines = lines[:-1] if lines and not lines[-1] else lines

    def _remember(self, what: str) -> None:
        self._before.append(State(self.lines, self.path, what))


def new_problems(before: Sequence[LocatedDiagnostic], after: Sequence[LocatedDiagnostic]) -> list[LocatedDiagnostic]:
    """The errors and warnings that were not there before."""
    known = Counter((one.code.name, one.message) for one in before)
    found: list[LocatedDiagnostic] = []
    for one in after:
        if one.severity in (Severity.ERROR, Severity.WARNING):
            known[one.code.name, one.message] -= 1
            if known[one.code.name, one.message] < 0:
                found.append(one)
    return found


def _statements(snapshot: Snapshot) -> Iterator[tuple[int, int, frozenset[str]]]:
    """The first line of each statement, the one behind it, and the names that it declares."""
    layout = snapshot.layout
    for statement in snapshot.statements:
        names = frozenset(name.text for name in statement.header.unit.declares)
        yield layout.start_line(statement.uid), layout.end_line(statement.uid), names


def _replaced(snapshot: Snapshot, start: int) -> tuple[int, Mapping[int, None]]:
    """The lines above `start` of declarations all of whose names are declared again from there on; the first one."""
    statements = list(_statements(snapshot))
    again = frozenset[str]().union(*(names for first, _, names in statements if first >= start))
    old = [(first, end) for first, end, names in statements if first < start and names and names <= again]
    taken = dict.fromkeys(line for first, end in old for line in range(first, min(end, start)))
    return min(taken, default=0), taken


def _set_apart(snapshot: Snapshot, start: int) -> bool:
    """Whether an empty line belongs above what begins at `start`: above blocks, and below them."""
    long = [first for first, end, _ in _statements(snapshot) if end - first > 1]
    last = max((first for first, _, _ in _statements(snapshot) if first < start), default=-1)
    return any(first >= start or first == last for first in long)
