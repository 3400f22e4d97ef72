"""Rules that no statement can decide alone: names declared twice, unused or unknown, exports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from qvr_core.semantics.codes import DUPLICATE_EXPORT, DUPLICATE_NAME, UNFANNED_REPLICA, UNKNOWN_NAME, UNUSED
from qvr_core.semantics.declarations import COMPOSITION, Checked, is_broken
from qvr_core.semantics.diagnostics import DeclarationSite, Diagnostic, Edit, Fix, Origin, Related
from qvr_core.semantics.scope import ArrowEntry, Entry, FamilyEntry, ObjectEntry, TemplateEntry, UnknownName
from qvr_core.semantics.spelling import closest
from qvr_core.syntax.statements import Layout, units_of
from qvr_core.syntax.tree import CompositionHeader, ExportDecl, LetDecl, Placed, Span, Statement

if TYPE_CHECKING:

    class Record(Protocol):
        statement: Statement
        names: tuple[str, ...]
        checked: Checked

    class File(Protocol):
        layout: Layout
        owners: dict[str, list[int]]
        users: dict[str, set[int]]
        entries: dict[str, Entry]

        @property
        def records(self) -> Mapping[int, Record]: ...


def _put(group: set[str], name: str, belongs: bool) -> None:
    if belongs:
        group.add(name)
    else:
        group.discard(name)


MANY_NAMES = 4000
"""Beyond so many names only those with the same first letter are compared with a misspelt one."""


class FileRules:
    """Keeps the findings that concern the whole file current under edits."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.compositions: set[int] = set()
        self.exports: set[int] = set()
        self.lets: set[int] = set()
        self.broken: dict[int, tuple[str, ...]] = {}
        """The lines with a syntax error, by statement."""
        self.duplicated: set[str] = set()
        self._unused: set[str] = set()
        self._unfanned: set[str] = set()
        self._shown: dict[str, tuple[Placed[Any], Diagnostic]] = {}
        self._spellings: dict[tuple[str, str], str | None] = {}

    def register(self, statement: Statement) -> None:
        node = statement.header.unit.node
        keyword = statement.header.unit.keyword
        for kind, word, group in (
            (CompositionHeader, "composition", self.compositions),
            (ExportDecl, "export", self.exports),
            (LetDecl, "let", self.lets),
        ):
            if isinstance(node, kind) or (node is None and keyword == word):
                group.add(statement.uid)
        broken = tuple(placed.unit.text for placed in units_of(statement) if is_broken(placed.unit))
        if broken:
            self.broken[statement.uid] = broken

    def forget(self, uid: int) -> None:
        self.broken.pop(uid, None)
        for group in (self.compositions, self.exports, self.lets):
            group.discard(uid)

    def update(self, touched: Iterable[str]) -> None:
        """Look again at the names that an edit declared, dropped, or began or ceased to use."""
        names = set(touched)
        for name in touched:
            for owner in self.file.owners.get(name, ()):
                names.update(own.text for own in self.file.records[owner].statement.header.unit.declares)
        self._spellings.clear()
        for name in names:
            owners = self.file.owners.get(name, [])
            _put(self.duplicated, name, len(owners) > 1)
            own_use = bool(self.file.users.get(name, set()) - set(owners))
            copy_use = any(copy in self.file.users for copy in self._copies(name))
            _put(
                self._unused,
                name,
                bool(owners) and self._can_be_unused(name, owners[0]) and not (own_use or copy_use),
            )
            _put(self._unfanned, name, bool(owners) and copy_use and not own_use)

    def _can_be_unused(self, name: str, owner: int) -> bool:
        header = self.file.records[owner].statement.header
        declared = any(name == own.text for own in header.unit.declares)
        return declared and header.unit.keyword in ("object", "morphism", "let", "define") and name[0] != "_"

    def _copies(self, name: str) -> tuple[str, ...]:
        entry = self.file.entries.get(name)
        return entry.copies if isinstance(entry, FamilyEntry) else ()

    # ---------------------------------------------------------------- findings

    def diagnostics(self) -> Iterator[Diagnostic]:
        yield from self._duplicates()
        yield from self._unused_names()
        yield from self._repeated_exports()

    def _name_origin(self, uid: int, name: str) -> Origin:
        header = self.file.records[uid].statement.header
        span = next((own.span for own in header.unit.declares if own.text == name), Span(0, 0))
        return Origin(header.uid, span)

    def _duplicates(self) -> Iterator[Diagnostic]:
        for name in self.duplicated:
            if name.startswith(COMPOSITION):
                continue
            for uid in self.file.owners[name][1:]:
                header = self.file.records[uid].statement.header
                if not any(own.text == name for own in header.unit.declares):
                    base = header.unit.declares[0]
                    message = f"`{base.text}` is replicated into `{name}`, which is declared already"
                    place = Origin(header.uid, base.span)
                else:
                    message = f"`{name}` is declared already"
                    place = self._name_origin(uid, name)
                related = (Related(f"the first `{name}` is declared here", DeclarationSite(name)),)
                yield Diagnostic(DUPLICATE_NAME, message, place, related)

    def _unused_names(self) -> Iterator[Diagnostic]:
        exempt = self._last_let() if not self.exports else None
        for name in self._unused:
            owner = self.file.owners[name][0]
            if owner == exempt or any(name in text for texts in self.broken.values() for text in texts):
                continue
            header = self.file.records[owner].statement.header
            shown = self._shown.get(name)
            if shown is None or shown[0] is not header:
                shown = self._shown[name] = (header, self._unused_name(name, header))
            yield shown[1]
        for name in self._unfanned:
            message = f"`{name}` is replicated, but neither `fan({name})` nor `scan({name})` uses all its copies"
            yield Diagnostic(UNFANNED_REPLICA, message, self._name_origin(self.file.owners[name][0], name))

    def _unused_name(self, name: str, header: Placed[Any]) -> Diagnostic:
        span = next(own.span for own in header.unit.declares if own.text == name)
        fixes: tuple[Fix, ...] = ()
        if len(header.unit.declares) == 1 and header.unit.node is not None:
            whole = Origin(header.uid, Span(0, len(header.unit.text)))
            fixes = (Fix(f"Remove `{name}`", (Edit(whole, "", "line"),)),)
        return Diagnostic(UNUSED, f"`{name}` is never used", Origin(header.uid, span), fixes=fixes)

    def _last_let(self) -> int | None:
        return max(self.lets, key=self.file.layout.start_line, default=None)

    def _repeated_exports(self) -> Iterator[Diagnostic]:
        if len(self.exports) < 2:
            return
        seen: set[str] = set()
        for uid in sorted(self.exports, key=self.file.layout.start_line):
            export = self.file.records[uid].checked.export
            if export is None or not export.name:
                continue
            if export.name in seen:
                message = f"`{export.name}` is exported already"
                yield Diagnostic(DUPLICATE_EXPORT, message, export.origin)
            seen.add(export.name)

    # ---------------------------------------------------------------- unknown names

    def unknown_name(self, unknown: UnknownName) -> Diagnostic:
        """The error at a name that nobody declares, with the likely spelling."""
        near = self._near(unknown)
        message = f"there is no {unknown.wanted} `{unknown.name}`" + (f"; did you mean `{near}`?" if near else "")
        fixes: tuple[Fix, ...] = ()
        related: tuple[Related, ...] = ()
        if near is not None:
            fixes = (Fix(f"Change to `{near}`", (Edit(unknown.place, near),), True),)
            if near in self.file.entries and near not in unknown.candidates:
                related = (Related(f"`{near}` is declared here", DeclarationSite(near)),)
        if unknown.wanted == "object":
            line = f"object {unknown.name} : Real _"
            fixes = (*fixes, Fix(f"Declare `object {unknown.name}`", (Edit(unknown.place, line, "line-before"),)))
        return Diagnostic(UNKNOWN_NAME, message, unknown.place, related, fixes)

    def _near(self, unknown: UnknownName) -> str | None:
        local = closest(unknown.name, unknown.candidates)
        if local is not None:
            return local
        key = (unknown.wanted, unknown.name)
        if key not in self._spellings:
            self._spellings[key] = closest(unknown.name, self._names_for(unknown))
        return self._spellings[key]

    def _names_for(self, unknown: UnknownName) -> list[str]:
        kinds = (ObjectEntry,) if unknown.wanted == "object" else (ArrowEntry, FamilyEntry, TemplateEntry)
        entries = self.file.entries
        if len(entries) > MANY_NAMES:
            first = unknown.name[0].lower()
            found = [name for name in entries if name[0].lower() == first and isinstance(entries[name], kinds)]
        else:
            found = [name for name, entry in entries.items() if isinstance(entry, kinds)]
        return sorted(found)
