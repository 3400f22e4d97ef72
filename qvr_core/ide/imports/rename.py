"""Rename across files: what changes in each, and why it cannot be."""

from __future__ import annotations

from posixpath import basename
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Refusal, TextEdit
from qvr_core.ide.edits.rename import bound_by_users, captured, caught, is_alias, renamable, taken
from qvr_core.ide.imports.shared import Shared, shared_of, symbol_here, uses
from qvr_core.ide.symbols import Found, lookup, place_of, writes
from qvr_core.semantics.modules.paths import shown
from qvr_core.syntax.source import Cursor

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


def to_rename(snapshot: Snapshot, cursor: Cursor) -> Shared | Refusal | None:
    """What is to be renamed in several files; None where it is a matter of this one, or why it cannot be."""
    found = renamable(snapshot, cursor)
    if isinstance(found, Refusal):
        return found
    shared = None if is_alias(snapshot, found) else shared_of(snapshot, found)
    return None if shared is None or shared.inside else shared


def rename_at_home(snapshot: Snapshot, shared: Shared, name: str) -> tuple[TextEdit, ...] | Refusal:
    """The edits of the file that declares it."""
    found = uses(snapshot, shared)
    declared = next((place for place in found if writes(place.occurrence) or place.occurrence.part == "label"), None)
    if declared is None:
        return Refusal(f"{shown(shared.location)} no longer declares `{shared.last}`.")
    return taken(snapshot, declared, name) or _edits(snapshot, shared, found, name)


def rename_in_importer(snapshot: Snapshot, shared: Shared, name: str) -> tuple[TextEdit, ...] | Refusal:
    """The edits of a file that imports the one that declares it."""
    found = [place for place in uses(snapshot, shared) if not is_alias(snapshot, place)]
    return _clash(snapshot, shared, found, name) or _edits(snapshot, shared, found, name)


def _edits(snapshot: Snapshot, shared: Shared, found: list[Found], name: str) -> tuple[TextEdit, ...]:
    # a replicated copy `f_2` keeps its number
    return tuple(
        TextEdit(place_of(snapshot, place), name + place.occurrence.text[len(shared.last) :]) for place in found
    )


def _clash(snapshot: Snapshot, shared: Shared, found: list[Found], name: str) -> Refusal | None:
    """Why an importing file could not have the new name."""
    file, symbol = basename(snapshot.location), symbol_here(snapshot, shared)
    if symbol is None:
        return None
    if not shared.member:
        if name.startswith("_") and found:
            return Refusal(f"{file} imports `{shared.name}`, and names that begin with `_` stay inside their file.")
        if not _brings(snapshot, shared):
            return None
        if lookup(snapshot, name) is not None or name in snapshot.table.own:
            return Refusal(f"`{name}` is declared in {file}, which imports `{shared.name}`.")
        if (other := snapshot.table.offered.get(name)) is not None:
            return Refusal(f"`{name}` comes from {shown(other[0])} in {file}, which imports `{shared.name}`.")
        if name in snapshot.table.prefixes or name in snapshot.table.failed:
            return Refusal(f"`{name}` is the name of another import in {file}, which imports `{shared.name}`.")
    elif symbol.kind == "parameter":
        return None
    statements = snapshot.statements
    refusal = bound_by_users(snapshot, symbol, name, statements) or caught(snapshot, symbol, name)
    if refusal is None:
        refusal = captured(snapshot, symbol, name, statements)
    return None if refusal is None else Refusal(f"In {file}: {refusal.message}")


def _brings(snapshot: Snapshot, shared: Shared) -> bool:
    """Whether an import gives the thing its own name here, without a prefix."""
    for each in snapshot.table.imports:
        if each.module is None or each.module.location != shared.location or each.decl.prefix is not None:
            continue
        items = each.decl.items
        if items is None or any(item.alias is None and item.name.text == shared.name for item in items):
            return True
    return False
