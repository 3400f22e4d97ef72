"""The outline of a file, and the stretches of text that belong together: folding, growing selections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from qvr_core.ide.answers import DocumentSymbol
from qvr_core.ide.names import Occurrence, names_of
from qvr_core.ide.symbols import KINDS, binding_kind
from qvr_core.ide.view import arrow_of, model_of
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import Damaged
from qvr_core.semantics.types.model.file import ObjectModel, Replicated
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.source import Cursor, Range
from qvr_core.syntax.tree.arrows import ArrowRef
from qvr_core.syntax.tree.declarations import ExportDecl
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.units import Placed, Statement
from qvr_core.syntax.walk import walk

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


def outline(snapshot: Snapshot) -> tuple[DocumentSymbol, ...]:
    """Every declaration; programs hold their sites, deductions their rules."""
    return tuple(symbol for statement in snapshot.statements for symbol in statement_symbols(snapshot, statement))


def statement_symbols(snapshot: Snapshot, statement: Statement) -> Iterator[DocumentSymbol]:
    header = statement.header
    kind = KINDS.get(header.unit.keyword)
    if kind is None:
        return
    whole = statement_range(snapshot, statement)
    inside = (header,) if kind == "data type" else header.children
    children = tuple(child for placed in inside for child in _items(snapshot, placed))
    for occurrence in names_of(header.unit):
        if occurrence.part == "declare":
            place = snapshot.range(Origin(header.uid, occurrence.span))
            detail = declaration_detail(snapshot, occurrence.text)
            yield DocumentSymbol(occurrence.text, kind, detail, whole, place, children)


def _items(snapshot: Snapshot, placed: Placed[Any]) -> Iterator[DocumentSymbol]:
    whole = unit_range(snapshot, placed)
    children = tuple(child for inner in placed.children for child in _items(snapshot, inner))
    for occurrence in names_of(placed.unit):
        kind = _item_kind(occurrence)
        if kind:
            place = snapshot.range(Origin(placed.uid, occurrence.span))
            yield DocumentSymbol(occurrence.text, kind, occurrence.of, whole, place, children)
            children = ()


def _item_kind(occurrence: Occurrence) -> str:
    if occurrence.part == "bind":
        return binding_kind(occurrence)
    return occurrence.part if occurrence.part in ("rule", "operation", "constructor") else ""


def declaration_detail(snapshot: Snapshot, name: str) -> str:
    """The type of a declaration, in one short line."""
    node = snapshot.node(name)
    if isinstance(node, ObjectModel):
        return node.space.written
    if isinstance(node, Replicated):
        return declaration_detail(snapshot, node.copies[0]) if node.copies else ""
    arrow = arrow_of(snapshot, name)
    if arrow is None or isinstance(arrow, Damaged):
        return ""
    return f"{arrow.domain.written} {arrow.sort.value} {arrow.codomain.written}"


def unit_range(snapshot: Snapshot, placed: Placed[Any]) -> Range:
    """A unit with what stands below it, without blanks at its end."""
    start = snapshot.range(Origin(placed.uid, Span(0, 0))).start
    last = placed
    while last.children:
        last = last.children[-1]
    return Range(start, snapshot.range(Origin(last.uid, Span(0, len(last.unit.text.rstrip())))).end)


def statement_range(snapshot: Snapshot, statement: Statement) -> Range:
    return unit_range(snapshot, statement.header)


# ---------------------------------------------------------------- folding and selection


def folds(snapshot: Snapshot) -> list[tuple[int, int, str]]:
    """What may be folded: (first line, last line, '' or 'comment')."""
    found: list[tuple[int, int, str]] = []
    for statement in snapshot.statements:
        for placed in units_of(statement):
            if placed is statement.header or placed.children:
                whole = unit_range(snapshot, placed)
                if whole.end.line > whole.start.line:
                    found.append((whole.start.line, whole.end.line, ""))
    return sorted(found + list(_comment_runs(snapshot.lines)))


def _comment_runs(lines: Any) -> Iterator[tuple[int, int, str]]:
    first: int | None = None
    for number, line in enumerate((*lines, "")):
        if line.startswith("#"):
            first = number if first is None else first
        elif first is not None:
            if number - first > 1:
                yield first, number - 1, "comment"
            first = None


def selections(snapshot: Snapshot, cursor: Cursor) -> list[Range]:
    """Stretches around the cursor, smallest first: the name, what holds it, its unit, its statement, the file."""
    ranges: list[Range] = []
    place = snapshot.unit_at(cursor)
    if place is not None:
        statement, placed, offset = place
        spans = {occurrence.span for occurrence in names_of(placed.unit)} | {
            node.span for node in walk(placed.unit.node)
        }
        ranges += [snapshot.range(Origin(placed.uid, span)) for span in spans if span.start <= offset <= span.end]
        for above in _above(statement.header, placed):
            ranges.append(unit_range(snapshot, above))
    last = len(snapshot.lines) - 1
    ranges.append(Range(Cursor(0, 0), Cursor(last, len(snapshot.lines[last]))))
    return _nested(ranges)


def _nested(ranges: list[Range]) -> list[Range]:
    """The ranges that lie inside each other, smallest first."""
    chain: list[Range] = []
    for stretch in sorted(set(ranges), key=lambda r: (r.end.line - r.start.line, r.end.column - r.start.column)):
        if not chain or (stretch.start <= chain[-1].start and chain[-1].end <= stretch.end):
            chain.append(stretch)
    return chain


def _above(root: Placed[Any], wanted: Placed[Any]) -> list[Placed[Any]]:
    """The units around one, innermost first, itself included."""
    if root is wanted:
        return [root]
    for child in root.children:
        path = _above(child, wanted)
        if path:
            return [*path, root]
    return []


# ---------------------------------------------------------------- diagrams


def drawable_at(snapshot: Snapshot, cursor: Cursor) -> str | None:
    """What a diagram can show of the statement at the cursor; for an export, what it exports."""
    statement = snapshot.statement_at(cursor)
    if statement is None:
        return None
    node = statement.header.unit.node
    if isinstance(node, ExportDecl) and isinstance(node.value, ArrowRef):
        return node.value.name.text
    names = statement.header.unit.declares
    model = model_of(snapshot)
    if names and (names[0].text in model.lets or names[0].text in model.programs or names[0].text in model.arrows):
        return names[0].text
    return None
