"""Canonical layout of a whole text: comments kept, meaning unchanged, damaged statements left as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple, cast

from qvr_core.syntax.alignment import align_runs, run_around
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.source import Cursor, Range
from qvr_core.syntax.statements import Document, Layout, is_damaged
from qvr_core.syntax.tree.options import Options
from qvr_core.syntax.tree.units import Placed, Statement
from qvr_core.syntax.tree_to_text import to_lines

STEP = 4
MOST_BLANK_LINES = 2


class Chunk(NamedTuple):
    """Old lines `first` … `last` (exclusive) and what they become."""

    first: int
    last: int
    lines: list[str]


def format_text(text: str) -> str:
    """The text in canonical layout, with the line terminator of its first line."""
    document = Document(text)
    newline = document.source.newline
    return "".join([line + newline for chunk in format_chunks(document) for line in chunk.lines])


def format_edits(layout: Layout, first: int = 0, last: int | None = None) -> list[tuple[Range, str]]:
    """Edits that bring the statements and gaps that touch lines `first` … `last` (inclusive) into canonical layout.

    Their texts use `\\n`; each edit covers only lines that differ.
    """
    edits: list[tuple[Range, str]] = []
    end = len(layout.lines)
    first = min(first, end - 1)
    for chunk in format_chunks(layout, first, last):
        if (
            chunk.last < first
            or (chunk.last == first and chunk.first < first)
            or (last is not None and chunk.first > last)
        ):
            continue
        edit = _difference(layout.lines, chunk)
        if edit is not None:
            edits.append(edit)
    unfinished = layout.lines[-1] != "" and (last is None or last >= end - 1)
    if unfinished and not (edits and edits[-1][0].end.line >= end):
        edits.append((Range(Cursor(end, 0), Cursor(end, 0)), ""))
    return [_inside(layout.lines, place, text) for place, text in edits]


def _difference(lines: Sequence[str], chunk: Chunk) -> tuple[Range, str] | None:
    """One edit for the lines of a chunk between the first and the last that differ."""
    old, new = lines[chunk.first : chunk.last], chunk.lines
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    if start == len(old) == len(new):
        return None
    text = "".join([line + "\n" for line in new[start : len(new) - end]])
    return Range(Cursor(chunk.first + start, 0), Cursor(chunk.last - end, 0)), text


def _inside(lines: Sequence[str], place: Range, text: str) -> tuple[Range, str]:
    """The edit for a text whose last line has no line break: what would start behind it starts at its end."""
    end = Cursor(len(lines) - 1, len(lines[-1]))
    if place.start.line >= len(lines):
        return Range(end, end), "\n" + text
    return (Range(place.start, end) if place.end.line >= len(lines) else place), text


# ---------------------------------------------------------------- statements and what lies between them


def format_chunks(layout: Layout, first: int = 0, last: int | None = None) -> list[Chunk]:
    """Gaps and statements in turn, each with its canonical lines: all that touch lines `first` … `last`."""
    statements = layout.statements
    low = max(layout.index_at(first), 0)
    high = len(statements) if last is None else layout.index_at(last) + 2
    low, high = run_around(layout, low, high)
    printed = {i: _formatted(layout, i) for i in range(low, high)}
    align_runs(layout, printed)
    chunks: list[Chunk] = []
    above, previous = 0, None
    if low > 0:
        previous = statements[low - 1]
        above = layout.end_line(previous.uid)
    for i, lines in printed.items():
        statement = statements[i]
        top, end = layout.start_line(statement.uid), layout.end_line(statement.uid)
        chunks.append(Chunk(above, top, _gap(layout.lines[above:top], previous, statement)))
        chunks.append(Chunk(top, end, lines))
        above, previous = end, statement
    if high == len(statements):
        # A line break at the end of the text makes one more, empty line.
        end = len(layout.lines) - (layout.lines[-1] == "" and len(layout.lines) > above)
        chunks.append(Chunk(above, end, _gap(layout.lines[above:end], previous, None)))
    return _with_mark(layout, chunks) if low == 0 else chunks


def _with_mark(layout: Layout, chunks: list[Chunk]) -> list[Chunk]:
    """The chunks with the text's byte order mark where it was."""
    first = next((chunk for chunk in chunks if chunk.lines), None)
    if first is not None and layout.lines[0].startswith("\ufeff") and not first.lines[0].startswith("\ufeff"):
        first.lines[0] = "\ufeff" + first.lines[0]
    return chunks


def _gap(lines: Sequence[str], above: Statement | None, below: Statement | None) -> list[str]:
    """Comments and blank lines between two statements; at least one blank line around a block."""
    result: list[str] = []
    in_block = above is not None and bool(above.header.children)
    # A comment that is indented under a block belongs to it.
    for line in lines:
        text = line.strip("\ufeff \t\f\v\u00a0")
        if text and line[:1] not in " \t":
            in_block = False
        if text:
            result.append(" " * STEP * in_block + text)
        elif result[-MOST_BLANK_LINES:] != [""] * MOST_BLANK_LINES:
            result.append("")
    if above is None:
        while result and not result[0]:
            result.pop(0)
    if below is None:
        while result and not result[-1]:
            result.pop()
    elif above is not None and "" not in result and (_is_block(above) or _is_block(below)):
        own = next((i for i, text in enumerate(result) if not text.startswith(" ")), len(result))
        result.insert(own, "")
    return result


def _is_block(statement: Statement) -> bool:
    return bool(statement.header.children)


def _formatted(layout: Layout, number: int) -> list[str]:
    statement = layout.statements[number]
    first, last = layout.start_line(statement.uid), layout.end_line(statement.uid)
    old = layout.lines[first:last]
    if is_damaged(statement) or _would_swallow(layout, number):
        return list(old)
    new = _Printer(old, statement).lines()
    # Formatting must not change what a text means: this is checked, not only intended.
    return new if _same_meaning(statement, new) else list(old)


def _would_swallow(layout: Layout, number: int) -> bool:
    """True where an unindented body, once indented, would take stray indented lines behind it in."""
    below = layout.statements[number + 1 : number + 2]
    return any(problem.code == "unindented-body" for _, problem in layout.statements[number].problems) and any(
        layout.lines[layout.start_line(statement.uid)][:1] in (" ", "\t") for statement in below
    )


def _same_meaning(statement: Statement, new: list[str]) -> bool:
    again = Document("\n".join(new))
    if len(again.statements) != 1:
        return False
    pairs = zip(units_of(statement), units_of(again.statements[0]), strict=False)
    return _skeleton(statement.header) == _skeleton(again.statements[0].header) and all(
        same_tree(old.unit.node, printed.unit.node) for old, printed in pairs
    )


def _skeleton(placed: Placed[Any]) -> Any:
    return [_skeleton(child) for child in placed.children]


def same_tree(left: Any, right: Any) -> bool:
    """Whether two nodes are equal but for their spans and what has no meaning (a header's colon, empty options)."""
    left, right = _meaning(left), _meaning(right)
    if type(left) is not type(right):
        return False
    if isinstance(left, tuple):
        return _same_items(cast(tuple[Any, ...], left), right)
    if is_dataclass(left):
        return all(
            same_tree(getattr(left, field.name), getattr(right, field.name))
            for field in fields(left)
            if field.name not in ("span", "operators", "operator_span", "colon", "bracket")
        )
    return bool(left == right)


def _same_items(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    return len(left) == len(right) and all(map(same_tree, left, right))


def _meaning(node: Any) -> Any:
    return None if isinstance(node, Options) and not node.items else node


class _Printer:
    """Prints one sound statement: its units, and the comments and blank lines between them."""

    def __init__(self, old: Sequence[str], statement: Statement) -> None:
        self.old = old
        self.units = list(units_of(statement))
        self.indents = _indents(statement)

    def lines(self) -> list[str]:
        result: list[str] = []
        below = 0
        for i, placed in enumerate(self.units):
            indent = self.indents[i]
            result += self._between(below, placed.line, indent)
            rows = placed.unit.text.count("\n") + 1
            result += self._unit(placed, indent)
            below = placed.line + rows
        return result

    def _between(self, first: int, last: int, indent: int) -> list[str]:
        result: list[str] = []
        for line in self.old[first:last]:
            text = line.strip()
            if text:
                result.append(" " * indent + text)
            elif result[-1:] != [""]:
                result.append("")
        return result

    def _unit(self, placed: Placed[Any], indent: int) -> list[str]:
        rows = placed.unit.text.split("\n")
        inner = rows if len(rows) == 1 else [row for row in rows[1:] if not row.strip() or row.lstrip()[0] == "#"]
        if len(rows) > 1 and (inner or any("#" in row for row in rows)):
            lines = self._shifted(placed, rows, indent)
        else:
            lines = [line.rstrip() for line in to_lines(placed.unit.node, indent)]
            lines[0] = " " * indent + lines[0]
        comment = self._trailing_comment(placed, rows)
        if comment:
            lines[-1] += f"  {comment}"
        return lines

    def _shifted(self, placed: Placed[Any], rows: list[str], indent: int) -> list[str]:
        """The unit as it is, moved to its new column: comments stand between its lines."""
        shift = indent - placed.column
        result = [" " * indent + rows[0].rstrip()]
        for row in rows[1:]:
            text = row.strip()
            width = max(len(row) - len(row.lstrip()) + shift, indent)
            result.append(" " * width + text if text else "")
        return result

    def _trailing_comment(self, placed: Placed[Any], rows: list[str]) -> str:
        line = self.old[placed.line + len(rows) - 1]
        column = len(rows[-1]) + (placed.column if len(rows) == 1 else 0)
        return line[column:].strip()


def _indents(statement: Statement) -> list[int]:
    found: list[int] = []

    def visit(placed: Placed[Any], depth: int) -> None:
        found.append(depth * STEP)
        for child in placed.children:
            visit(child, depth + 1)

    visit(statement.header, 0)
    return found
