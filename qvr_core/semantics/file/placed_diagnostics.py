"""Diagnostics at their absolute places in a text as it is now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Protocol

from qvr_core.semantics.file.declaration_sites import placed_site
from qvr_core.semantics.types.catalogue import INTERNAL_ERROR, syntax_code
from qvr_core.semantics.types.diagnostics import Code, Diagnostic, Edit, Fix, Origin, Place, Related, Severity
from qvr_core.semantics.types.internal_error import failure
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.internal_error import report
from qvr_core.syntax.source import Cursor, Range
from qvr_core.syntax.statements import Layout, statement_uid
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.units import Statement, SyntaxProblem


@immutable
class TextEdit:
    """Replace what stands in `range` by `text`."""

    range: Range
    text: str


@immutable
class LocatedFix:
    """A quick fix with its edits at absolute places."""

    title: str
    edits: tuple[TextEdit, ...]
    preferred: bool


@immutable
class LocatedRelated:
    """Another place that a diagnostic stems from."""

    message: str
    range: Range
    location: str = ""
    """The file of the place, where it is another one."""
    lines: tuple[str, str] = ("", "")
    """The lines of that file in which the place starts and ends."""


@immutable
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


class OtherFiles(Protocol):
    """Places in the files that are imported."""

    def find(self, place: Place) -> tuple[str, Range] | None: ...
    def lines(self, location: str, where: Range) -> tuple[str, str]: ...
    def import_of(self, place: Place) -> Origin | None: ...


@immutable
class Places:
    """Where things stand: the layout, which statement declares which name, and the files that are imported."""

    layout: Layout
    owners: Mapping[str, int]
    others: OtherFiles | None = None

    def find(self, place: Place) -> Range | None:
        """The stretch of text that a place names, None where it is gone."""
        try:
            if isinstance(place, Origin):
                return self.layout.range(place.unit, place.span)
            found = placed_site(self.layout.statement_of(self.owners[place.name]), place)
            return None if found is None else self.layout.range(*found)
        except KeyError:
            return None

    def imported(self, place: Place) -> Range | None:
        """The import that leads to a place in another file; None where it is in none, or that file has errors."""
        origin = None if self.others is None else self.others.import_of(place)
        return None if origin is None else self.find(origin)


MOST_LETTERS = 2_000
"""Of a message: it may quote what stands in the text, which may be of any length."""

Anchor = tuple[int, Statement, int, str | None]
"""A statement that a diagnostic names places in, with the line it stood at; the name by which it was found, if any."""

_START = Range(Cursor(0, 0), Cursor(0, 0))

Order = tuple[int, int, int, int, int, str, str]


@immutable
class Known:
    """A diagnostic as it was located before; without anchors where a place was not found.  `lines`: it has a fix that
    takes whole lines, which depend on whether the text ends there."""

    source: Diagnostic
    anchors: tuple[Anchor, ...]
    lines: bool
    order: Order
    placed: LocatedDiagnostic
    alone: tuple[int, Statement, int] | None
    """The only statement that it names places in, where it names it by no name."""


Remembered = dict[int, Known]
"""What was located before, by the diagnostic's id."""


def located(
    found: Iterable[Diagnostic],
    syntax: Iterable[tuple[int, SyntaxProblem]],
    places: Places,
    remembered: Remembered,
) -> tuple[LocatedDiagnostic, ...]:
    """All diagnostics of a text in its order.  What has only moved is moved along."""
    problems = [_problem_placed(uid, problem, places) for uid, problem in syntax]
    result = [(_order(problem), problem) for problem in problems]
    stands, at_hand = places.layout.stands, remembered.get
    for item in found:
        known = at_hand(id(item))
        if known is None or known.source is not item:
            known = None
        elif known.alone is not None and stands(*known.alone):
            result.append((known.order, known.placed))
            continue
        shift = None if known is None else _shift(known, places)
        if known is None or shift != 0:
            try:
                known = _locate(item, places) if known is None or shift is None else _moved(known, shift)
            except Exception as error:
                known = _locate(failure(error), places)
            if known is None:
                continue
            if len(remembered) > 20_000:
                remembered.clear()
            remembered[id(item)] = known
        result.append((known.order, known.placed))
    result.sort(key=itemgetter(0))
    return tuple([item for _, item in result])


def _order(item: LocatedDiagnostic) -> Order:
    (line, left), (last, right) = item.range
    return (line, left, last, right, item.code.severity.value, item.code.name, item.message)


# ---------------------------------------------------------------- what was located before


def _shift(known: Known, places: Places) -> int | None:
    """By how many lines everything that a diagnostic names has moved; None where more has changed."""
    layout = places.layout
    shift: int | None = None
    for uid, statement, line, name in known.anchors:
        if name is not None and places.owners.get(name) != uid:
            return None
        now = layout.find_statement(uid)
        if now is None or now[0] is not statement:
            return None
        moved = now[1] - line
        if shift is not None and moved != shift:
            return None
        shift = moved
    if known.lines and shift is not None and layout.end_line(known.anchors[0][0]) >= len(layout.lines):
        return None
    return shift


def _anchors(item: Diagnostic, places: Places) -> tuple[Anchor, ...]:
    found: dict[tuple[int, str | None], Anchor] = {}
    for place in _all_places(item):
        name = None if isinstance(place, Origin) else place.name
        uid = statement_uid(place.unit) if isinstance(place, Origin) else places.owners.get(place.name)
        at = None if uid is None else places.layout.find_statement(uid)
        if uid is None or at is None:
            return ()
        found[uid, name] = (uid, *at, name)
    return tuple(found.values())


def _all_places(item: Diagnostic) -> Iterator[Place]:
    yield item.place
    for one in item.related:
        yield one.place
    for fix in item.fixes:
        for edit in fix.edits:
            yield edit.place


def _moved(known: Known, lines: int) -> Known:
    item = known.placed

    def down(where: Range) -> Range:
        (first, left), (last, right) = where
        return Range(Cursor(first + lines, left), Cursor(last + lines, right))

    placed = LocatedDiagnostic(
        item.code,
        item.message,
        down(item.range),
        tuple([one if one.location else LocatedRelated(one.message, down(one.range)) for one in item.related]),
        tuple(
            [
                LocatedFix(fix.title, tuple([TextEdit(down(e.range), e.text) for e in fix.edits]), fix.preferred)
                for fix in item.fixes
            ]
        ),
    )
    anchors = tuple([(uid, statement, line + lines, name) for uid, statement, line, name in known.anchors])
    return Known(known.source, anchors, known.lines, _order(placed), placed, _alone(anchors))


# ---------------------------------------------------------------- one diagnostic


def _problem_placed(uid: int, problem: SyntaxProblem, places: Places) -> LocatedDiagnostic:
    try:
        return _located_problem(uid, problem, places)
    except Exception as error:
        return LocatedDiagnostic(INTERNAL_ERROR, report(error), _START, (), ())


def _located_problem(uid: int, problem: SyntaxProblem, places: Places) -> LocatedDiagnostic:
    layout = places.layout
    fixes: tuple[LocatedFix, ...] = ()
    if problem.fix is not None:
        title, edits = problem.fix
        below = "\n" + " " * layout.range(uid, Span(0, 0)).start.column
        placed = (TextEdit(layout.range(uid, span), text.replace("\n", below)) for span, text in edits)
        fixes = (LocatedFix(_bounded(title), tuple(placed), True),)
    return LocatedDiagnostic(
        syntax_code(problem), _bounded(problem.message), layout.range(uid, problem.span), (), fixes
    )


def _locate(item: Diagnostic, places: Places) -> Known | None:
    message = item.message
    where = places.find(item.place)
    if where is None and item.code is INTERNAL_ERROR:
        where = places.imported(item.place) or _START
    if where is None:
        # what is right at home goes wrong here
        error = places.others is not None and item.code.severity is Severity.ERROR
        where = places.imported(item.place) if error else None
        message = f"what is imported does not fit here: {message}"
    if where is None:
        return None
    related = [found for one in item.related if (found := _located_related(one, places)) is not None]
    fixes = [found for fix in item.fixes if (found := _located_fix(fix, places)) is not None]
    placed = LocatedDiagnostic(item.code, _bounded(message), where, tuple(related), tuple(fixes))
    lines = any(edit.where == "line" for fix in item.fixes for edit in fix.edits)
    anchors = _anchors(item, places)
    return Known(item, anchors, lines, _order(placed), placed, _alone(anchors))


def _bounded(text: str) -> str:
    """The beginning and the end of what is too long to be read."""
    if len(text) <= MOST_LETTERS:
        return text
    half = MOST_LETTERS // 2
    return f"{text[:half]} … ({len(text) - 2 * half:,} characters) … {text[-half:]}"


def _alone(anchors: tuple[Anchor, ...]) -> tuple[int, Statement, int] | None:
    return anchors[0][:3] if len(anchors) == 1 and anchors[0][3] is None else None


def _located_related(item: Related, places: Places) -> LocatedRelated | None:
    where = places.find(item.place)
    if where is not None:
        return LocatedRelated(_bounded(item.message), where)
    there = None if places.others is None else places.others.find(item.place)
    if there is None or places.others is None:
        return None
    location, where = there
    return LocatedRelated(_bounded(item.message), where, location, places.others.lines(location, where))


def _located_fix(fix: Fix, places: Places) -> LocatedFix | None:
    edits: list[TextEdit] = []
    for edit in fix.edits:
        found = _located_edit(edit, places)
        if found is None:
            return None
        edits.append(found)
    return LocatedFix(_bounded(fix.title), tuple(edits), fix.preferred)


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
