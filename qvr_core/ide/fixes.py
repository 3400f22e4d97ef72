"""Quick fixes: the mends that diagnostics bring along, as edits of the text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.ide.answers import Action, TextEdit
from qvr_core.semantics.diagnostics import Edit, Fix, Severity
from qvr_core.syntax.source import Cursor, Range

if TYPE_CHECKING:
    from qvr_core.analysis import LocatedDiagnostic, Snapshot


def quick_fixes(snapshot: Snapshot, stretch: Range) -> list[Action]:
    """The fixes of every diagnostic that touches a stretch of text, worst first."""
    touching = [found for found in snapshot.diagnostics() if _touch(found.range, stretch)]
    touching.sort(key=lambda found: found.code.severity.value)
    return [action for found in touching for action in actions_of(snapshot, found)]


def actions_of(snapshot: Snapshot, found: LocatedDiagnostic) -> list[Action]:
    """The fixes of one diagnostic."""
    made: list[Action] = []
    for fix in found.fixes:
        edits = edits_of(snapshot, fix)
        if edits:
            made.append(Action(fix.title, "quickfix", edits, fix.preferred, found.code.name, found.range))
    return made


def fix_all(snapshot: Snapshot) -> tuple[TextEdit, ...]:
    """The preferred fixes of all diagnostics; of two that overlap, the first."""
    chosen: list[TextEdit] = []
    for found in sorted(snapshot.diagnostics(), key=lambda found: found.code.severity.value):
        if found.code.severity is Severity.HINT and found.code.unnecessary:
            continue  # what is unused may be about to be used
        fix = next((fix for fix in found.fixes if fix.preferred), None)
        edits = edits_of(snapshot, fix) if fix is not None else ()
        if not any(_overlap(edit.range, other.range) for edit in edits for other in chosen):
            chosen += edits
    return tuple(sorted(set(chosen), key=lambda edit: edit.range))


def edits_of(snapshot: Snapshot, fix: Fix) -> tuple[TextEdit, ...]:
    """A fix as edits of the text as it stands; none where a place in it is gone."""
    try:
        return tuple(_edit(snapshot, edit) for edit in fix.edits)
    except KeyError:
        return ()


def _edit(snapshot: Snapshot, edit: Edit) -> TextEdit:
    place = snapshot.range(edit.place)
    match edit.where:
        case "before":
            return TextEdit(Range(place.start, place.start), edit.text)
        case "after":
            return TextEdit(Range(place.end, place.end), edit.text)
        case "line-before":
            start = Cursor(first_line(snapshot, place.start), 0)
            return TextEdit(Range(start, start), edit.text.rstrip("\n") + "\n")
        case "line-after":
            line = last_line(snapshot, place.start)
            end = Cursor(line, len(snapshot.lines[line]))
            return TextEdit(Range(end, end), "\n" + edit.text.rstrip("\n"))
        case _:
            return TextEdit(place, edit.text)


def first_line(snapshot: Snapshot, cursor: Cursor) -> int:
    """The first line of the statement at a cursor, the comment that documents it included."""
    statement = snapshot.statement_at(cursor)
    line = snapshot.start_line(statement.uid) if statement is not None else cursor.line
    while line > 0 and snapshot.lines[line - 1].startswith("#"):
        line -= 1
    return line


def last_line(snapshot: Snapshot, cursor: Cursor) -> int:
    """The last line of the statement at a cursor."""
    statement = snapshot.statement_at(cursor)
    return snapshot.end_line(statement.uid) - 1 if statement is not None else cursor.line


def _touch(one: Range, other: Range) -> bool:
    return one.start <= other.end and other.start <= one.end


def _overlap(one: Range, other: Range) -> bool:
    if one.start == one.end or other.start == other.end:
        return one.start < other.end and other.start < one.end
    return one.start < other.end and other.start < one.end
