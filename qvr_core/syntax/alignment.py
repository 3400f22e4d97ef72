"""Columns: runs of declarations whose `:` and `->` stand below each other.

A run is aligned where all its lines but at most one agree: an edit in one line then re-aligns it instead of dissolving
it, and a run that nobody aligned stays as it is.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from qvr_core.syntax.statements import Layout, is_damaged
from qvr_core.syntax.tree.declarations import MorphismDecl, ObjectDecl
from qvr_core.syntax.tree.units import Statement
from qvr_core.syntax.tree_to_text import to_text


def run_around(layout: Layout, low: int, high: int) -> tuple[int, int]:
    """Statements `low` … `high` (exclusive), widened to the runs that they belong to."""
    count = len(layout.statements)
    high = min(high, count)
    while 0 < low < count and _follows(layout, low - 1, low):
        low -= 1
    while 0 < high < count and _follows(layout, high - 1, high):
        high += 1
    return low, high


def align_runs(layout: Layout, printed: dict[int, list[str]]) -> None:
    """Put the columns of aligned runs into the canonical lines of consecutive statements."""
    run: list[int] = []
    for i, lines in printed.items():
        alignable = _alignable(layout, layout.statements[i], lines)
        if run and not (alignable and _follows(layout, run[-1], i)):
            _align(layout, run, printed)
            run = []
        if alignable:
            run.append(i)
    _align(layout, run, printed)


def _alignable(layout: Layout, statement: Statement, lines: list[str]) -> bool:
    node = statement.header.unit.node
    one_line = layout.end_line(statement.uid) - layout.start_line(statement.uid) == 1 == len(lines)
    if not one_line or not isinstance(node, (ObjectDecl, MorphismDecl)) or is_damaged(statement):
        return False
    # A statement that the formatter left as it was may hold a ` : ` elsewhere, in a string for one.
    _, _, names = lines[0].partition(" : ")[0].partition(" ")
    return names == ", ".join([name.text for name in node.names])


def _follows(layout: Layout, i: int, j: int) -> bool:
    """Whether statement `j` stands directly under statement `i` and is of its sort."""
    upper, lower = layout.statements[i], layout.statements[j]
    adjacent = layout.end_line(upper.uid) == layout.start_line(lower.uid)
    return adjacent and type(upper.header.unit.node) is type(lower.header.unit.node)


def _align(layout: Layout, run: list[int], printed: dict[int, list[str]]) -> None:
    if len(run) < 2:
        return
    nodes: list[Any] = [layout.statements[i].header.unit.node for i in run]
    old = [layout.lines[layout.start_line(layout.statements[i].uid)] for i in run]
    heads = [printed[i][0].split(" : ", 1)[0] for i in run]
    rest = [printed[i][0].split(" : ", 1)[1] for i in run]
    if _in_columns([(line.find(":"), len(line[: line.find(":")].rstrip()) + 1) for line in old]):
        width = max(map(len, heads))
        heads = [head.ljust(width) for head in heads]
    # Arrows can only stand in a column if the colons before them do.
    if isinstance(nodes[0], MorphismDecl) and len(set(map(len, heads))) == 1:
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
