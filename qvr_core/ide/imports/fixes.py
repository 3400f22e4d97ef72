"""Names that nobody declares here, but another file does: the import that brings each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from posixpath import dirname, relpath
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Action, TextEdit
from qvr_core.ide.edits.fixes import touching
from qvr_core.ide.view import first_line
from qvr_core.semantics.modules.module import Import
from qvr_core.semantics.modules.paths import STD
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.syntax.source import Cursor, Range
from qvr_core.syntax.tree.names import Span

if TYPE_CHECKING:
    from qvr_core.analysis import LocatedDiagnostic, Snapshot

CODES = frozenset(("unknown-name", "unknown-family", "unknown-combinator"))
NAME = re.compile(r"[A-Za-z]\w*\Z")
MOST_FILES = 5
"""That are offered for one name."""

Texts = Iterable[tuple[str, str]]
"""Files that may be imported: location and text."""


def unknown_names(snapshot: Snapshot, stretch: Range) -> dict[str, LocatedDiagnostic]:
    """The names at a stretch of text that nobody declares, each with what says so."""
    found: dict[str, LocatedDiagnostic] = {}
    for each in touching(snapshot, stretch):
        start, end = each.range
        name = snapshot.lines[start.line][start.column : end.column] if start.line == end.line else ""
        if each.code.name in CODES and NAME.match(name):
            found.setdefault(name, each)
    return found


def import_actions(snapshot: Snapshot, unknown: dict[str, LocatedDiagnostic], files: Texts) -> Iterator[Action]:
    """The imports that would bring unknown names, nearest files first."""
    patterns = {name: declaration_of(name) for name in unknown}
    homes: dict[str, list[str]] = {name: [] for name in unknown}
    for location, text in files:
        for name, pattern in patterns.items():
            if location != snapshot.location and len(homes[name]) < MOST_FILES and pattern.search(text):
                homes[name].append(location)
    for name, locations in homes.items():
        for path, location in sorted((written_path(each, snapshot.location), each) for each in locations):
            if path is not None:
                yield _import_of(snapshot, name, path, location, unknown[name])


def declaration_of(name: str) -> re.Pattern[str]:
    """A line that declares a name."""
    several = rf"(?:\w+\s*,\s*)*{re.escape(name)}(?!\w)"
    return re.compile(
        r"^(?:object|morphism|let|define|program|def|family|transformation|encoder|decoder|data[ \t]+type)"
        rf"[ \t]+{several}",
        re.MULTILINE,
    )


def written_path(location: str, importer: str) -> str | None:
    """How a file is named by an import of another one; None where it cannot be."""
    if location.startswith(STD):
        return f"std/{location.removeprefix(STD)}"
    if importer.startswith(STD) or "://" in importer or location.startswith("/") != importer.startswith("/"):
        return None
    return relpath(location, dirname(importer) or ".")


def _import_of(snapshot: Snapshot, name: str, path: str, location: str, problem: LocatedDiagnostic) -> Action:
    held = [each for each in snapshot.table.imports if each.module is not None and each.module.location == location]
    for each in held:
        if each.decl.prefix is not None and each.decl.prefix.text in snapshot.table.prefixes:
            dotted = f"{each.decl.prefix.text}.{name}"
            return _action(f"Change to `{dotted}`", TextEdit(problem.range, dotted), problem)
    for each in held:
        if each.decl.items:
            end = _place(snapshot, each, each.decl.items[-1].span.end)
            edit = TextEdit(Range(end, end), f", {name}")
            return _action(f'Import `{name}` from "{path}" too', edit, problem)
    start = import_line(snapshot)
    edit = TextEdit(Range(start, start), f'from "{path}" import {name}\n')
    return _action(f'Import `{name}` from "{path}"', edit, problem)


def _action(title: str, edit: TextEdit, problem: LocatedDiagnostic) -> Action:
    return Action(title, "quickfix", (edit,), code=problem.code.name, at=problem.range)


def _place(snapshot: Snapshot, each: Import, offset: int) -> Cursor:
    return snapshot.range(Origin(each.uid, Span(offset, offset))).start


def import_line(snapshot: Snapshot) -> Cursor:
    """Where one more import goes: below the last one, else above the first statement and its comment."""
    uids = [each.uid for each in snapshot.table.imports]
    if uids:
        return Cursor(max(snapshot.layout.end_line(uid) for uid in uids), 0)
    if not snapshot.statements:
        return Cursor(0, 0)
    return Cursor(first_line(snapshot, Cursor(snapshot.layout.start_line(snapshot.statements[0].uid), 0)), 0)
