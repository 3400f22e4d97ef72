"""Canonical layout of a whole text: comments kept, meaning unchanged, damaged statements left as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple, cast

from qvr_core.syntax import tree
from qvr_core.syntax.cutter import BLOCKS
from qvr_core.syntax.layout import shape
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.printer import to_lines, to_text
from qvr_core.syntax.source import Cursor, Range
from qvr_core.syntax.statements import Document, Layout
from qvr_core.syntax.tree import Placed, Statement

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
    for chunk in format_chunks(layout):
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


def format_chunks(layout: Layout) -> list[Chunk]:
    """The whole text as gaps and statements in turn, each with its canonical lines."""
    statements = layout.statements
    printed = _aligned(layout)
    chunks: list[Chunk] = []
    above = 0
    previous: Statement | None = None
    for statement, lines in zip(statements, printed, strict=True):
        first, last = layout.start_line(statement.uid), layout.end_line(statement.uid)
        chunks.append(Chunk(above, first, _gap(layout.lines[above:first], previous, statement)))
        chunks.append(Chunk(first, last, lines))
        above, previous = last, statement
    # A line break at the end of the text makes one more, empty line.
    end = len(layout.lines) - (layout.lines[-1] == "" and len(layout.lines) > above)
    chunks.append(Chunk(above, end, _gap(layout.lines[above:end], previous, None)))
    return _with_mark(layout, chunks)


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


def is_damaged(statement: Statement) -> bool:
    """Whether a statement has a syntax error: the formatter then leaves it as it is."""
    if any(problem.severity == "error" for _, problem in statement.problems):
        return True
    return any(
        placed.unit.node is None or any(problem.severity == "error" for problem in placed.unit.problems)
        for placed in units_of(statement)
    )


def _formatted(layout: Layout, statement: Statement) -> list[str]:
    first, last = layout.start_line(statement.uid), layout.end_line(statement.uid)
    old = layout.lines[first:last]
    if is_damaged(statement):
        return list(old)
    new = _Printer(old, statement).lines()
    # Formatting must not change what a text means: this is checked, not only intended.
    return new if _same_meaning(statement, new) else list(old)


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
            if field.name not in ("span", "operators", "operator_span", "colon")
        )
    return bool(left == right)


def _same_items(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    return len(left) == len(right) and all(map(same_tree, left, right))


def _meaning(node: Any) -> Any:
    return None if isinstance(node, tree.Options) and not node.items else node


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


# ---------------------------------------------------------------- alignment


@dataclass(slots=True)
class _Row:
    """A one-line declaration of a run, cut where its columns may be aligned."""

    number: int
    parts: list[str]
    padded: list[int]


def _aligned(layout: Layout) -> list[list[str]]:
    """Canonical lines of every statement; a run whose `:` and `->` stand in columns keeps its columns.

    A run is aligned where all its lines but at most one agree, so that an edit in one line re-aligns it instead of
    dissolving it, and a run that nobody aligned stays as it is.
    """
    printed = [_formatted(layout, statement) for statement in layout.statements]
    run: list[int] = []
    for i, statement in enumerate(layout.statements):
        if run and not (_alignable(layout, statement, printed[i]) and _follows(layout, run[-1], i)):
            _align(layout, run, printed)
            run = []
        if _alignable(layout, statement, printed[i]):
            run.append(i)
    _align(layout, run, printed)
    return printed


def _alignable(layout: Layout, statement: Statement, lines: list[str]) -> bool:
    node = statement.header.unit.node
    one_line = layout.end_line(statement.uid) - layout.start_line(statement.uid) == 1 == len(lines)
    return one_line and isinstance(node, (tree.ObjectDecl, tree.MorphismDecl)) and not is_damaged(statement)


def _follows(layout: Layout, i: int, j: int) -> bool:
    """Whether statement `j` stands directly under statement `i` and is of its sort."""
    upper, lower = layout.statements[i], layout.statements[j]
    adjacent = layout.end_line(upper.uid) == layout.start_line(lower.uid)
    return adjacent and type(upper.header.unit.node) is type(lower.header.unit.node)


def _align(layout: Layout, run: list[int], printed: list[list[str]]) -> None:
    if len(run) < 2:
        return
    nodes: list[Any] = [layout.statements[i].header.unit.node for i in run]
    old = [layout.lines[layout.start_line(layout.statements[i].uid)] for i in run]
    heads = [printed[i][0].split(" : ", 1)[0] for i in run]
    rest = [printed[i][0].split(" : ", 1)[1] for i in run]
    if _in_columns([(line.find(":"), len(line[: line.find(":")].rstrip()) + 1) for line in old]):
        width = max(map(len, heads))
        heads = [head.ljust(width) for head in heads]
    if isinstance(nodes[0], tree.MorphismDecl):
        arrows = [_arrow_column(layout, i) for i in run]
        if _in_columns(arrows):
            domains = [to_text(node.domain) for node in nodes]
            width = max(map(len, domains))
            rest = [d.ljust(width) + text[len(d) :] for d, text in zip(domains, rest, strict=True)]
    for i, head, text in zip(run, heads, rest, strict=True):
        printed[i] = [f"{head} : {text}"]


def _arrow_column(layout: Layout, i: int) -> tuple[int, int]:
    """Where the arrow of a declaration stands, and where it would stand without padding."""
    placed = layout.statements[i].header
    node: Any = placed.unit.node
    end = placed.column + node.domain.span.end
    line = layout.lines[layout.start_line(placed.uid)]
    return line.find("->", end), end + 1


def _in_columns(places: list[tuple[int, int]]) -> bool:
    """Whether places were aligned: all but at most one in one column, and some moved there by padding."""
    column, count = Counter([place for place, _ in places]).most_common(1)[0]
    agree = count >= max(len(places) - 1, 2)
    return agree and any(place == column and place > least for place, least in places)


def indentation_below(layout: Layout, line: int) -> int:
    """The indentation that a new line under `line` should have."""
    while line >= 0 and not shape(layout.lines[line]).code:
        line -= 1
    if line < 0:
        return 0
    found = shape(layout.lines[line])
    statement = layout.statement_at(line)
    if statement is None or found.word == "return":
        return 0
    if found.opens or found.word in ("marginalize", "lexicon"):
        return found.width + STEP
    if found.word in BLOCKS and found.width == 0:
        return STEP
    return found.width if found.width else 0
