"""Diagnostics at their absolute places in a text as it is now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from qvr_core.semantics.catalogue import syntax_code
from qvr_core.semantics.declaration_sites import site_span
from qvr_core.semantics.diagnostics import Code, Diagnostic, Edit, Fix, Origin, Place, Severity
from qvr_core.syntax.source import Cursor, Range
from qvr_core.syntax.statements import Layout, statement_uid
from qvr_core.syntax.tree import Statement, SyntaxProblem


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
    """Another place that a diagnostic stems from."""

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


@dataclass(frozen=True, slots=True)
class Places:
    """Where things stand: the layout, and which statement declares which name."""

    layout: Layout
    owners: Mapping[str, int]

    def find(self, place: Place) -> Range | None:
        """The stretch of text that a place names, None where it is gone."""
        try:
            if isinstance(place, Origin):
                return self.layout.range(place.unit, place.span)
            header = self.layout.statement_of(self.owners[place.name]).header
            span = site_span(header.unit, place)
            return None if span is None else self.layout.range(header.uid, span)
        except KeyError:
            return None


Remembered = dict[int, tuple[Diagnostic, Statement, int, LocatedDiagnostic]]
"""What was located before, by the diagnostic's id: with its statement, the line it stood at, and the result."""


def located(
    found: Iterable[Diagnostic],
    syntax: Iterable[tuple[int, SyntaxProblem]],
    places: Places,
    remembered: Remembered,
) -> tuple[LocatedDiagnostic, ...]:
    """All diagnostics of a text in its order.  What stands within one statement is only moved along with it."""
    result = [_located_problem(uid, problem, places) for uid, problem in syntax]
    for item in found:
        placed = _again(item, places, remembered)
        if placed is not None:
            result.append(placed)
    return tuple(sorted(result, key=_order))


def _order(item: LocatedDiagnostic) -> tuple[Range, int, str, str]:
    return (item.range, item.code.severity.value, item.code.name, item.message)


# ---------------------------------------------------------------- what was located before


def _again(item: Diagnostic, places: Places, remembered: Remembered) -> LocatedDiagnostic | None:
    known = remembered.get(id(item))
    layout = places.layout
    if known is not None and known[0] is item:
        _, statement, line, before = known
        try:
            now = layout.start_line(statement.uid)
            if layout.statement_of(statement.uid) is statement:
                return before if now == line else _moved(before, now - line)
        except KeyError:
            pass
    placed = _locate(item, places)
    home = _home(item)
    if placed is not None and home is not None:
        if len(remembered) > 20_000:
            remembered.clear()
        remembered[id(item)] = (item, layout.statement_of(home), layout.start_line(home), placed)
    return placed


def _home(item: Diagnostic) -> int | None:
    """The statement that all places of a diagnostic belong to; None where there are others."""
    home: int | None = None
    for place in _all_places(item):
        if not isinstance(place, Origin):
            return None
        uid = statement_uid(place.unit)
        if home is not None and uid != home:
            return None
        home = uid
    return home


def _all_places(item: Diagnostic) -> Iterator[Place | None]:
    yield item.place
    for one in item.related:
        yield one.place
    for fix in item.fixes:
        for edit in fix.edits:
            # whole lines depend on what stands around them
            yield None if edit.where.startswith("line") else edit.place


def _moved(item: LocatedDiagnostic, lines: int) -> LocatedDiagnostic:
    def down(where: Range) -> Range:
        (first, left), (last, right) = where
        return Range(Cursor(first + lines, left), Cursor(last + lines, right))

    return LocatedDiagnostic(
        item.code,
        item.message,
        down(item.range),
        tuple([LocatedRelated(one.message, down(one.range)) for one in item.related]),
        tuple(
            [
                LocatedFix(fix.title, tuple([TextEdit(down(e.range), e.text) for e in fix.edits]), fix.preferred)
                for fix in item.fixes
            ]
        ),
    )


# ---------------------------------------------------------------- one diagnostic


def _located_problem(uid: int, problem: SyntaxProblem, places: Places) -> LocatedDiagnostic:
    layout = places.layout
    fixes: tuple[LocatedFix, ...] = ()
    if problem.fix is not None:
        title, edits = problem.fix
        fixes = (LocatedFix(title, tuple(TextEdit(layout.range(uid, span), text) for span, text in edits), True),)
    return LocatedDiagnostic(syntax_code(problem), problem.message, layout.range(uid, problem.span), (), fixes)


def _locate(item: Diagnostic, places: Places) -> LocatedDiagnostic | None:
    where = places.find(item.place)
    if where is None:
        return None
    related = [
        LocatedRelated(one.message, there) for one in item.related if (there := places.find(one.place)) is not None
    ]
    fixes = [found for fix in item.fixes if (found := _located_fix(fix, places)) is not None]
    return LocatedDiagnostic(item.code, item.message, where, tuple(related), tuple(fixes))


def _located_fix(fix: Fix, places: Places) -> LocatedFix | None:
    edits: list[TextEdit] = []
    for edit in fix.edits:
        found = _located_edit(edit, places)
        if found is None:
            return None
        edits.append(found)
    return LocatedFix(fix.title, tuple(edits), fix.preferred)


def _located_edit(edit: Edit, places: Places) -> TextEdit | None:
    where = places.find(edit.place)
    if where is None:
        return None
    lines = places.layout.lines
    match edit.where:
        case "before":
            return TextEdit(Range(where.start, where.start), edit.text)
        case "after":
            return TextEdit(Range(where.end, where.end), edit.text)
        case "line-before":
            at = Cursor(_statement_lines(where, places.layout)[0], 0)
            return TextEdit(Range(at, at), edit.text + "\n")
        case "line-after":
            last = _statement_lines(where, places.layout)[1] - 1
            at = Cursor(last, len(lines[last]))
            return TextEdit(Range(at, at), "\n" + edit.text)
        case "line":
            return TextEdit(_whole_lines(*_statement_lines(where, places.layout), places.layout), edit.text)
        case _:
            return TextEdit(where, edit.text)


def _statement_lines(where: Range, layout: Layout) -> tuple[int, int]:
    statement = layout.statement_at(where.start.line)
    if statement is None:
        return where.start.line, where.end.line + 1
    return layout.start_line(statement.uid), layout.end_line(statement.uid)


def _whole_lines(first: int, behind: int, layout: Layout) -> Range:
    lines = layout.lines
    if behind < len(lines):
        return Range(Cursor(first, 0), Cursor(behind, 0))
    start = Cursor(first - 1, len(lines[first - 1])) if first else Cursor(0, 0)
    return Range(start, Cursor(behind - 1, len(lines[behind - 1])))
