"""Quick fixes: what diagnostics bring along."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Action, TextEdit
from qvr_core.ide.edits.repairs import repairs
from qvr_core.semantics.types.diagnostics import Severity
from qvr_core.syntax.source import Range

if TYPE_CHECKING:
    from qvr_core.analysis import LocatedDiagnostic, LocatedFix, Snapshot


def quick_fixes(snapshot: Snapshot, stretch: Range) -> list[Action]:
    """The fixes of every diagnostic that touches a stretch of text, worst first; then those of others that would change
    the stretch: a width is fixed where it is declared, too."""
    here = touching(snapshot, stretch)
    known = {id(found) for found in here}
    fixes = [action for found in here for action in actions_of(found)]
    for found in snapshot.diagnostics():
        if found.severity is Severity.ERROR and id(found) not in known:
            fixes += [action for action in actions_of(found) if any(_replaces(each, stretch) for each in action.edits)]
    return fixes


def attempts(snapshot: Snapshot, stretch: Range) -> list[Action]:
    """What may fix the mismatches at a stretch that bring no fix along: each is tried on the text first, by
    `removes_problem`."""
    return [action for found in touching(snapshot, stretch) for action in repairs(snapshot, found)]


def touching(snapshot: Snapshot, stretch: Range) -> list[LocatedDiagnostic]:
    found = [found for found in snapshot.diagnostics() if _touch(found.range, stretch)]
    return sorted(found, key=lambda found: found.code.severity.value)


def actions_of(found: LocatedDiagnostic) -> list[Action]:
    """The fixes of one diagnostic."""
    return [
        Action(fix.title, "quickfix", edits_of(fix), fix.preferred, found.code.name, found.range) for fix in found.fixes
    ]


def edits_of(fix: LocatedFix) -> tuple[TextEdit, ...]:
    return tuple(TextEdit(edit.range, edit.text) for edit in fix.edits)


def removes_problem(before: Snapshot, after: Snapshot, action: Action) -> bool:
    """Whether a fix leaves one problem less and no new one.  A mistake may hide another, and of several ways out of it
    not each leads out: what would only change one problem into another is not offered."""
    old, new = _counted(before), _counted(after)
    if new - old:
        return False
    if new.total() < old.total():
        return True
    return _hints(after)[action.code] < _hints(before)[action.code]


def harmless(before: Snapshot, after: Snapshot) -> bool:
    """Whether a refactoring leaves no problem that was not there."""
    return not _counted(after) - _counted(before)


def _counted(snapshot: Snapshot) -> Counter[str]:
    return Counter(item.code.name for item in snapshot.diagnostics() if item.severity is not Severity.HINT)


def _hints(snapshot: Snapshot) -> Counter[str]:
    return Counter(item.code.name for item in snapshot.diagnostics() if item.severity is Severity.HINT)


def fix_all(snapshot: Snapshot) -> tuple[TextEdit, ...]:
    """The preferred fixes of all diagnostics; of two that overlap, the first."""
    chosen: list[TextEdit] = []
    for found in sorted(snapshot.diagnostics(), key=lambda found: found.code.severity.value):
        if found.code.severity is Severity.HINT and found.code.unnecessary:
            continue  # what is unused may be about to be used
        fix = next((fix for fix in found.fixes if fix.preferred), None)
        edits = edits_of(fix) if fix is not None else ()
        if not any(_overlap(edit.range, other.range) for edit in edits for other in chosen):
            chosen += edits
    return tuple(sorted(set(chosen), key=lambda edit: edit.range))


def _touch(one: Range, other: Range) -> bool:
    return one.start <= other.end and other.start <= one.end


def _replaces(edit: TextEdit, stretch: Range) -> bool:
    return edit.range.start < edit.range.end and _touch(edit.range, stretch)


def _overlap(one: Range, other: Range) -> bool:
    return one == other or (one.start < other.end and other.start < one.end)
