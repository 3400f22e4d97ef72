"""Data that a program reads without a `data` line: what its uses say of them, and the line that says it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Action, InlayHint, TextEdit
from qvr_core.ide.view import model_of
from qvr_core.semantics.types.data_text import data_text
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.programs import DataName
from qvr_core.semantics.types.spaces import Unknown
from qvr_core.syntax.source import Cursor, Range
from qvr_core.syntax.tree.declarations import ProgramHeader
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.units import Statement

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


def undeclared_hints(snapshot: Snapshot, statement: Statement) -> Iterator[InlayHint]:
    """The type of each inferred data name behind its first use; accepting it writes its `data` line."""
    for item, text, place, edit in _undeclared(snapshot, statement):
        why = f"What the uses of `{item.name}` say. Accept the hint to declare it."
        yield InlayHint(place.end, f" : {text}", "type", why, (edit,))


def declare_actions(snapshot: Snapshot, stretch: Range) -> Iterator[Action]:
    """`Declare` for each inferred data name whose first use touches a stretch of text."""
    for statement in snapshot.statements:
        for item, text, place, edit in _undeclared(snapshot, statement):
            if place.start <= stretch.end and stretch.start <= place.end:
                yield Action(f"Declare `data {item.name} : {text}`", "quickfix", (edit,))


def _undeclared(snapshot: Snapshot, statement: Statement) -> Iterator[tuple[DataName, str, Range, TextEdit]]:
    """(data name, its type, its first use, the edit that declares it)."""
    header = statement.header.unit.node
    program = model_of(snapshot).programs.get(header.name.text) if isinstance(header, ProgramHeader) else None
    if program is None or program.template or not statement.header.children:
        return
    start = snapshot.range(Origin(statement.header.children[0].uid, Span(0, 0))).start
    for item in program.data:
        place = None if item.declared or not _said(item) else snapshot.find(item.origin)
        if place is not None:
            text = data_text(item.type, item.numbers, item.lengths)
            yield item, text, place, _line(start, f"data {item.name} : {text}")


def _said(item: DataName) -> bool:
    """Whether the uses say all of a type: every set by name, and what one element is."""
    kind = item.type
    known = kind.space is not None and not isinstance(kind.space, Unknown) and not kind.rows
    return known and bool(kind.indexed) and len(item.over) == len(kind.indexed)


def _line(start: Cursor, text: str) -> TextEdit:
    return TextEdit(Range(start, start), f"{text}\n{' ' * start.column}")
