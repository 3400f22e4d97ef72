"""One document under edits: its tree, its typed model and what is wrong with it, kept current by statements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from qvr_core.semantics.catalogue import syntax_code
from qvr_core.semantics.checker import FileChecker
from qvr_core.semantics.declaration_sites import site_span
from qvr_core.semantics.declarations import Node
from qvr_core.semantics.diagnostics import (
    Code,
    Diagnostic,
    Edit,
    Fix,
    Origin,
    Place,
    Severity,
)
from qvr_core.semantics.model import (
    Composition,
    Deduction,
    Export,
    LetArrow,
    Model,
    ObjectModel,
    Program,
    Replicated,
)
from qvr_core.syntax.source import Cursor, Range
from qvr_core.syntax.statements import Document, units_of
from qvr_core.syntax.tree import Placed, Statement, SyntaxProblem

START = Range(Cursor(0, 0), Cursor(0, 0))


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace what stands in `range` by `text`."""

    range: Range
    text: str


@dataclass(frozen=True, slots=True)
class LocatedFix:
    """A quick fix with its edits at absolute places."""

    title: str
    edits: tuple[TextEdit, ...]
    preferred: bool


@dataclass(frozen=True, slots=True)
class LocatedRelated:
    message: str
    range: Range


@dataclass(frozen=True, slots=True)
class LocatedDiagnostic:
    """A diagnostic at its place in the text as it is now."""

    code: Code
    message: str
    range: Range
    related: tuple[LocatedRelated, ...]
    fixes: tuple[LocatedFix, ...]

    @property
    def severity(self) -> Severity:
        return self.code.severity


class Analyzer:
    """Owns one document."""

    def __init__(self, text: str = "") -> None:
        self.document = Document(text)
        self._checker = FileChecker(self.document)
        self._syntax: dict[int, tuple[tuple[int, SyntaxProblem], ...]] = {}
        self._snapshot: Snapshot | None = None
        uids = tuple(statement.uid for statement in self.document.statements)
        self._take((), uids, ())

    @property
    def text(self) -> str:
        return self.document.text

    def edit(self, start: Cursor, end: Cursor, new_text: str) -> None:
        """Replace the text between two places (columns in code points); places past an end count as that end."""
        self._take(*self.document.edit(start, end, new_text))

    def _take(self, removed: tuple[int, ...], added: tuple[int, ...], changed: tuple[int, ...]) -> None:
        for uid in removed:
            self._syntax.pop(uid, None)
        for uid in (*added, *changed):
            problems = _problems(self.document.statement_of(uid))
            if problems:
                self._syntax[uid] = problems
            else:
                self._syntax.pop(uid, None)
        self._checker.update(removed, added, changed)
        self._snapshot = None

    def snapshot(self) -> Snapshot:
        """The document as it is now; later edits do not touch it."""
        if self._snapshot is None:
            self._snapshot = Snapshot(self.document, self._checker, self._syntax)
        return self._snapshot


def _problems(statement: Statement) -> tuple[tuple[int, SyntaxProblem], ...]:
    found = list(statement.problems)
    for placed in units_of(statement):
        found.extend((placed.uid, problem) for problem in placed.unit.problems)
    return tuple(found)


class Snapshot:
    """One state of a document.  Immutable: what it says of a text is the same whenever it is asked."""

    def __init__(
        self,
        document: Document,
        checker: FileChecker,
        syntax: Mapping[int, tuple[tuple[int, SyntaxProblem], ...]],
    ) -> None:
        self.layout = document.frozen()
        self.lines = self.layout.lines
        self.statements = self.layout.statements
        self._state = checker.state()
        self.owners = self._state.owners
        self._found = tuple(checker.diagnostics())
        self._syntax = tuple(item for problems in syntax.values() for item in problems)
        self._located: tuple[LocatedDiagnostic, ...] | None = None
        self._model: Model | None = None

    # ---------------------------------------------------------------- places

    def range(self, place: Place) -> Range:
        """The stretch of text that a place names now; the start of the text where it is gone."""
        found = self.find(place)
        return START if found is None else found

    def find(self, place: Place) -> Range | None:
        """The stretch of text that a place names now, None where it is gone."""
        try:
            if isinstance(place, Origin):
                return self.layout.range(place.unit, place.span)
            header = self.layout.statement_of(self.owners[place.name]).header
            span = site_span(header.unit, place)
            return None if span is None else self.layout.range(header.uid, span)
        except KeyError:
            return None

    def statement_at(self, cursor: Cursor) -> Statement | None:
        """The statement whose lines hold the cursor."""
        return self.layout.statement_at(cursor.line)

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
        return sorted(set(found), key=lambda item: item[0])

    def diagnostics(self) -> tuple[LocatedDiagnostic, ...]:
        """Everything that is wrong with the text, in its order."""
        if self._located is None:
            located = [self._located_problem(uid, problem) for uid, problem in self._syntax]
            located += [found for item in self._found if (found := self._locate(item)) is not None]
            self._located = tuple(sorted(located, key=_order))
        return self._located

    def _located_problem(self, uid: int, problem: SyntaxProblem) -> LocatedDiagnostic:
        fixes: tuple[LocatedFix, ...] = ()
        if problem.fix is not None:
            title, edits = problem.fix
            located = tuple(TextEdit(self.layout.range(uid, span), text) for span, text in edits)
            fixes = (LocatedFix(title, located, True),)
        return LocatedDiagnostic(syntax_code(problem), problem.message, self.layout.range(uid, problem.span), (), fixes)

    def _locate(self, item: Diagnostic) -> LocatedDiagnostic | None:
        where = self.find(item.place)
        if where is None:
            return None
        related = [
            LocatedRelated(one.message, there) for one in item.related if (there := self.find(one.place)) is not None
        ]
        fixes = [found for fix in item.fixes if (found := self._located_fix(fix)) is not None]
        return LocatedDiagnostic(item.code, item.message, where, tuple(related), tuple(fixes))

    def _located_fix(self, fix: Fix) -> LocatedFix | None:
        edits: list[TextEdit] = []
        for edit in fix.edits:
            found = self._located_edit(edit)
            if found is None:
                return None
            edits.append(found)
        return LocatedFix(fix.title, tuple(edits), fix.preferred)

    def _located_edit(self, edit: Edit) -> TextEdit | None:
        where = self.find(edit.place)
        if where is None:
            return None
        match edit.where:
            case "before":
                return TextEdit(Range(where.start, where.start), edit.text)
            case "after":
                return TextEdit(Range(where.end, where.end), edit.text)
            case "line-before":
                at = Cursor(self._statement_lines(where)[0], 0)
                return TextEdit(Range(at, at), edit.text + "\n")
            case "line-after":
                last = self._statement_lines(where)[1] - 1
                at = Cursor(last, len(self.lines[last]))
                return TextEdit(Range(at, at), "\n" + edit.text)
            case "line":
                first, behind = self._statement_lines(where)
                return TextEdit(self._whole_lines(first, behind), edit.text)
            case _:
                return TextEdit(where, edit.text)

    def _statement_lines(self, where: Range) -> tuple[int, int]:
        statement = self.layout.statement_at(where.start.line)
        if statement is None:
            return where.start.line, where.end.line + 1
        return self.layout.start_line(statement.uid), self.layout.end_line(statement.uid)

    def _whole_lines(self, first: int, behind: int) -> Range:
        if behind < len(self.lines):
            return Range(Cursor(first, 0), Cursor(behind, 0))
        start = Cursor(first - 1, len(self.lines[first - 1])) if first else Cursor(0, 0)
        return Range(start, Cursor(behind - 1, len(self.lines[behind - 1])))


def _order(item: LocatedDiagnostic) -> tuple[Range, int, str, str]:
    return (item.range, item.code.severity.value, item.code.name, item.message)


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
    exports: list[Export] = []
    order: list[str] = []
    anonymous = 0
    for statement in snapshot.statements:
        checked = snapshot._state.checked.get(statement.uid)  # pyright: ignore[reportPrivateUsage]
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
                if snapshot.owners.get(name) != statement.uid:
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
                case Deduction():
                    deductions[name] = node
                case _:
                    arrows[name] = node
    return Model(objects, arrows, replicated, lets, programs, compositions, deductions, tuple(exports), tuple(order))


def analyse(text: str) -> Snapshot:
    """Analysis of a whole text, for those who need no edits."""
    return Analyzer(text).snapshot()


__all__ = ["Analyzer", "Cursor", "LocatedDiagnostic", "LocatedFix", "Range", "Snapshot", "TextEdit", "analyse"]
