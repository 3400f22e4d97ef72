"""Things that several files may name: the same one in each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qvr_core.ide.imports.homes import home_of
from qvr_core.ide.names import names_of
from qvr_core.ide.symbols import GLOBAL_KINDS, KINDS, Found, Symbol, lookup, references, symbol_of
from qvr_core.ide.target import symbol_at
from qvr_core.syntax.source import Cursor
from qvr_core.syntax.tree.units import Statement

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

MEMBERS = frozenset(("parameter", "label", "input", "template", "local"))


@dataclass(frozen=True, slots=True)
class Shared:
    """A declaration by the location of its file and its name there, or a parameter or an element of it."""

    location: str
    name: str
    member: str = ""

    @property
    def last(self) -> str:
        """How it is written, where no alias is."""
        return self.member or self.name

    @property
    def inside(self) -> bool:
        """Whether it stays inside its file."""
        return self.name.startswith("_")


def shared_at(snapshot: Snapshot, cursor: Cursor) -> Shared | None:
    """What is named at a cursor, if other files may name it too."""
    found = symbol_at(snapshot, cursor)
    return None if found is None else shared_of(snapshot, found)


def shared_of(snapshot: Snapshot, found: Found) -> Shared | None:
    symbol = found.symbol
    if symbol.target is not None:
        return Shared(*symbol.target, symbol.name if symbol.of else "")
    if symbol.kind in GLOBAL_KINDS:
        return None if lookup(snapshot, symbol.name) is None else Shared(snapshot.location, symbol.name)
    if symbol.kind not in MEMBERS:
        return None
    for statement in snapshot.statements:
        if symbol.owner in (statement.uid, statement.header.uid):
            declared = statement.header.unit.declares
            own = declared and _member(snapshot, statement, symbol.name) == symbol
            return Shared(snapshot.location, declared[0].text, symbol.name) if own else None
    return None


def _member(snapshot: Snapshot, statement: Statement, name: str) -> Symbol | None:
    """A parameter or an element that the header of a statement declares."""
    header = statement.header
    for occurrence in names_of(header.unit):
        if occurrence.text == name and occurrence.part in ("parameter", "local-bind", "label"):
            return symbol_of(snapshot, statement, header, occurrence)
    return None


def symbol_here(snapshot: Snapshot, shared: Shared) -> Symbol | None:
    """What a file calls such a thing; None where it does not know it."""
    if shared.location == snapshot.location:
        held = lookup(snapshot, shared.name)
        if held is None:
            return None
        return _member(snapshot, held.statement, shared.member) if shared.member else Symbol(held.kind, shared.name)
    home = home_of(snapshot, (shared.location, shared.name))
    if home is None:
        return None
    called = snapshot.table.name_of(home.target)
    if not shared.member:
        return Symbol(KINDS.get(home.statement.header.unit.keyword, "unknown"), called, target=home.target)
    if home.parameter(shared.member) is not None:
        return Symbol("parameter", shared.member, -1, home.name, home.target)
    return Symbol("label", shared.member, -1, called, home.target)


def uses(snapshot: Snapshot, shared: Shared) -> list[Found]:
    """Every place of a file that names it, in the order of the text."""
    symbol = symbol_here(snapshot, shared)
    return [] if symbol is None else references(snapshot, symbol)
