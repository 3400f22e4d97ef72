"""One document under edits: its tree, its typed model and what is wrong with it, kept current by statements."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from threading import RLock
from typing import Any

from qvr_core.semantics.file.checker import FileChecker
from qvr_core.semantics.file.declarations import Node
from qvr_core.semantics.file.open_sets import KnownSet
from qvr_core.semantics.file.placed_diagnostics import (
    LocatedDiagnostic,
    LocatedFix,
    Places,
    Remembered,
    TextEdit,
    located,
)
from qvr_core.semantics.modules.import_table import Library, NoLibrary
from qvr_core.semantics.modules.imported_places import Elsewhere
from qvr_core.semantics.modules.linking import Changes, Links
from qvr_core.semantics.modules.module import Module
from qvr_core.semantics.modules.package import package_text
from qvr_core.semantics.modules.paths import location_of, shown
from qvr_core.semantics.modules.unlinked import Unlinked
from qvr_core.semantics.types.catalogue import INTERNAL_ERROR
from qvr_core.semantics.types.diagnostics import Place
from qvr_core.semantics.types.internal_error import failure
from qvr_core.semantics.types.model.deductions import Composition, Deduction, Transformation
from qvr_core.semantics.types.model.file import Export, LetArrow, Model, ObjectModel, Replicated
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.terms import DataType, Decoder, Encoder
from qvr_core.syntax.internal_error import report
from qvr_core.syntax.source import Cursor, Range
from qvr_core.syntax.statements import Document, Layout, units_of
from qvr_core.syntax.tree.declarations import ImportDecl
from qvr_core.syntax.tree.units import Placed, Statement, SyntaxProblem

CHARACTERS = 10
"""Of a file, whose analysis is as much work as the check of a line."""

START = Range(Cursor(0, 0), Cursor(0, 0))


class Analyzer:
    """Owns one document."""

    def __init__(
        self,
        text: str = "",
        known: Mapping[str, KnownSet] | None = None,
        location: str = "",
        library: Library | None = None,
    ) -> None:
        """`known` are the open sets whose elements the data have told.  Imports start from the folder of `location`,
        and what they name is looked for in the `library`."""
        self.location = location
        self.library: Library = library or PACKAGE
        self._known = known
        self._module: tuple[Snapshot, Module] | None = None
        deque(self._starting(text), maxlen=0)

    def _starting(self, text: str) -> Iterator[int]:
        """Analyse a whole text, in steps; where that fails, all of it that can be analysed."""
        try:
            yield from self._reading_all(Document(text), Links)
            return
        except Exception as error:
            unlinked = partial(Unlinked, error=error)
        try:
            yield from self._reading_all(Document(text), unlinked)
        except Exception:
            self._open(Document.unread(text), unlinked)

    def _reading_all(self, document: Document, links: Callable[[Layout, str, Library], Links]) -> Iterator[int]:
        self._open(document, links)
        yield from self._taking((), tuple(statement.uid for statement in document.statements), ())

    def _open(self, document: Document, links: Callable[[Layout, str, Library], Links]) -> None:
        self.document = document
        self.links = links(document, self.location, self.library)
        self._checker = self.links.checker = FileChecker(self.links, self._known, self.links)
        self._syntax: dict[int, tuple[tuple[int, SyntaxProblem], ...]] = {}
        self._remembered: Remembered = {}
        self._snapshot: Snapshot | None = None

    @property
    def text(self) -> str:
        return self.document.text

    def module(self) -> Module:
        """The file as those that import it see it now; the same object while nothing changes."""
        snapshot = self.snapshot()
        held = self._module
        if held is None or held[0] is not snapshot:
            parts = (self.location, self.text, snapshot.layout, self._checker, self.links.table)
            held = self._module = (snapshot, Module(*parts, snapshot.diagnostics()))
        return held[1]

    def refresh(self) -> bool:
        """Take over that a file to which the imports lead has changed; False where there are no imports."""
        table = self.links.table
        if not table.imports and not table.prelude and not isinstance(self.links, Unlinked):
            return False
        deque(self.refreshing(), maxlen=0)
        return True

    def refreshing(self) -> Iterator[int]:
        """The same in steps, as `editing` makes them."""
        yield self._reading(each.decl for each in self.links.table.imports)
        self._snapshot = None
        if self._torn:
            yield from self._starting(self.text)
            return
        try:
            yield from self._settling(self.links.refresh())
        except Exception:
            yield from self._starting(self.text)

    def _reading(self, imports: Iterable[ImportDecl]) -> int:
        """How much is to be read for some imports, in lines of code."""
        found = {location_of(each.path.value, self.location) for each in imports}
        return sum(self.library.waiting(each) for each in found if isinstance(each, str)) // CHARACTERS

    def edit(self, start: Cursor, end: Cursor, new_text: str) -> None:
        """Replace the text between two places (columns in code points); places past an end count as that end."""
        deque(self.editing(start, end, new_text), maxlen=0)

    def editing(self, start: Cursor, end: Cursor, new_text: str) -> Iterator[int]:
        """The same in steps, each with the number of lines of code that were checked: there are few or many, and the
        caller may go on elsewhere.  Nothing may be asked between the steps."""
        if self._torn:
            self.document.source.edit(start, end, new_text)
            yield from self._starting(self.text)
            return
        try:
            yield from self._taking(*self.document.edit(start, end, new_text))
        except Exception:
            yield from self._starting(self.text)

    @property
    def _torn(self) -> bool:
        """Whether something failed on the way here: what is kept under edits may be of two texts then."""
        return isinstance(self.links, Unlinked) or bool(self._checker.failures)

    def _taking(self, removed: tuple[int, ...], added: tuple[int, ...], changed: tuple[int, ...]) -> Iterator[int]:
        for uid in removed:
            self._syntax.pop(uid, None)
        for uid in (*added, *changed):
            problems = _problems(self.document.statement_of(uid))
            if problems:
                self._syntax[uid] = problems
            else:
                self._syntax.pop(uid, None)
        self._snapshot = None
        fresh = (self.document.statement_of(uid).header.unit.node for uid in (*added, *changed))
        yield self._reading(node for node in fresh if isinstance(node, ImportDecl))
        yield from self._settling(self.links.taking(removed, added, changed))

    def _settling(self, changes: Changes | None) -> Iterator[int]:
        """Hand changes to the checker, then the statements of other files that it turns out to need."""
        while changes is not None:
            yield from self._checker.updating(*changes)
            yield self.links.waiting() // CHARACTERS
            changes = self.links.settle()

    def snapshot(self) -> Snapshot:
        """The document as it is now; later edits do not touch it."""
        if self._snapshot is None:
            self._snapshot = Snapshot(self, self._checker, self._syntax, self._remembered)
        return self._snapshot


class Package(NoLibrary):
    """The library that comes with the package, for texts that have no place; each of its files is analysed once."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._modules: dict[str, Module] = {}

    def find(self, location: str, importer: str, written: str) -> Module | str:
        text = package_text(location)
        if text is None:
            return super().find(location, importer, written)
        with self._lock:
            if location not in self._modules:
                self._modules[location] = Analyzer(text, None, location, self).module()
            return self._modules[location]

    def waiting(self, location: str) -> int:
        return 0 if location in self._modules else len(package_text(location) or "")

    def known(self, location: str) -> Module | None:
        """A file of the library that has been analysed."""
        return self._modules.get(location)


PACKAGE = Package()


def _problems(statement: Statement) -> tuple[tuple[int, SyntaxProblem], ...]:
    """The problems of a statement: a reserved word that is used as a name is told where it is first."""
    found = list(statement.problems)
    taken: set[str] = set()
    for placed in units_of(statement):
        for problem in placed.unit.problems:
            word = placed.unit.text[problem.span.start : problem.span.end]
            if problem.code == "reserved-name" and word in taken:
                continue
            if problem.code == "reserved-name":
                taken.add(word)
            found.append((placed.uid, problem))
    return tuple(found)


class Snapshot:
    """One state of a document.  Immutable: what it says of a text is the same whenever it is asked."""

    def __init__(
        self,
        analyzer: Analyzer,
        checker: FileChecker,
        syntax: Mapping[int, tuple[tuple[int, SyntaxProblem], ...]],
        remembered: Remembered,
    ) -> None:
        self.layout = analyzer.document.frozen()
        self.lines = self.layout.lines
        self.statements = self.layout.statements
        self._state = checker.state()
        self.owners = self._state.owners
        self.location, self.library = analyzer.location, analyzer.library
        """Where the text has its place, and what its imports name."""
        links = analyzer.links
        self.table = links.table
        """What the imports bring."""
        self.elsewhere = Elsewhere(links, self.owners) if links.linked else None
        """Where the statements of other files stand."""
        self._places = Places(self.layout, self.owners, self.elsewhere)
        self._remembered = remembered
        try:
            self._found = tuple(checker.diagnostics())
        except Exception as error:
            self._found = (failure(error),)
        self.known = checker.known
        """The open sets whose elements the data have told."""
        self._syntax = tuple(item for problems in syntax.values() for item in problems)
        self._located: tuple[LocatedDiagnostic, ...] | None = None
        self._model: Model | None = None

    # ---------------------------------------------------------------- places

    def range(self, place: Place) -> Range:
        """The stretch of text that a place names now; for one in another file, the import that leads there; the start
        of the text where it is gone."""
        found = self.find(place)
        if found is None and self.elsewhere is not None:
            brought = self.elsewhere.import_of(place)
            found = None if brought is None else self.find(brought)
        return START if found is None else found

    def foreign(self, place: Place) -> str | None:
        """`layers.qvr:12`, where a place is in another file."""
        there = None if self.elsewhere is None or self.find(place) is not None else self.elsewhere.find(place)
        return None if there is None else f"{shown(there[0])}:{there[1].start.line + 1}"

    def find(self, place: Place) -> Range | None:
        """The stretch of text that a place names now, None where it is gone."""
        return self._places.find(place)

    def statement_at(self, cursor: Cursor) -> Statement | None:
        """The statement whose lines hold the cursor."""
        return self.layout.statement_at(cursor.line)

    def statement_of(self, name: str) -> Statement | None:
        """The statement that declares a name, as the checker reads it: one of another file under the names it has
        here."""
        record = self._state.records.get(self.owners.get(name, -1))
        return None if record is None else record.statement

    def unit_at(self, cursor: Cursor) -> tuple[Statement, Placed[Any], int] | None:
        """The statement, the unit in it, and the offset from the unit's start that the cursor is at."""
        statement = self.statement_at(cursor)
        if statement is None:
            return None
        top = self.layout.start_line(statement.uid)
        best = statement.header
        for placed in units_of(statement):
            if (top + placed.line, placed.column) <= cursor and placed.line >= best.line:
                best = placed
        start = Cursor(top + best.line, best.column)
        if cursor < start:
            return statement, best, 0
        if cursor.line == start.line:
            return statement, best, cursor.column - start.column
        between = sum(len(self.lines[line]) + 1 for line in range(start.line + 1, cursor.line))
        return statement, best, len(self.lines[start.line]) - start.column + 1 + between + cursor.column

    # ---------------------------------------------------------------- meaning

    @property
    def model(self) -> Model:
        """The typed model of the file; what could not be typed stands in it as `Damaged`."""
        if self._model is None:
            self._model = _model(self)
        return self._model

    def node(self, name: str) -> Node | None:
        """What the model says of one declared name, without the work of making the whole model."""
        checked = self._state.checked.get(self.owners.get(name, -1))
        return checked.nodes.get(name) if checked is not None else None

    @property
    def entries(self) -> Mapping[str, Any]:
        """What each declared name means to its users (`semantics.scope.Entry`)."""
        return self._state.entries

    def hole(self, variable: str) -> int | None:
        """The value that a hole is solved to."""
        return self._state.holes.get(variable)

    def holes(self) -> list[tuple[Range, str, int | None]]:
        """Every hole that the text writes: its place, how it is written, and its value where it is solved."""
        found: list[tuple[Range, str, int | None]] = []
        for checked in self._state.checked.values():
            for variable, written in checked.holes.items():
                where = self.find(checked.size_places[variable]) if written else None
                if where is not None:
                    found.append((where, written, self._state.holes.get(variable)))
        return sorted(dict.fromkeys(found), key=lambda item: item[0])

    def diagnostics(self) -> tuple[LocatedDiagnostic, ...]:
        """Everything that is wrong with the text, in its order."""
        if self._located is None:
            try:
                self._located = located(self._found, self._syntax, self._places, self._remembered)
            except Exception as error:
                self._located = (LocatedDiagnostic(INTERNAL_ERROR, report(error), START, (), ()),)
        return self._located


# ---------------------------------------------------------------- the model


def _model(snapshot: Snapshot) -> Model:
    """The model of a file from the nodes of its statements."""
    objects: dict[str, ObjectModel] = {}
    arrows: dict[str, Any] = {}
    replicated: dict[str, Replicated] = {}
    lets: dict[str, LetArrow] = {}
    programs: dict[str, Program] = {}
    compositions: dict[str, Composition] = {}
    deductions: dict[str, Deduction] = {}
    transformations: dict[str, Transformation] = {}
    data_types: dict[str, DataType] = {}
    term_arrows: dict[str, Encoder | Decoder] = {}
    exports: list[Export] = []
    order: list[str] = []
    anonymous = 0
    elsewhere = snapshot.elsewhere
    foreign = () if elsewhere is None else elsewhere.uids
    for uid in (*foreign, *(statement.uid for statement in snapshot.statements)):
        checked = snapshot._state.checked.get(uid)  # pyright: ignore[reportPrivateUsage]
        if checked is None:
            continue
        if checked.export is not None:
            export = checked.export
            if not export.name:
                anonymous += 1
                export = replace(export, name=f"export_{anonymous}")
            exports.append(export)
        for name, node in checked.nodes.items():
            if not isinstance(node, Composition):
                if snapshot.owners.get(name) != uid:
                    continue
                order.append(name)
            match node:
                case ObjectModel():
                    objects[name] = node
                case Replicated():
                    replicated[name] = node
                case LetArrow():
                    lets[name] = node
                case Program():
                    programs[name] = node
                case Composition():
                    compositions[name] = node
                case Transformation():
                    transformations[name] = node
                case DataType():
                    data_types[name] = node
                case Encoder() | Decoder():
                    term_arrows[name] = node
                case Deduction():
                    deductions[name] = node
                case _:
                    arrows[name] = node
    imported = frozenset[str]() if elsewhere is None else elsewhere.names()
    parts = (objects, arrows, replicated, lets, programs, compositions, deductions)
    return Model(*parts, tuple(exports), tuple(order), transformations, data_types, term_arrows, imported)


def analyse(
    text: str, known: Mapping[str, KnownSet] | None = None, location: str = "", library: Library | None = None
) -> Snapshot:
    """Analysis of a whole text, for those who need no edits; everything else as for `Analyzer`."""
    return Analyzer(text, known, location, library).snapshot()


__all__ = ["Analyzer", "Cursor", "LocatedDiagnostic", "LocatedFix", "Range", "Snapshot", "TextEdit", "analyse"]
