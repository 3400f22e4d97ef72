"""Names that imports bring: which declaration of which file each stands for, and where that is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qvr_core.ide.names import names_of
from qvr_core.ide.occurrences import Occurrence
from qvr_core.semantics.modules.module import Module, Target
from qvr_core.syntax.source import Cursor, Range
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.units import Statement

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A stretch of the text of another file, whose lines come along: editors count columns in them."""

    location: str
    lines: Sequence[str]
    range: Range


@dataclass(frozen=True, slots=True)
class Home:
    """A declaration of another file, at home."""

    module: Module
    name: str
    statement: Statement

    @property
    def target(self) -> Target:
        return self.module.location, self.name

    def parameter(self, name: str) -> Occurrence | None:
        """A parameter of a family, function or template."""
        if self.statement.header.unit.keyword not in ("family", "def", "program"):
            return None
        found = names_of(self.statement.header.unit)
        return next((each for each in found if each.text == name and each.part in ("parameter", "local-bind")), None)

    def place(self, span: Span) -> FilePlace:
        """Where a span of its header stands."""
        layout = self.module.layout
        return FilePlace(self.module.location, layout.lines, layout.range(self.statement.header.uid, span))

    def member_place(self, name: str) -> FilePlace:
        """Where a parameter, or an element of the set, is written."""
        found = names_of(self.statement.header.unit)
        parts = ("parameter", "local-bind", "label")
        return self.place(next((each.span for each in found if each.text == name and each.part in parts), Span(0, 0)))

    def name_place(self) -> FilePlace:
        found = names_of(self.statement.header.unit)
        span = next((each.span for each in found if each.part == "declare" and each.text == self.name), Span(0, 0))
        return self.place(span)


def home_of(snapshot: Snapshot, target: Target) -> Home | None:
    """A declaration of another file, as the imports of this one have found it."""
    module = snapshot.table.modules.get(target[0])
    uid = None if module is None else module.own(target[1])
    if module is None or uid is None:
        return None
    return Home(module, module.written_name(target[1]), module.layout.statement_of(uid))


def imported(snapshot: Snapshot, local: str) -> Home | None:
    """What a name of this file, `l.block` or `block`, stands for in another one."""
    target = snapshot.table.offered.get(local)
    return None if target is None else home_of(snapshot, target)


def imported_item(snapshot: Snapshot, statement: Statement, name: str) -> Home | None:
    """What a name in an import statement stands for."""
    for each in snapshot.table.imports:
        if each.uid == statement.uid and each.module is not None and name in each.module.public:
            return home_of(snapshot, (each.module.location, name))
    return None


def home_named(snapshot: Snapshot, name: str) -> Home | None:
    """The declaration of another file that the model of this one calls `name`."""
    target = snapshot.table.reached.get(name) or snapshot.table.offered.get(name)
    return None if target is None else home_of(snapshot, target)


def local_name(occurrence: Occurrence) -> str:
    """A name with the prefix that is written in front of it."""
    dotted = occurrence.of and occurrence.part in ("object", "attribute")
    return f"{occurrence.of}.{occurrence.text}" if dotted else occurrence.text


def called_here(snapshot: Snapshot, occurrence: Occurrence) -> str:
    """What the model of this file calls the thing that a name stands for; copies of an arrow have each their own."""
    name = local_name(occurrence)
    target = snapshot.table.offered.get(name)
    return name if target is None else snapshot.table.name_of(target)


def spellings(snapshot: Snapshot, target: Target) -> set[str]:
    """How a declaration of another file may be written here, without its prefix."""
    offered = snapshot.table.offered.items()
    return {target[1], *(local.rpartition(".")[2] for local, each in offered if each == target)}


def aliases(snapshot: Snapshot) -> set[str]:
    """The names that `as` gives to single declarations."""
    items = (item for each in snapshot.table.imports for item in each.decl.items or ())
    return {item.alias.text for item in items if item.alias is not None}


def imported_file(snapshot: Snapshot, statement: Statement) -> FilePlace | None:
    """The file that an import statement names."""
    for each in snapshot.table.imports:
        if each.uid == statement.uid and each.module is not None:
            start = Cursor(0, 0)
            return FilePlace(each.module.location, each.module.layout.lines, Range(start, start))
    return None
