"""Statements of a snapshot by place and by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qvr_core.syntax.source import Cursor
from qvr_core.syntax.tree import Statement

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


def statement_before(snapshot: Snapshot, cursor: Cursor) -> Statement | None:
    """The last statement that begins at or above the cursor's line."""
    index = snapshot.layout.index_at(cursor.line)
    return snapshot.statements[index] if index >= 0 else None


def statements_between(snapshot: Snapshot, first: int, last: int) -> Sequence[Statement]:
    """The statements that have code on the lines from `first` to `last`, and the one that begins above them."""
    start = max(0, snapshot.layout.index_at(first))
    return snapshot.statements[start : snapshot.layout.index_at(last) + 1]


def statement_named(snapshot: Snapshot, name: str) -> Statement | None:
    """The statement that declares a name; the first one where several do."""
    uid = snapshot.owners.get(name)
    if uid is None:
        return None
    try:
        return snapshot.layout.statement_of(uid)
    except KeyError:
        return None


def first_line(snapshot: Snapshot, cursor: Cursor) -> int:
    """The first line of the statement at a cursor, the comment that documents it included."""
    statement = snapshot.statement_at(cursor)
    line = snapshot.layout.start_line(statement.uid) if statement is not None else cursor.line
    while line > 0 and snapshot.lines[line - 1].startswith("#"):
        line -= 1
    return line
