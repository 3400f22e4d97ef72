"""The driver: keeps the checks of all statements of a file current under edits.

A statement is checked again when its own text changes or the signature of a name that it mentions does.  Holes are
solved in regions of tied unknowns; a solved hole is an ordinary size for every check that follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from qvr_core.semantics.file import file_rules
from qvr_core.semantics.file.composition_in_force import Algebras
from qvr_core.semantics.file.contradictions import Contradictions
from qvr_core.semantics.file.declaration_cycles import Circles
from qvr_core.semantics.file.declarations import Checked, check_statement, declared_names, signature
from qvr_core.semantics.file.imported import Imports, NoImports, Statements, Within
from qvr_core.semantics.file.open_sets import KnownSet, is_open
from qvr_core.semantics.file.references import NO_REFERENCES, References, StatementReferences, renew
from qvr_core.semantics.file.replicated_arrows import Copies
from qvr_core.semantics.file.statement_records import Key, Record, State, in_order
from qvr_core.semantics.programs.programs import check_program
from qvr_core.semantics.scope.holes import Holes
from qvr_core.semantics.scope.overlays import Tracked
from qvr_core.semantics.scope.scope import Argument, DamagedEntry, Entry, FamilyEntry, Scope
from qvr_core.semantics.types.diagnostics import Diagnostic, Origin, Place, Severity
from qvr_core.semantics.types.dimensions import System, is_rigid
from qvr_core.semantics.types.internal_error import NOWHERE, failure
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.program_codes import SATURATED_JOIN
from qvr_core.syntax.internal_error import failed_unit
from qvr_core.syntax.statements import statement_uid, units_of
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.units import Statement

T = TypeVar("T")

MOST_ROUNDS = 12
"""Rounds of solving and checking again; two are the rule."""

DECLARATION = 10
"""A declaration is as much work as so many lines of a program: some 60 µs."""

COPY = 2
"""And each of its copies as so many."""


class FileChecker:
    """The checks of one file."""

    def __init__(
        self, layout: Statements, known: Mapping[str, KnownSet] | None = None, imports: Imports | None = None
    ) -> None:
        """`imports` has put statements of other files among those of `layout`."""
        self.layout = layout
        self.imports: Imports = imports or NoImports()
        self._views: dict[int, Within] = {}
        self.known = known or {}  # open sets whose elements the data have told
        self.records = Tracked[int, Record]()
        self.checked = Tracked[int, Checked]()
        self.owners: dict[str, list[int]] = {}  # statements that declare a name, in file order; the first one counts
        self.readers: dict[str, set[int]] = {}
        self.users: dict[str, set[int]] = {}
        self._mentions: dict[int, StatementReferences] = {}
        self.entries = Tracked[str, Entry]()
        self.system = System({f"{name}.0": found.size for name, found in self.known.items()})
        self.holes = Holes(self.system)
        self.circles = Circles(self)
        self.rules = file_rules.FileRules(self)
        self.algebras = Algebras(self)
        self.copies = Copies(layout)
        self.contradictions = Contradictions(self)
        self.failures: list[Diagnostic] = []
        """Rules that failed themselves: what is kept under edits may be torn then, and only a fresh check is right."""
        self.flagged: set[int] = set()
        self.saturating: set[int] = set()
        """Statements that warn of a join, at another declaration."""
        self._state: State | None = None
        self._checking: tuple[str, ...] = ()
        """Names that the statement being checked declares itself: it cannot be said what they are."""
        self._providers = Tracked[str, int]()  # the statement that gave each entry
        self._size_owners: dict[str, int] = {}

    # ---------------------------------------------------------------- what checks ask (`scope.Globals`)

    def entry(self, name: str) -> Entry | None:
        if name in self._checking:
            return DamagedEntry(name)
        found = self.entries.get(name)
        return self.imports.entry(name) if found is None else found

    def solved(self, variable: str) -> int | None:
        known = self.known.get(variable.removesuffix(".0"))
        if known is not None:
            return known.size
        value = self.imports.value(variable)
        return self.holes.values.get(variable) if value is None else value

    def labels(self, name: str) -> tuple[str, ...] | None:
        return self.known[name].labels if name in self.known else None

    def check_program(self, statement: Statement, scope: Scope, arguments: Mapping[str, Argument]) -> Program:
        if self.imports.is_foreign(statement.uid):
            scope.globals = Within(scope.globals, self.imports.visible(statement.uid))
        return check_program(statement, scope, arguments)

    # ---------------------------------------------------------------- edits

    def updating(
        self, removed: Iterable[int], added: Iterable[int], changed: Iterable[int], moved: Iterable[str] = ()
    ) -> Iterator[int]:
        """Take over an edit: statements that are gone, new, or have another text (`syntax.statements.ChangeSet`), and
        names that imports now fail to bring, or no longer do.  Gives, after each statement, about how many lines were
        checked; nothing is final before the end."""
        removed, added, changed = tuple(removed), tuple(added), tuple(changed)
        self._state = None
        touched: set[str] = set()
        bounded = self._guarded(set[int](), partial(self.copies.update, (*removed, *changed), (*added, *changed)))
        changed += tuple(sorted(bounded - {*removed, *added, *changed}))
        fresh = {*added, *changed}
        mentioned = {uid: self.records[uid].references for uid in (*removed, *changed) if uid in self.records}
        yield COPY * self.copies.count(fresh)
        for uid in (*removed, *changed):
            touched |= self._forget(uid)
        for uid in removed:
            self._mentions.pop(uid, None)
        for uid in (*added, *changed):
            touched |= self._register(uid)
        for uid in {*mentioned, *fresh}:
            touched |= self._mention(uid, mentioned.get(uid, NO_REFERENCES))
        dirty = {uid for uid in fresh if uid in self.records}
        dirty.update(uid for name in moved for uid in self.readers.get(name, ()))
        touched |= self.rules.duplicated
        dirty |= self._choose_owners(touched)
        dirty |= self._guarded(set[int](), partial(self.circles.update, fresh, touched))
        dirty |= self._damage_circles()
        dirty |= self._guarded(set[int](), self.algebras.update)
        for _ in range(MOST_ROUNDS):
            yield from self._evaluate(dirty)
            moved = self._guarded(set[str](), partial(self.holes.solve, self.position))
            dirty = {uid for variable in moved for uid in self.holes.owners.get(variable, ())}
            if not dirty:
                break
        self._guarded(None, partial(self.rules.update, touched))

    def _guarded(self, nothing: T, rule: Callable[[], T], place: Place = NOWHERE) -> T:
        """What a rule gives; where it fails, `nothing`, and a diagnostic that says so."""
        try:
            return rule()
        except Exception as error:
            self.failures.append(failure(error, place))
            return nothing

    def _place(self, uid: int) -> Origin:
        """The first line of a statement."""
        return Origin(uid, Span(0, len(self.layout.statement_of(uid).header.unit.text)))

    def _forget(self, uid: int) -> set[str]:
        record = self.records.drop(uid)
        if record is None:
            return set()
        self._retract(uid, record)
        self.checked.drop(uid)
        self._views.pop(uid, None)
        for name in record.names:
            owners = self.owners[name]
            owners.remove(uid)
            if not owners:
                del self.owners[name]
        self.flagged.discard(uid)
        self.saturating.discard(uid)
        self.rules.forget(uid)
        return {*record.names}

    def _register(self, uid: int) -> set[str]:
        statement = self.layout.statement_of(uid)
        mentions = self._mentions.setdefault(uid, StatementReferences())
        try:
            names = declared_names(statement, copied=uid not in self.copies.beyond)
            references = mentions.update(statement)
        except Exception as error:
            self.failures.append(failure(error, self._place(uid)))
            header = statement.header
            unit = failed_unit("\n".join(placed.unit.text for placed in units_of(statement)), error)
            statement = replace(statement, header=replace(header, unit=unit, children=()))
            names, references = tuple(name.text for name in unit.declares), NO_REFERENCES
        record = Record(statement, tuple(dict.fromkeys(names)), references)
        self.records[uid] = record
        if not self.imports.is_foreign(uid):
            self._guarded(None, partial(self.rules.register, statement), self._place(uid))
        for name in record.names:
            self.owners.setdefault(name, []).append(uid)
        return {*record.names}

    def _mention(self, uid: int, before: References) -> set[str]:
        """Take over what a statement mentions now; the names that it began or ceased to use."""
        now = self.records[uid].references if uid in self.records else NO_REFERENCES
        renew(self.readers, uid, before.reads, now.reads)
        renew(self.users, uid, before.uses, now.uses)
        return {*(before.uses ^ now.uses)}

    def _choose_owners(self, touched: set[str]) -> set[int]:
        """Who declares each name now; the statements to check again since the one that counts is another."""
        dirty: set[int] = set()
        for name in touched:
            owners = self.owners.get(name)
            if owners is None:
                self._providers.drop(name)
                if self.entries.drop(name) is not None:
                    dirty |= self.readers.get(name, set())
                continue
            owners.sort(key=self.layout.start_line)
            provider = self._providers.get(name)
            if owners[0] != provider:
                # the one before does not count any more, so its sizes do not either
                dirty |= {uid for uid in (owners[0], provider) if uid is not None and uid in self.records}
        return dirty

    def _damage_circles(self) -> set[int]:
        """What a circle declares fits everywhere, whichever part of it is checked first."""
        dirty: set[int] = set()
        for uid in self.circles.members:
            for name in self.records[uid].names:
                if self.owners[name][0] == uid and not isinstance(self.entries.get(name), DamagedEntry):
                    self.entries[name] = DamagedEntry(name)
                    dirty |= self.readers.get(name, set())
        return dirty

    # ---------------------------------------------------------------- checking

    def _evaluate(self, dirty: set[int]) -> Iterator[int]:
        """Check `dirty` statements and, as signatures change, those that mention them; declarations before users."""
        budget = 50 * (len(dirty) + len(self.records))
        while dirty and budget > 0:
            for uid in in_order(next(iter(dirty)), dirty, self.records, self.owners):
                dirty.discard(uid)
                dirty |= self._checked(uid) - {uid}
                budget -= 1
                yield DECLARATION + len(self.records[uid].statement.header.children)

    def _checked(self, uid: int) -> set[int]:
        """The same as `_check`; where it fails, what the statement declares fits everywhere."""
        dirty = self._guarded(None, partial(self._check, uid), self._place(uid))
        if dirty is not None:
            return dirty
        self._checking = ()
        names = [name for name in self.records[uid].names if self.owners[name][0] == uid]
        for name in names:
            self.entries[name], self._providers[name] = DamagedEntry(name), uid
        return {reader for name in names for reader in self.readers.get(name, ())}

    def _check(self, uid: int) -> set[int]:
        """Check one statement; the statements that must follow."""
        record = self.records[uid]
        self._retract(uid, record)
        self._checking = record.names
        seen = self if not self.imports.is_foreign(uid) else self._view(uid)
        checked = check_statement(record.statement, seen, self.algebras.at(uid), self.copies.beyond.get(uid))
        record.checked = self.checked[uid] = checked
        self._checking = ()
        self._assert(uid, record)
        dirty: set[int] = set()
        moved: list[str] = []
        for name in {**checked.entries, **dict.fromkeys(record.names)}:
            owners = self.owners.get(name)
            if owners is not None and owners[0] != uid:
                continue
            entry = checked.entries.get(name) or DamagedEntry(name)
            if uid in self.circles.members:
                entry = DamagedEntry(name)
            before = self.entries.get(name)
            self.entries[name] = entry
            self._providers[name] = uid
            if before is None or signature(before) != signature(entry):
                moved.append(name)
                dirty |= self.readers.get(name, set())
        for name, entry in checked.entries.items() if moved else ():
            # whoever fans out over a replicated arrow reads its copies by the one name
            if isinstance(entry, FamilyEntry):
                dirty |= self.readers.get(name, set())
        if checked.diagnostics or checked.unknown_names:
            self.flagged.add(uid)
        else:
            self.flagged.discard(uid)
        joins = any(found.code is SATURATED_JOIN for found in checked.diagnostics)
        (self.saturating.add if joins else self.saturating.discard)(uid)
        return dirty

    def _view(self, uid: int) -> Within:
        """The file as a statement of another one sees it: the same object while the statement stays."""
        names = self.imports.visible(uid)
        view = self._views.get(uid)
        if view is None or view.names != names:
            view = self._views[uid] = Within(self, names)
        return view

    def _retract(self, uid: int, record: Record) -> None:
        """Take a statement's equations and sizes back."""
        checked = record.checked
        for index, equation in enumerate(checked.equations):
            self.holes.drop((uid, index))
            self.contradictions.drop((uid, index), equation.replica)
        for variable in (*checked.size_values, *checked.holes):
            if self._size_owners.get(variable) == uid:
                del self._size_owners[variable]
                self.system.forget(variable)
        for variable in checked.holes:
            self.holes.disown(variable, uid)
        self.contradictions.forget(record.wrong)
        if checked.equations or record.wrong or checked.size_values:
            self.contradictions.look_again()
        record.wrong = ()

    def _assert(self, uid: int, record: Record) -> None:
        """Bring a statement's equations and sizes in."""
        checked = record.checked
        counts = all(self.owners.get(name, (uid,))[0] == uid for name in record.names)
        if counts:
            self.system.know(checked.size_values)
            self._size_owners.update(dict.fromkeys(checked.size_values, uid))
            for variable in checked.holes:
                value = self.imports.value(variable)
                if value is None:
                    self.holes.own(variable, uid)
                else:
                    self.system.know({variable: value})
                    self._size_owners[variable] = uid
        wrong: list[Key] = []
        for index, equation in enumerate(checked.equations):
            key = (uid, index)
            rows = self.holes.put(key, equation.pairs)
            self.contradictions.fans_out(key, equation.replica)
            if is_rigid(rows):
                self.holes.drop(key)
            elif equation.wrong:
                wrong.append(key)
        record.wrong = tuple(wrong)
        self.contradictions.put(wrong)
        if checked.equations or checked.size_values:
            self.contradictions.look_again()

    # ---------------------------------------------------------------- findings

    def state(self) -> State:
        """What is known now, untouched by later edits."""
        if self._state is None:
            holes = dict(self.holes.values)
            kept = self.records.kept(), self.checked.kept(), self.entries.kept(), self._providers.kept()
            self._state = State(*kept, holes)
        return self._state

    def diagnostics(self) -> Iterator[Diagnostic]:
        """Everything that is wrong with the meaning of the file."""
        for uid in self.flagged - self.saturating:
            yield from self.records[uid].checked.diagnostics
        told: dict[Place, int] = {}
        for uid in sorted(self.saturating, key=self.layout.start_line):
            for found in self.records[uid].checked.diagnostics:
                # several expressions may join the weights of one latent: the first one tells
                if found.code is not SATURATED_JOIN or told.setdefault(found.place, uid) == uid:
                    yield found
        for found in (
            self.imports.diagnostics,
            self.circles.diagnostics,
            partial(self.rules.diagnostics, self.flagged),
            self._open_holes,
            self.contradictions.diagnostics,
        ):
            yield from self._guarded((), lambda found=found: tuple(found()))
        yield from self.failures

    def _open_holes(self) -> Iterator[Diagnostic]:
        if not self.rules.broken:  # a line that cannot be read may be what fixes a size
            asked = self.size_place, self._hole_text, self._doubtful, partial(is_open, file=self)
            yield from self.holes.diagnostics(self.position, *asked)

    def _doubtful(self) -> set[int]:
        """Statements with an error, and all that they speak of: a size there may be open because of the error."""
        reached: set[int] = set()
        pending = [uid for uid in self.flagged if self._has_error(uid)]
        while pending:
            uid = pending.pop()
            if uid not in reached:
                reached.add(uid)
                for name in self.records[uid].references.reads:
                    pending += self.owners.get(name, ())[:1]
        return reached

    def _has_error(self, uid: int) -> bool:
        checked = self.records[uid].checked
        errors = (item for item in checked.diagnostics if item.code.severity is Severity.ERROR)
        return bool(checked.unknown_names) or any(errors)

    def position(self, key: Key) -> tuple[int, int]:
        return self.layout.start_line(key[0]), key[1]

    def size_place(self, variable: str) -> Place | None:
        """Where a size is written."""
        if variable.startswith("@"):
            record = self.records.get(statement_uid(int(variable[1:].split(".", maxsplit=1)[0])))
            return record.checked.size_places.get(variable) if record is not None else None
        writers = sorted(self.holes.owners.get(variable, ()), key=self.layout.start_line)
        for uid in writers or self.owners.get(variable.rpartition(".")[0], ())[:1]:
            record = self.records.get(uid)
            if record is not None and variable in record.checked.size_places:
                return record.checked.size_places[variable]
        return None

    def _hole_text(self, variable: str) -> str:
        """How a hole is written; '' for an unknown that the text does not write."""
        owners = self.holes.owners.get(variable, ())
        return next((self.records[uid].checked.holes.get(variable, "") for uid in owners), "")
