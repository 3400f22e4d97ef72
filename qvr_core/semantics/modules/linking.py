"""The statements of other files that a file uses, put among its own under the names that they have here.

A statement of another file is checked in the file that uses it as if it stood there, with every name replaced by what
it is called here, and every hole by the size that it has at home.  So templates, functions and families of another
file are what they are in one file, and the checker, the diagrams and the runtime know of no files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from qvr_core.semantics.file.checker import FileChecker
from qvr_core.semantics.file.references import mentions, unit_references
from qvr_core.semantics.language.compositions import COMPOSITION
from qvr_core.semantics.modules.import_table import Library, missing_name, table_of
from qvr_core.semantics.modules.linked_statement import FIRST_SERIAL, LOW, Linked, placed_as, without_node
from qvr_core.semantics.modules.module import NO_TABLE, Module, Table, Target
from qvr_core.semantics.modules.prelude_uses import LibraryNames, library_file
from qvr_core.semantics.modules.refusals import refusal
from qvr_core.semantics.modules.renaming import Renaming
from qvr_core.semantics.scope.scope import DamagedEntry, Entry
from qvr_core.semantics.types.codes import UNKNOWN_IMPORT, UNSUPPORTED
from qvr_core.semantics.types.diagnostics import Diagnostic, Origin
from qvr_core.syntax.placing import SERIAL_BITS, statement_uid, units_of
from qvr_core.syntax.source import Range
from qvr_core.syntax.statements import Layout
from qvr_core.syntax.tree.declarations import ImportDecl
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.units import Statement

Changes = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[str, ...]]
"""Statements removed, added, changed, and names that mean something else since imports fail to bring them."""


class Visible:
    """The names that a statement of another file may look up: its own, and those of what it refers to."""

    __slots__ = ("_links", "_own", "_uid")

    def __init__(self, links: Links, uid: int, own: frozenset[str]) -> None:
        self._links, self._uid, self._own = links, uid, own

    def __contains__(self, name: object) -> bool:
        return name in self._own or (isinstance(name, str) and self._links.reaches(self._uid, name))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Visible) and (self._uid, self._own) == (other._uid, other._own)

    def __hash__(self) -> int:
        return hash(self._uid)


class Links:
    """Keeps a file's view of others current."""

    def __init__(self, own: Layout, location: str, library: Library) -> None:
        self._own = own
        self._location = location
        self._library = library
        self._decls: dict[int, ImportDecl] = {}
        self._order: list[int] = []
        self.table: Table = NO_TABLE
        self.checker: FileChecker | None = None
        self.linked: dict[int, Linked] = {}
        self._uids: dict[tuple[str, int], int] = {}
        self._at: dict[str, int] = {}
        """The number of each file among those that are followed."""
        self._rewritten: dict[int, tuple[Statement, Statement]] = {}
        self._renamings: dict[tuple[str, ...], Renaming] = {}
        self._called: dict[str, str] = {}
        """What every name that may be written stands for in what the checker reads."""
        self._values: dict[str, int] = {}
        self._names: frozenset[str] = frozenset()
        """All that statements of other files mention."""
        self._visible: dict[tuple[int, str], bool] = {}
        self._prelude = LibraryNames(own, location)
        self._known: tuple[str, ...] = ()
        """What of it the file uses."""

    # ---------------------------------------------------------------- what the checker asks (`file.imported.Imports`)

    def is_foreign(self, uid: int) -> bool:
        return uid >> SERIAL_BITS >= FIRST_SERIAL

    def visible(self, uid: int) -> Visible:
        return Visible(self, uid, frozenset(self.linked[uid].names.values()))

    def reaches(self, uid: int, name: str) -> bool:
        """Whether a statement of another file, or something that it refers to, mentions a name."""
        if name not in self._names:
            return False
        known = self._visible.get((uid, name))
        if known is None:
            seen: dict[int, None] = {uid: None}
            for one in (pending := [uid]):
                if known := name in self.linked[one].names.values():
                    break
                fresh = [each for near in self.linked[one].names.values() for each in self._owners(near)]
                pending += (each for each in dict.fromkeys(fresh) if each not in seen)
                seen.update(dict.fromkeys(fresh))
            self._visible[uid, name] = known = bool(known)
        return known

    def _owners(self, name: str) -> Iterator[int]:
        assert self.checker is not None
        yield from (uid for uid in self.checker.owners.get(name, ())[:1] if uid in self.linked)

    def algebra(self, uid: int) -> str:
        return self.linked[uid].algebra

    def value(self, variable: str) -> int | None:
        return self._values.get(variable)

    def entry(self, name: str) -> Entry | None:
        if name in self.table.failed:
            return DamagedEntry(name)
        prefix, dot, last = name.partition(".")
        # what the prefix does not have is told where it is written
        return DamagedEntry(name) if dot and "." not in last and prefix in self.table.prefixes else None

    def promises(self, name: str) -> bool:
        return self.table.promises

    def diagnostics(self) -> Iterator[Diagnostic]:
        yield from self.table.problems
        if self.checker is not None:
            yield from self._prelude.hidden(self.checker.owners, self.is_foreign)
        if self._decls:
            yield from self._missing()
        yield from self._refused()

    def _missing(self) -> Iterator[Diagnostic]:
        """Names behind a prefix that its file does not have."""
        assert self.checker is not None
        for name, readers in list(self.checker.readers.items()):
            prefix, dot, last = name.partition(".")
            module = self.table.prefixes.get(prefix) if dot else None
            if module is None or name in self.table.offered or name in self.table.failed or "." in last:
                continue
            names = module.public
            for uid in sorted(uid for uid in readers if not self.is_foreign(uid)):
                for place in _mentions(self.checker.records[uid].statement, name):
                    message, fixes = missing_name(last, module, names, place, f"{prefix}.")
                    yield Diagnostic(UNKNOWN_IMPORT, message, place, fixes=fixes)

    def _refused(self) -> Iterator[Diagnostic]:
        told: set[str] = set()
        for uid, one in self.linked.items():
            if one.refused is not None and one.refused not in told:
                told.add(one.refused)
                yield Diagnostic(UNSUPPORTED, one.refused, self.import_of(uid))

    def import_of(self, uid: int) -> Origin:
        """The import by which a statement of another file came here; else the first use of a name of that file."""
        one, known = self.linked[uid], self.table.known
        location = one.module.location
        for each in self.table.imports:
            if each.module is not None and location in (each.module.location, *each.module.table.modules):
                return Origin(each.uid, each.decl.path.span)
        names = sorted(known, key=lambda name: (known[name][0] != location, name not in one.names))
        places = (place for name in names for place in self._prelude.uses(name, self._own_readers(name)))
        return next(places, Origin(self._own.statements[0].uid, Span(0, 0)))

    # ---------------------------------------------------------------- the layout that the checker sees

    def statement_of(self, uid: int) -> Statement:
        """A statement as the checker reads it."""
        uid = statement_uid(uid)
        if self.is_foreign(uid):
            return self.linked[uid].statement
        statement = self._own.statement_of(uid)
        return self._rewrite(statement) if self._decls else statement

    def start_line(self, uid: int) -> int:
        """Where a statement stands: those of other files above all own ones, file by file."""
        if not self.is_foreign(uid):
            return self._own.start_line(uid)
        number, line = self._place(self.linked[uid])
        return ((number - len(self._at) - 1) << 32) + line

    @property
    def statements(self) -> list[Statement]:
        """The file's own statements, as they are written."""
        return self._own.statements

    def range(self, uid: int, span: Span) -> Range:
        """Where a span of a unit stands, in the text of its file."""
        if not self.is_foreign(uid):
            return self._own.range(uid, span)
        one = self.linked[statement_uid(uid)]
        return one.module.layout.range(one.source | (uid & LOW), span)

    # ---------------------------------------------------------------- own statements

    def _rewrite(self, statement: Statement) -> Statement:
        """A statement of this file with `l.block` as one name, and names as they are called here."""
        known = self._rewritten.get(statement.uid)
        if known is None or known[0] is not statement:
            self._rewritten[statement.uid] = known = (statement, self._renaming(statement).statement(statement))
        return known[1]

    def _renaming(self, statement: Statement) -> Renaming:
        if isinstance(statement.header.unit.node, ImportDecl):
            return Renaming({})
        declared = (name.text for name in statement.header.unit.declares)
        bound = {*_bound_names(statement), *declared} & {*self.table.prefixes, *self.table.offered}
        key = tuple(sorted(bound))
        found = self._renamings.get(key)
        if found is None:
            names = {local: name for local, name in self._called.items() if local != name and local not in bound}
            found = self._renamings[key] = Renaming(names, self.table.prefixes.keys() - bound)
        return found

    # ---------------------------------------------------------------- edits

    def taking(self, removed: Iterable[int], added: Iterable[int], changed: Iterable[int]) -> Changes:
        """What the checker is to take over for an edit of this file's own text."""
        removed, added, changed = tuple(removed), tuple(added), tuple(changed)
        for uid in removed:
            self._rewritten.pop(uid, None)
        before, order = dict(self._decls), self._order
        for uid in removed:
            self._decls.pop(uid, None)
        for uid in (*added, *changed):
            node = self._own.statement_of(uid).header.unit.node
            if isinstance(node, ImportDecl):
                self._decls[uid] = node
            else:
                self._decls.pop(uid, None)
        self._order = sorted(self._decls, key=self._own.start_line)
        if self._decls == before and self._order == order:
            return removed, added, changed, ()
        more, moved = self._renew(self._declared())
        fresh = {*removed, *added, *changed}
        return removed, added, (*changed, *(uid for uid in more if uid not in fresh)), moved

    def _declared(self) -> frozenset[str]:
        return frozenset(name.text for statement in self._own.statements for name in statement.header.unit.declares)

    def _renew(self, own: frozenset[str]) -> tuple[list[int], tuple[str, ...]]:
        """Follow the imports again; own statements that read otherwise now, and names that failed before or do now."""
        before = self.table
        decls = [(uid, self._decls[uid]) for uid in self._order]
        known = self._known
        self.table = table_of(decls, own, self._location, self._library, known) if decls or known else NO_TABLE
        self._at = {location: at for at, location in enumerate(self.table.modules)}
        called = {local: self.table.name_of(target) for local, target in self.table.offered.items()}
        changed: list[int] = []
        if called != self._called or before.prefixes.keys() != self.table.prefixes.keys():
            self._called = called
            changed = self._read_again()
        prefixes = before.prefixes.keys() ^ self.table.prefixes.keys()
        assert self.checker is not None
        dotted = [name for name in self.checker.readers if "." in name and name.partition(".")[0] in prefixes]
        gone = [name for name in before.offered.keys() ^ self.table.offered.keys() if "." in name]
        return changed, (*(before.failed ^ self.table.failed), *dotted, *gone)

    def _read_again(self) -> list[int]:
        """The own statements that read otherwise since names are called otherwise."""
        self._renamings.clear()
        old, self._rewritten = self._rewritten, {}
        changed: list[int] = []
        for statement in self._own.statements:
            held = old.get(statement.uid)
            read = statement if held is None else held[1]
            if self.statement_of(statement.uid) != read:
                changed.append(statement.uid)
        return changed

    def settle(self) -> Changes | None:
        """What the checker is to take over next: statements of other files that are used now, or no longer."""
        known = self._calls_now()
        if not (self._decls or self.linked or known or self._known):
            return None
        assert self.checker is not None
        if known != self._known or any((name in self.table.own) != self._is_own(name) for name in self.table.watched()):
            self._known = known
            return self._follow_again()
        return self._relink([], ())

    def waiting(self) -> int:
        """How many characters of the library are to be read for names that the file calls now and did not before."""
        fresh = {library_file(name) for name in self._calls_now() if name not in self._known}
        return sum(map(self._library.waiting, fresh))

    def _calls_now(self) -> tuple[str, ...]:
        """The names of the library that own statements call and none declares."""
        assert self.checker is not None
        readers, here = self.checker.readers, self._called
        read = (name for name in self._prelude.names if name in readers or here.get(name, name) in readers)
        read = (name for name in read if not self._is_own(name))
        return tuple(name for name in read if any(self._prelude.uses(name, self._own_readers(name))))

    def _own_readers(self, name: str) -> list[tuple[int, bool]]:
        """The own statements that mention a name, also as another import calls the same thing, and which bind it."""
        assert self.checker is not None
        used = [self.checker.users.get(each, ()) for each in {name, self._called.get(name, name)}]
        readers = {uid for each in {name, self._called.get(name, name)} for uid in self.checker.readers.get(each, ())}
        return [(uid, not any(uid in each for each in used)) for uid in sorted(readers) if not self.is_foreign(uid)]

    def _is_own(self, name: str) -> bool:
        assert self.checker is not None
        return any(not self.is_foreign(uid) for uid in self.checker.owners.get(name, ()))

    def refresh(self) -> Changes | None:
        """The same where another file has changed."""
        return self._follow_again() if self._decls or self._known else None

    def _follow_again(self) -> Changes | None:
        assert self.checker is not None
        more, moved = self._renew(frozenset(name for name in self.checker.owners if self._is_own(name)))
        return self._relink(more, moved)

    def _relink(self, changed: list[int], moved: tuple[str, ...]) -> Changes | None:
        found = self._closure()
        gone = tuple(uid for uid in self.linked if uid not in found)
        fresh = tuple(uid for uid in found if uid not in self.linked)
        other = tuple(uid for uid, one in found.items() if uid in self.linked and not one.same(self.linked[uid]))
        self.linked = {
            uid: one if uid in other or uid not in self.linked else replace(self.linked[uid], module=one.module)
            for uid, one in found.items()
        }
        self._names = frozenset(name for one in self.linked.values() for name in one.names.values())
        self._visible.clear()
        self._values = {name: value for one in self.linked.values() for name, value in one.values.items()}
        if not (gone or fresh or other or changed or moved):
            return None
        return gone, fresh, (*other, *changed), moved

    # ---------------------------------------------------------------- statements of other files

    def _closure(self) -> dict[int, Linked]:
        """Every statement of another file that something here depends on, in the order of files and lines."""
        assert self.checker is not None
        table = self.table
        wanted = [target for local, target in table.offered.items() if self._mentioned(local, table.name_of(target))]
        found: dict[int, Linked] = {}
        for target in (pending := wanted):
            module = table.modules.get(target[0])
            source = None if module is None else module.own(target[1])
            if module is None or source is None:
                continue
            uid = self._uid(module.location, source)
            if uid not in found:
                found[uid], more = self._link(module, source, uid)
                pending += more
        return dict(sorted(found.items(), key=lambda item: self._place(item[1])))

    def _mentioned(self, *names: str) -> bool:
        """Whether a statement of this file mentions a name."""
        assert self.checker is not None
        return any(not self.is_foreign(uid) for name in names for uid in self.checker.readers.get(name, ()))

    def _place(self, one: Linked) -> tuple[int, int]:
        """Where a statement stands among those of other files."""
        return self._at.get(one.module.location, 0), one.module.line(one.source)

    def _uid(self, location: str, source: int) -> int:
        key = (location, source)
        found = self._uids.get(key)
        if found is None:
            found = self._uids[key] = (FIRST_SERIAL + len(self._uids)) << SERIAL_BITS
        return found

    def _link(self, module: Module, source: int, uid: int) -> tuple[Linked, list[Target]]:
        """A statement of another file, and what it refers to."""
        one = module.declared(source)
        names: dict[str, str] = {}
        targets: list[Target] = []
        hidden: list[str] = []
        for name in sorted(one.references.reads):
            target = _target(module, name)
            if target is None or name.startswith(COMPOSITION):
                continue
            if name not in one.references.uses:
                hidden.append(name)
                continue
            names[name] = self.table.name_of(target)
            targets.append(target)
        for name in one.names:
            if not name.startswith(COMPOSITION):
                names[name] = self.table.name_of((module.location, name))
        values: dict[str, int] = {}
        for variable, value in one.holes.items():
            here = self._variable(variable, module, uid, names)
            if value is not None:
                values[here] = value
        refused, held = refusal(module, one, hidden), self.linked.get(uid)
        if held is not None and (held.at_home, held.names, held.refused) == (one.statement, names, refused):
            statement = held.statement
        else:
            statement = placed_as(Renaming(names).statement(one.statement), uid)
            statement = statement if refused is None else without_node(statement)
        return Linked(module, source, statement, one.statement, names, values, one.algebra, refused), targets

    def _variable(self, variable: str, module: Module, uid: int, names: dict[str, str]) -> str:
        """A hole's variable as it is called here."""
        if variable.startswith("@"):
            unit, dot, rest = variable[1:].partition(".")
            return f"@{uid | (int(unit) & LOW)}{dot}{rest}"
        owner, dot, index = variable.rpartition(".")
        if dot:
            return f"{names.get(owner, owner)}.{index}"
        # a size that the whole file shares by its name
        names[variable] = f"{self.table.paths[module.location]}.{variable}"
        return names[variable]


def _target(module: Module, name: str) -> Target | None:
    """What a name stands for in a module."""
    if module.own(name) is not None:
        return module.location, name
    return module.table.reached.get(name)


def _bound_names(statement: Statement) -> Iterator[str]:
    for placed in units_of(statement):
        yield from unit_references(placed.unit).binds


def _mentions(statement: Statement, name: str) -> Iterator[Origin]:
    for unit, span in mentions(statement, name):
        yield Origin(unit, span)
