"""Rename: across the file, refused where it would break something."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Refusal, TextEdit
from qvr_core.ide.imports.homes import aliases, local_name
from qvr_core.ide.names import names_of
from qvr_core.ide.occurrences import Occurrence
from qvr_core.ide.symbols import (
    GLOBAL_KINDS,
    RENAMABLE,
    Found,
    Symbol,
    bindings,
    lookup,
    place_of,
    references,
    symbol_of,
)
from qvr_core.ide.target import symbol_at
from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.prelude import EVERY_FAMILY
from qvr_core.semantics.modules.paths import STD, shown
from qvr_core.syntax.lexer import COMBINATORS, keyword_kinds
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.source import Cursor, Range
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.units import Statement

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

WIDE = GLOBAL_KINDS | {"data", "size", "label", "prefix"}
"""What any statement of the file may name."""
BINDING = GLOBAL_KINDS | {"input", "template", "site", "binding", "data", "label", "prefix"}
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def prepare(snapshot: Snapshot, cursor: Cursor) -> tuple[Range, str] | Refusal:
    """The name at the cursor and its place, or why it cannot be renamed."""
    found = renamable(snapshot, cursor)
    if isinstance(found, Refusal):
        return found
    return place_of(snapshot, found), found.occurrence.text


def rename(snapshot: Snapshot, cursor: Cursor, name: str) -> tuple[TextEdit, ...] | Refusal:
    """The edits that give the thing at the cursor another name, or why that cannot be."""
    found = renamable(snapshot, cursor)
    if isinstance(found, Refusal):
        return found
    symbol = found.symbol
    if name == symbol.name:
        return ()
    refusal = taken(snapshot, found, name)
    if refusal is not None:
        return refusal
    places = references(snapshot, symbol)
    if symbol.target is not None:
        if not is_alias(snapshot, found):
            return Refusal(f"`{symbol.name}` is declared in {shown(symbol.target[0])}.")
        # what `as` calls it here is a matter of this file
        own = found.occurrence.text
        return tuple(
            TextEdit(place_of(snapshot, place), name)
            for place in places
            if is_alias(snapshot, place) and place.occurrence.text == own
        )
    return tuple(
        # A replicated copy `f_2` keeps its number.
        TextEdit(place_of(snapshot, place), name + place.occurrence.text[len(symbol.name) :])
        for place in places
    )


def is_alias(snapshot: Snapshot, found: Found) -> bool:
    """Whether a name of another file's declaration is one that `as` gives it here."""
    occurrence = found.occurrence
    plain = occurrence.part != "imported" and local_name(occurrence) == occurrence.text
    return found.symbol.target is not None and not found.symbol.of and plain and occurrence.text in aliases(snapshot)


def renamable(snapshot: Snapshot, cursor: Cursor) -> Found | Refusal:
    found = symbol_at(snapshot, cursor)
    if found is None:
        return Refusal("There is no name here.")
    if found.symbol.kind == "path":
        return Refusal("This is the path of a file, not a name.")
    if found.symbol.kind not in RENAMABLE and found.symbol.target is None:
        return Refusal(f"`{found.symbol.name}` belongs to the language and cannot be renamed.")
    target = found.symbol.target
    if target is not None and target[0].startswith(STD) and not is_alias(snapshot, found):
        name = found.occurrence.text
        return Refusal(f"`{name}` is declared in {shown(target[0])}, which comes with the package.")
    return found


def taken(snapshot: Snapshot, found: Found, name: str) -> Refusal | None:
    """Why a name cannot be given: not a name, reserved, or something else's."""
    if not IDENTIFIER.match(name) or name == "_":
        return Refusal(f"`{name}` is not a name: letters, digits and `_`, not beginning with a digit.")
    if name in keyword_kinds() or name in COMBINATORS:
        return Refusal(f"`{name}` is a reserved word.")
    if name in EVERY_FAMILY:
        return Refusal(f"`{name}` is a family of distributions.")
    if name in BUILTINS and BUILTINS[name].reserved:
        return Refusal(f"`{name}` is a builtin function.")
    symbol = found.symbol
    held = lookup(snapshot, name)
    if held is not None:
        line = snapshot_line(snapshot, held.statement.uid)
        return Refusal(
            f"`{name}` is already {'an' if held.kind == 'object' else 'a'} {held.kind}, declared on line {line}."
        )
    if symbol.kind in BINDING and (refusal := _of_import(snapshot, name)) is not None:
        return refusal
    statements = snapshot.statements if symbol.kind in WIDE else (found.statement,)
    refusal = bound_by_users(snapshot, symbol, name, statements) or caught(snapshot, symbol, name)
    return refusal or captured(snapshot, symbol, name, statements)


def _of_import(snapshot: Snapshot, name: str) -> Refusal | None:
    """Why a name cannot be given that an import brings."""
    table = snapshot.table
    if (target := table.offered.get(name)) is not None:
        return Refusal(f"`{name}` is imported from {shown(target[0])}.")
    if name in table.prefixes or name in table.failed:
        return Refusal(f"`{name}` is the name of an import.")
    return None


def bound_by_users(snapshot: Snapshot, symbol: Symbol, name: str, statements: Sequence[Statement]) -> Refusal | None:
    """Why a name cannot be given that a program binds which would use it."""
    # a label in quotes is no name: nothing hides it
    users = {place.statement.uid for place in references(snapshot, symbol) if place.occurrence.part != "element"}
    for statement in statements:
        if statement.uid in users and name in bindings(statement):
            placed, _ = bindings(statement)[name]
            line = snapshot_line(snapshot, placed.uid)
            return Refusal(f"`{name}` is already bound in the program that would use it, on line {line}.")
    return None


def captured(snapshot: Snapshot, symbol: Symbol, name: str, statements: Sequence[Statement]) -> Refusal | None:
    """Why a name cannot be given that means data, a label or another element of the set elsewhere."""
    if symbol.kind not in BINDING:
        return None
    for statement in statements:
        for placed in units_of(statement):
            for other in names_of(placed.unit) if name in placed.unit.text else ():
                if other.text != name or other.part not in ("value", "label", "element"):
                    continue
                meant = symbol_of(snapshot, statement, placed, other)
                twin = meant.kind == symbol.kind == "label" and (meant.owner, meant.of) == (symbol.owner, symbol.of)
                hides = other.part == "value" and meant.kind in ("data", "label") and symbol.kind != "label"
                if twin or hides:
                    line = place_of(snapshot, Found(meant, other, placed, statement)).start.line + 1
                    what = "an element of the same set" if twin else "the element" if meant.kind == "label" else "data"
                    return Refusal(f"`{name}` on line {line} is {what}; it would then be what `{symbol.name}` is now.")
    return None


def caught(snapshot: Snapshot, symbol: Symbol, name: str) -> Refusal | None:
    """Why a name cannot be given where an index or the name of a lambda would mean something else than now."""
    places = references(snapshot, symbol)
    for place in places:
        for other in _named(place, name):
            if other.part == "local-bind" and other.scope is not None and _inside(place.span, other.scope):
                line = place_of(snapshot, replace(place, occurrence=other)).start.line + 1
                return Refusal(f"`{name}` is bound already where `{symbol.name}` stands, on line {line}.")
    scope = places[0].occurrence.scope if symbol.kind == "local" and places else None
    for other in _named(places[0], name) if places else ():
        if scope is None:
            continue
        further = other.scope is None or not _inside(other.scope, scope)
        if further and other.part in ("value", "callee", "local") and _inside(other.span, scope):
            line = place_of(snapshot, replace(places[0], occurrence=other)).start.line + 1
            return Refusal(f"`{name}` on line {line} would then be what `{symbol.name}` is now.")
    return None


def _named(place: Found, name: str) -> Iterator[Occurrence]:
    return (other for other in names_of(place.placed.unit) if other.text == name)


def _inside(inner: Span, outer: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def snapshot_line(snapshot: Snapshot, uid: int) -> int:
    """The line number of a unit, counted from 1 as people do."""
    from qvr_core.semantics.types.diagnostics import Origin

    return snapshot.range(Origin(uid, Span(0, 0))).start.line + 1
