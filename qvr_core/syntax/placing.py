"""Units at their places: which uid each gets, and how one line of a block is replaced."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from qvr_core.syntax.cutter import Block, Extent, start_symbol, text_of, unit_text
from qvr_core.syntax.layout import ITEM_WORDS, Logical, logical_line, shape
from qvr_core.syntax.mistakes.openers import LOOPS
from qvr_core.syntax.tree.units import Placed, Statement, SyntaxProblem, Unit
from qvr_core.syntax.units import parse_unit

# A unit's uid is its statement's serial number in the high bits and a number of its own in the low ones, so that the
# statement of any unit is found without a table.
SERIAL_BITS = 32


def statement_uid(uid: int) -> int:
    """The uid of the statement that the unit `uid` belongs to."""
    return uid >> SERIAL_BITS << SERIAL_BITS


def units_of(statement: Statement) -> Iterator[Placed[Any]]:
    """The header and all lines of its blocks, in the order of the text."""
    yield statement.header
    for line in statement.header.children:
        if not line.children:
            yield line
            continue
        pending = [line]
        while pending:
            placed = pending.pop()
            yield placed
            pending.extend(reversed(placed.children))


PLACE_PROBLEMS = frozenset({"stray-indent", "bad-dedent", "misplaced-return"})


class UidPool:
    """Hands out uids for the units of one statement."""

    def __init__(self, header: int, counter: int, old: tuple[Placed[Any], ...]) -> None:
        self.header = header
        self.counter = counter
        self.free: dict[str, deque[int]] = {}
        for placed in old:
            self.free.setdefault(placed.unit.text, deque()).append(placed.uid)

    def uid(self, unit: Unit[Any], is_header: bool) -> int:
        if is_header:
            return self.header
        queue = self.free.get(unit.text)
        if queue:
            return queue.popleft()
        self.counter += 1
        return self.header | (self.counter - 1)


def place_block(
    lines: Sequence[str], block: Block, top: int, pool: UidPool, problems: list[tuple[int, SyntaxProblem]]
) -> Placed[Any]:
    """Parse the units of a block, whose statement starts at line `top`, and give each its uid.

    The layout's problems are added to `problems`, each with the uid that its span counts from.
    """
    unit = parse_unit(block.start, unit_text(lines, block))
    uid = pool.uid(unit, block.line.first == top)
    if block.problems:
        unit, layout = _one_problem(unit, block.problems)
        problems += [(uid, problem) for problem in layout]
    below = () if block.start == "step" and block.line.shape.word in LOOPS else block.children
    children = tuple([place_block(lines, child, top, pool, problems) for child in below])
    return Placed(uid, block.line.first - top, block.line.shape.column, unit, children)


def _one_problem(unit: Unit[Any], layout: list[SyntaxProblem]) -> tuple[Unit[Any], list[SyntaxProblem]]:
    """One mistake is one problem: a line that cannot be read is not also blamed for its place, or the reverse."""
    if not any(problem.severity == "error" for problem in unit.problems):
        return unit, layout
    codes = {problem.code for problem in layout}
    if unit.node is None and "stray-indent" in codes:
        return replace(unit, problems=()), layout
    left = [problem for problem in layout if problem.code not in PLACE_PROBLEMS]
    return (replace(unit, node=None) if "misplaced-return" in codes else unit), left


def same_structure(lines: Sequence[str], found: Extent, top: int, line: int, old: str) -> int | None:
    """The number of the logical line whose text alone an edit of the physical line `line` changed.

    `found` is the extent of the statement, which now starts at line `top`, before the edit.  None where more than that
    text may have changed: the header, the indentation, the first word, what continues what.
    """
    shift = top - found.lines[0].first
    k = bisect_right(found.lines, line - shift, key=_first_line) - 1
    if k < 1 or line - shift > found.lines[k].last:
        return None
    before, after = shape(old), shape(lines[line])
    if (before.code, before.column, before.width, before.word) != (after.code, after.column, after.width, after.word):
        return None
    if not after.code or before.tabs or after.tabs:
        return None
    if old.startswith('"', before.column) != lines[line].startswith('"', after.column):
        return None
    kind = found.kind if found.kind != "unknown" else "program"
    if kind == "deduction" and after.word not in ITEM_WORDS and lines[line][after.column] != '"':
        return None
    for n in (k - 1, k):
        logical = found.lines[n]
        header_kind = kind if n or kind != "unknown" else "program"
        if logical_line(lines, logical.first + shift, header_kind).last != logical.last + shift:
            return None
    return k


def _first_line(logical: Logical) -> int:
    return logical.first


def replace_line(
    lines: Sequence[str], statement: Statement, found: Extent, k: int, top: int, pool: UidPool
) -> Statement:
    """The statement with its logical line number `k` parsed anew; the same object where the unit's text is the same."""
    logical = found.lines[k]
    row = logical.first - found.lines[0].first
    start = start_symbol(found.kind if found.kind != "unknown" else "program", lines, top + row)
    text = text_of(lines, top + row, top + logical.last - found.lines[0].first, start)

    def rebuilt(placed: Placed[Any]) -> Placed[Any]:
        if placed.line == row:
            if placed.unit.text == text:
                return placed
            unit = parse_unit(start, text)
            return replace(placed, uid=pool.uid(unit, False), unit=unit)
        i = bisect_right(placed.children, row, key=_line) - 1
        child = rebuilt(placed.children[i])
        if child is placed.children[i]:
            return placed
        return replace(placed, children=(*placed.children[:i], child, *placed.children[i + 1 :]))

    header = rebuilt(statement.header)
    return statement if header is statement.header else replace(statement, header=header)


def _line(placed: Placed[Any]) -> int:
    return placed.line
