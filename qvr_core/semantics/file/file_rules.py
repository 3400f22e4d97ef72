"""Rules that no statement can decide alone: names declared twice or unused, exports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from qvr_core.semantics.file.declarations import Checked, bare_name
from qvr_core.semantics.file.imported import Imports, Statements
from qvr_core.semantics.file.unknown_names import UnknownNames
from qvr_core.semantics.language.compositions import COMPOSITION
from qvr_core.semantics.scope.scope import Entry, FamilyEntry
from qvr_core.semantics.types.codes import DUPLICATE_EXPORT, DUPLICATE_NAME, UNFANNED_REPLICA, UNUSED
from qvr_core.semantics.types.diagnostics import DeclarationSite, Diagnostic, Edit, Fix, Origin, Related
from qvr_core.syntax.statements import units_of
from qvr_core.syntax.tree.declarations import CompositionHeader, ExportDecl, LetDecl
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.units import Statement

if TYPE_CHECKING:

    class Record(Protocol):
        statement: Statement
        names: tuple[str, ...]
        checked: Checked

    class File(Protocol):
        layout: Statements
        imports: Imports
        owners: dict[str, list[int]]
        users: dict[str, set[int]]

        @property
        def entries(self) -> Mapping[str, Entry]: ...
        @property
        def records(self) -> Mapping[int, Record]: ...


def _put(group: set[str], name: str, belongs: bool) -> None:
    if belongs:
        group.add(name)
    else:
        group.discard(name)


class FileRules:
    """Keeps the findings that concern the whole file current under edits."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.compositions: set[int] = set()
        self.exports: dict[int, str] = {}
        """What each export names; '' where it is no bare name."""
        self.lets: set[int] = set()
        self.broken: dict[int, tuple[str, ...]] = {}
        """The lines with a syntax error, by statement."""
        self.duplicated: set[str] = set()
        self._unused: dict[str, tuple[int, Diagnostic]] = {}
        """The names that nothing uses: their statements, and what is said of them."""
        self._unfanned: set[str] = set()
        self._exported: defaultdict[str, set[int]] = defaultdict(set)
        self._repeated: set[str] = set()
        """The names that several exports name."""
        self._unknown_names = UnknownNames(file)

    def register(self, statement: Statement) -> None:
        node = statement.header.unit.node
        keyword = statement.header.unit.keyword
        for kind, word, group in (
            (CompositionHeader, "composition", self.compositions),
            (LetDecl, "let", self.lets),
        ):
            if isinstance(node, kind) or (node is None and keyword == word):
                group.add(statement.uid)
        if isinstance(node, ExportDecl) or (node is None and keyword == "export"):
            self._export(statement.uid, None if node is None else bare_name(node.value))
        broken = tuple(
            placed.unit.text for placed in units_of(statement) if placed.unit.problems and placed.unit.broken
        )
        if broken:
            self.broken[statement.uid] = broken

    def forget(self, uid: int) -> None:
        self.broken.pop(uid, None)
        self._unknown_names.forget(uid)
        self._count_export(self.exports.pop(uid, ""), uid, False)
        for group in (self.compositions, self.lets):
            group.discard(uid)

    def _export(self, uid: int, name: Name | None) -> None:
        self.exports[uid] = "" if name is None else name.text
        self._count_export(self.exports[uid], uid, True)

    def _count_export(self, name: str, uid: int, stands: bool) -> None:
        uids = self._exported[name]
        (uids.add if stands else uids.discard)(uid)
        _put(self._repeated, name, len(uids) > 1 and name != "")

    def update(self, touched: Iterable[str]) -> None:
        """Look again at the names that an edit declared, dropped, or began or ceased to use."""
        names = set(touched)
        declared: dict[int, frozenset[str]] = {}
        for name in touched:
            for owner in self.file.owners.get(name, ()):
                if owner not in declared:
                    unit = self.file.records[owner].statement.header.unit
                    declared[owner] = frozenset(own.text for own in unit.declares)
                    names |= declared[owner]
        for name in names:
            owners = self.file.owners.get(name, [])
            if owners and self.file.imports.is_foreign(owners[0]):
                self._forget_name(name)
                continue
            keyword = self.file.records[owners[0]].statement.header.unit.keyword if owners else ""
            _put(self.duplicated, name, len(owners) > 1)
            own_use = bool(self.file.users.get(name, set()) - set(owners))
            copy_use = any(copy in self.file.users for copy in self._copies(name))
            if owners and self._can_be_unused(name, owners[0], declared) and not (own_use or copy_use):
                self._unused[name] = owners[0], self._unused_name(name, owners[0])
            else:
                self._unused.pop(name, None)
            self._unknown_names.put(name, keyword, name in self._unused)
            _put(self._unfanned, name, bool(owners) and copy_use and not own_use)

    def _forget_name(self, name: str) -> None:
        """Another file declares it, and says there what it is worth."""
        for group in (self.duplicated, self._unfanned):
            group.discard(name)
        self._unused.pop(name, None)
        self._unknown_names.put(name, "", False)

    def _can_be_unused(self, name: str, owner: int, declared: Mapping[int, Set[str]]) -> bool:
        header = self.file.records[owner].statement.header
        names = declared.get(owner) or {own.text for own in header.unit.declares}
        return name in names and header.unit.keyword in ("object", "morphism", "let", "define") and name[0] != "_"

    def _copies(self, name: str) -> tuple[str, ...]:
        entry = self.file.entries.get(name)
        return entry.copies if isinstance(entry, FamilyEntry) else ()

    # ---------------------------------------------------------------- findings

    def diagnostics(self, flagged: Iterable[int]) -> Iterator[Diagnostic]:
        broken = "\n".join(chain.from_iterable(self.broken.values()))
        misspelt = self._unknown_names.find(flagged, self._unused.keys(), broken)
        yield from misspelt.diagnostics
        yield from self._duplicates()
        yield from self._unused_names(misspelt.declarations, broken)
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

    def _unused_names(self, misspelt: Set[str], broken: str) -> Iterator[Diagnostic]:
        exempt = self._last_let() if not self.exports else None
        yield from [
            one
            for name, (owner, one) in self._unused.items()
            if owner != exempt and name not in misspelt and not (broken and name in broken)
        ]
        for name in self._unfanned:
            message = f"`{name}` is replicated, but neither `fan({name})` nor `scan({name})` uses all its copies"
            yield Diagnostic(UNFANNED_REPLICA, message, self._name_origin(self.file.owners[name][0], name))

    def _unused_name(self, name: str, owner: int) -> Diagnostic:
        header = self.file.records[owner].statement.header
        span = next(own.span for own in header.unit.declares if own.text == name)
        fixes: tuple[Fix, ...] = ()
        if len(header.unit.declares) == 1 and header.unit.node is not None:
            whole = Origin(header.uid, Span(0, len(header.unit.text)))
            fixes = (Fix(f"Remove `{name}`", (Edit(whole, "", "line"),)),)
        return Diagnostic(UNUSED, f"`{name}` is never used", Origin(header.uid, span), fixes=fixes)

    def _last_let(self) -> int | None:
        if not self.lets:
            return None
        return next(one.uid for one in reversed(self.file.layout.statements) if one.uid in self.lets)

    def _repeated_exports(self) -> Iterator[Diagnostic]:
        for name in self._repeated:
            for uid in sorted(self._exported[name], key=self.file.layout.start_line)[1:]:
                node = self.file.records[uid].statement.header.unit.node
                assert isinstance(node, ExportDecl)
                yield Diagnostic(DUPLICATE_EXPORT, f"`{name}` is exported already", Origin(uid, node.span))
