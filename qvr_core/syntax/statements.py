"""A document: its lines, its statements, and an edit that re-cuts only what it touches."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

from qvr_core.syntax.cutter import Block, Extent, block_tree, extent, unit_text
from qvr_core.syntax.doc_comments import comment_run
from qvr_core.syntax.internal_error import failed_unit
from qvr_core.syntax.layout import Logical, next_code, shape
from qvr_core.syntax.observed_names import with_observed_names
from qvr_core.syntax.placing import (
    SERIAL_BITS,
    UidPool,
    place_block,
    replace_line,
    same_structure,
    statement_uid,
    units_of,
)
from qvr_core.syntax.source import Cursor, Range, SourceText
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.units import Placed, Statement, SyntaxProblem


class ChangeSet(NamedTuple):
    """What an edit did to the statements, by uid.  All others are the same objects as before, at most moved.

    A `changed` statement has the header it had, or the lines below it; the rest of it differs.
    """

    removed: tuple[int, ...]
    added: tuple[int, ...]
    changed: tuple[int, ...]


@dataclass(slots=True)
class _Record:
    """A statement with what the cutter must remember of it."""

    statement: Statement
    lines: tuple[str, ...]
    extent: Extent
    """Its logical lines, counted from where it stood when it was cut."""
    counter: int
    """The next free number for a unit of this statement."""


def is_damaged(statement: Statement) -> bool:
    """Whether a statement has a syntax error: it is then left as it is by the formatter."""
    if any(problem.severity == "error" for _, problem in statement.problems):
        return True
    return any(
        placed.unit.node is None or any(problem.severity == "error" for problem in placed.unit.problems)
        for placed in units_of(statement)
    )


class Layout:
    """Statements at their lines.  All questions about places are answered here; only `Document` writes to it."""

    __slots__ = ("_ends", "_heights", "_index", "_places", "_starts", "lines", "statements")

    lines: list[str]
    statements: list[Statement]
    _starts: list[int]
    _heights: list[int]
    _index: dict[int, int] | None
    _places: dict[int, tuple[Statement, dict[int, Placed[Any]]]]
    _ends: dict[int, list[int]]
    """How many code points of a statement stand in front of each of its lines, until the next edit."""

    def _positions(self) -> dict[int, int]:
        if self._index is None:
            self._index = {statement.header.uid: i for i, statement in enumerate(self.statements)}
        return self._index

    def statement_of(self, uid: int) -> Statement:
        """The statement that holds the unit `uid`.  Raises KeyError for a uid that is no longer there."""
        return self.statements[self._positions()[statement_uid(uid)]]

    def find_statement(self, uid: int) -> tuple[Statement, int] | None:
        """A statement by its own uid, with its first line; None where it is no longer there."""
        i = (self._positions() if self._index is None else self._index).get(uid)
        return None if i is None else (self.statements[i], self._starts[i])

    def stands(self, uid: int, statement: Statement, line: int) -> bool:
        """Whether a statement begins at a line as before, and something follows it, if only an empty line."""
        i = (self._positions() if self._index is None else self._index).get(uid)
        if i is None or self.statements[i] is not statement or self._starts[i] != line:
            return False
        return i + 1 < len(self.statements) or line + self._heights[i] < len(self.lines)

    def placed(self, uid: int) -> Placed[Any]:
        """The unit `uid` in its statement.  Raises KeyError for a uid that is no longer there."""
        statement = self.statement_of(uid)
        if statement.header.uid == uid:
            return statement.header
        known = self._places.get(statement.header.uid)
        if known is None or known[0] is not statement:
            known = (statement, {placed.uid: placed for placed in units_of(statement)})
            self._places[statement.header.uid] = known
        return known[1][uid]

    def start_line(self, uid: int) -> int:
        """The first line of the statement `uid`."""
        return self._starts[self._positions()[uid]]

    def end_line(self, uid: int) -> int:
        """The line after the last line of code of the statement `uid`."""
        i = self._positions()[uid]
        return self._starts[i] + self._heights[i]

    def locate(self, uid: int) -> tuple[int, int]:
        """Line and column of the first token of any unit."""
        placed = self.placed(uid)
        return self._starts[self._positions()[statement_uid(uid)]] + placed.line, placed.column

    def cursor(self, uid: int, offset: int) -> Cursor:
        """The place `offset` code points from the start of a unit.  It may lie outside of the unit's own text."""
        line, column = self.locate(uid)
        column += offset
        if column > len(self.lines[line]):
            line, column = self._further(statement_uid(uid), line, column)
        while column < 0 and line > 0:
            line -= 1
            column += len(self.lines[line]) + 1
        while column > len(self.lines[line]) and line + 1 < len(self.lines):
            column -= len(self.lines[line]) + 1
            line += 1
        return Cursor(line, min(max(column, 0), len(self.lines[line])))

    def _further(self, uid: int, line: int, column: int) -> tuple[int, int]:
        """Of a place behind the end of a line the line of its statement that it is in, or the last, and the column
        there: looked up, since a statement may have any number of lines."""
        i = self._positions()[uid]
        first, starts = self._starts[i], self._ends.get(uid)
        if starts is None:
            lengths = (len(text) + 1 for text in self.lines[first : first + self._heights[i]])
            starts = self._ends[uid] = [0, *accumulate(lengths)]
        if not 0 <= line - first < len(starts) - 1:
            return line, column
        place = starts[line - first] + column
        inside = min(bisect_right(starts, place), len(starts) - 1) - 1
        return first + inside, place - starts[inside]

    def range(self, uid: int, span: Span) -> Range:
        """Where a span of a unit stands in the text."""
        return Range(self.cursor(uid, span.start), self.cursor(uid, span.end))

    def index_at(self, line: int) -> int:
        """The position in `statements` of the last statement that starts at or above `line`; -1 for none."""
        return bisect_right(self._starts, line) - 1

    def statement_at(self, line: int) -> Statement | None:
        """The statement that has code on both sides of the line or on it, None between statements."""
        i = self.index_at(line)
        if i < 0 or line >= self._starts[i] + self._heights[i]:
            return None
        return self.statements[i]

    def problems(self) -> list[tuple[Range, SyntaxProblem]]:
        """All syntax problems with their places, in the order of the text."""
        found: list[tuple[Range, SyntaxProblem]] = []
        for statement in self.statements:
            found += [(self.range(uid, problem.span), problem) for uid, problem in statement.problems]
            for placed in units_of(statement):
                found += [(self.range(placed.uid, problem.span), problem) for problem in placed.unit.problems]
        return sorted(found, key=lambda item: item[0])


class Document(Layout):
    """One text under edits.  No method but a lookup of a uid that is gone ever raises, whatever the text."""

    __slots__ = ("_far", "_index_shared", "_places_shared", "_records", "_serial", "source")

    def __init__(self, text: str = "") -> None:
        self._hold(text)
        self._recut(0, 0, 0, 0)

    @classmethod
    def unread(cls, text: str) -> Document:
        """A document of which no statement is known, for a text that cannot be cut."""
        made = cls.__new__(cls)
        made._hold(text)
        return made

    def _hold(self, text: str) -> None:
        self.source = SourceText(text)
        self.lines = self.source.lines
        self.statements = []
        self._records: list[_Record] = []
        self._starts = []
        self._heights = []
        self._index = None
        self._index_shared = False
        self._places_shared = False
        self._places = {}
        self._ends = {}
        self._far: set[int] = set()
        self._serial = 0

    @property
    def text(self) -> str:
        """The exact text, with its line terminators."""
        return self.source.text

    def frozen(self) -> Layout:
        """What stands in the document now, untouched by later edits."""
        layout = Layout()
        layout.lines = self.lines.copy()
        layout.statements = self.statements.copy()
        # most edits stay inside a line: both are copied only once an edit writes to them
        layout._starts, layout._heights = self._starts, self._heights
        self._places_shared = True
        layout._index = self._positions()
        layout._places = self._places
        layout._ends = self._ends
        self._index_shared = True
        return layout

    def edit(self, start: Cursor, end: Cursor, text: str) -> ChangeSet:
        """Replace the text between two places; places past an end count as that end."""
        self._ends = {}
        old = self.lines[self.source.clamp(start).line]
        first, removed, inserted = self.source.edit(start, end, text)
        if removed == inserted == 1 and first == self.source.clamp(start).line:
            quick = self._replace_line(first, old)
            if quick is not None:
                return quick
        return self._recut(first, removed, inserted, inserted - removed)

    # ---------------------------------------------------------------- cutting

    def _recut(self, first: int, removed: int, inserted: int, delta: int) -> ChangeSet:
        """Cut anew from the statement above line `first` until the old starts fit again."""
        lines, starts = self.lines, self._starts
        begin = bisect_left(starts, first) - 1
        for uid in self._far:
            i = self._positions()[uid]
            if starts[i] < first < starts[i] + self._records[i].extent.span:
                begin = min(begin, i)
        begin = max(begin, 0)
        line = starts[begin] if begin < len(starts) and starts[begin] < first else 0
        stable = first + inserted
        above = self._end_above(begin)
        cut: list[tuple[int, Extent, str]] = []
        stop = len(starts)
        while True:
            line = next_code(lines, line)
            doc = comment_run(lines, line, above) if line < len(lines) else ""
            if line >= stable:
                old = bisect_left(starts, line - delta, begin)
                at_end = line >= len(lines) and old >= len(starts)
                if at_end or (old < len(starts) and starts[old] == line - delta and self.statements[old].doc == doc):
                    stop = old
                    break
            if line >= len(lines):
                break
            found = _extent(lines, line)
            cut.append((line, found, doc))
            line = above = found.end
        return self._splice(begin, stop, cut, delta)

    def _end_above(self, i: int) -> int:
        """The line behind the statement before number `i`."""
        return self._starts[i - 1] + self._heights[i - 1] if i > 0 else 0

    def _splice(self, begin: int, stop: int, cut: list[tuple[int, Extent, str]], delta: int) -> ChangeSet:
        """Put what was cut in place of the old statements `begin` … `stop`, keeping what is the same."""
        old = self._records[begin:stop]
        before = {record.statement.uid: record.statement for record in old}
        order = list(before)
        records = self._matched(old, cut)
        changed: list[int] = []
        added: list[int] = []
        for record in records:
            uid = record.statement.uid
            if uid not in before:
                added.append(uid)
            elif before.pop(uid) is not record.statement:
                changed.append(uid)
        removed = tuple(before)
        for uid in removed:
            self._places.pop(uid, None)
            self._far.discard(uid)
        self._records[begin:stop] = records
        self.statements[begin:stop] = [record.statement for record in records]
        starts = [line for line, _, _ in cut]
        heights = [found.end - line for line, found, _ in cut]
        if delta or starts != self._starts[begin:stop] or heights != self._heights[begin:stop]:
            if self._places_shared:
                self._starts, self._heights = self._starts.copy(), self._heights.copy()
                self._places_shared = False
            self._starts[begin:stop] = starts
            self._heights[begin:stop] = heights
        if delta:
            tail = begin + len(cut)
            self._starts[tail:] = [line + delta for line in self._starts[tail:]]
        for (_, found, _), record in zip(cut, records, strict=True):
            # The same text has the same layout, wherever it stands now.
            found.aligned = record.extent.aligned
            record.extent = found
            if found.reach > found.end:
                self._far.add(record.statement.uid)
            else:
                self._far.discard(record.statement.uid)
        if self._index is not None and [record.statement.uid for record in records] != order:
            self._reindex(begin, records, removed, len(records) == len(old))
        return ChangeSet(removed, tuple(added), tuple(changed))

    def _reindex(self, begin: int, records: list[_Record], removed: tuple[int, ...], same_count: bool) -> None:
        if not same_count or self._index is None:
            self._index = None
            return
        if self._index_shared:
            self._index = self._index.copy()
            self._index_shared = False
        for uid in removed:
            del self._index[uid]
        for i, record in enumerate(records, begin):
            self._index[record.statement.uid] = i

    def _matched(self, old: list[_Record], cut: list[tuple[int, Extent, str]]) -> list[_Record]:
        """Records for what was cut: an old one where the text is the same, old uids where the header is."""
        same: dict[tuple[str, ...], deque[_Record]] = {}
        for record in old:
            same.setdefault(record.lines, deque()).append(record)
        texts = [tuple(self.lines[line : found.end]) for line, found, _ in cut]
        result: list[_Record | None] = []
        for (_, _, doc), text in zip(cut, texts, strict=True):
            queue = same.get(text)
            kept = queue.popleft() if queue else None
            if kept is not None and kept.statement.doc != doc:
                kept.statement = replace(kept.statement, doc=doc)
            result.append(kept)
        left = [record for queue in same.values() for record in queue]
        by_header: dict[str, deque[_Record]] = {}
        for record in left:
            by_header.setdefault(record.statement.header.unit.text, deque()).append(record)
        # a statement whose header alone is edited keeps its uid, so that its lines keep theirs
        edited = left[0] if len(left) == 1 and result.count(None) == 1 else None
        finished: list[_Record] = []
        for (_, found, doc), text, kept in zip(cut, texts, result, strict=True):
            if kept is None:
                kept = self._record(found, text, doc, by_header, edited)
            finished.append(kept)
        return finished

    def _record(
        self,
        found: Extent,
        text: tuple[str, ...],
        doc: str,
        by_header: dict[str, deque[_Record]],
        edited: _Record | None,
    ) -> _Record:
        """The record of one statement; where reading it fails, one that says so."""
        try:
            if found.failure is not None:
                raise found.failure
            tree = block_tree(self.lines, found)
            queue = by_header.get(unit_text(self.lines, tree))
            return self._built(tree, found, text, doc, queue.popleft() if queue else edited)
        except Exception as error:
            self._serial += 1
            uid, unit = self._serial << SERIAL_BITS, failed_unit("\n".join(text), error)
            found.aligned = False
            return _Record(Statement(Placed(uid, 0, 0, unit, ()), doc, ()), text, found, 1)

    def _built(self, tree: Block, found: Extent, text: tuple[str, ...], doc: str, old: _Record | None) -> _Record:
        """Parse the units of a block and give each its uid: that of an old unit of the same text, or a new one."""
        if old is None:
            self._serial += 1
            pool = UidPool(self._serial << SERIAL_BITS, 1, ())
        else:
            pool = UidPool(old.statement.uid, old.counter, tuple(units_of(old.statement))[1:])
        problems: list[tuple[int, SyntaxProblem]] = []
        placed = place_block(self.lines, tree, tree.line.first, pool, problems)
        statement = with_observed_names(Statement(placed, doc, tuple(problems)))
        return _Record(statement, text, found, pool.counter)

    # ---------------------------------------------------------------- one line of a long block

    def _replace_line(self, line: int, old: str) -> ChangeSet | None:
        """The quick way for an edit inside one line of a block: parse that line alone.  None where more changed."""
        i = self.index_at(line)
        if i < 0 or line >= self._starts[i] + self._heights[i] or self._far:
            return None
        record, top = self._records[i], self._starts[i]
        statement = record.statement
        if not record.extent.aligned:
            return None
        pool = UidPool(statement.uid, record.counter, ())
        try:
            k = same_structure(self.lines, record.extent, top, line, old)
            if k is None:
                return None
            record.statement = with_observed_names(replace_line(self.lines, statement, record.extent, k, top, pool))
        except Exception:
            return None  # cutting the statement anew says what is wrong, and where
        record.counter = pool.counter
        row = line - top
        record.lines = (*record.lines[:row], self.lines[line], *record.lines[row + 1 :])
        self.statements[i] = record.statement
        return ChangeSet((), (), () if record.statement is statement else (statement.uid,))


def _extent(lines: Sequence[str], i: int) -> Extent:
    """The statement that starts with the code line `i`; where finding its end fails, all up to the next line with a
    letter in its first column."""
    try:
        return extent(lines, i)
    except Exception as error:
        starts = (at for at in range(i + 1, len(lines)) if lines[at][:1].isalpha() or lines[at][:1] == "_")
        end = next(starts, len(lines))
        return Extent("statement", [Logical(i, end - 1, shape(""))], end, end, failure=error)
