"""Inlay hints: what was inferred, shown where it would be written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from qvr_core.ide.answers import InlayHint, TextEdit
from qvr_core.ide.undeclared import undeclared_hints
from qvr_core.ide.view import language_family, model_of, statements_between
from qvr_core.semantics.scope.scope import is_name
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import Compose, Damaged, Instance, Scan
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.type_text import space_text
from qvr_core.semantics.types.walk import arrows_of, parts, walk
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.source import Cursor, Range
from qvr_core.syntax.tree.arithmetic import Variable
from qvr_core.syntax.tree.declarations import LetDecl, ProgramHeader
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.steps import DrawStep
from qvr_core.syntax.tree.units import Placed, Statement

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

Hints = Iterator[InlayHint]

# Pipelines of fewer stages show their spaces in the type of the let already.
LONG_PIPELINE = 3


def inlays(snapshot: Snapshot, stretch: Range) -> list[InlayHint]:
    """The hints of the statements that touch a stretch of text."""
    found: list[InlayHint] = []
    for statement in statements_between(snapshot, stretch.start.line, stretch.end.line):
        found += statement_inlays(snapshot, statement)
    found += _holes(snapshot, stretch)
    return [hint for hint in found if stretch.start <= hint.cursor <= stretch.end]


def statement_inlays(snapshot: Snapshot, statement: Statement) -> Hints:
    match statement.header.unit.node:
        case LetDecl():
            yield from _let(snapshot, statement)
        case ProgramHeader():
            for placed in units_of(statement):
                yield from _step(snapshot, placed)
            held = model_of(snapshot).programs.get(statement.header.unit.node.name.text)
            if held is not None:
                yield from _calls(snapshot, held)
            yield from undeclared_hints(snapshot, statement)
        case _:
            return


def _cursor(snapshot: Snapshot, uid: int, offset: int) -> Cursor:
    return snapshot.range(Origin(uid, Span(offset, offset))).start


def _let(snapshot: Snapshot, statement: Statement) -> Hints:
    node = statement.header.unit.node
    assert isinstance(node, LetDecl)
    held = model_of(snapshot).lets.get(node.name.text)
    if held is None or isinstance(held.arrow, Damaged):
        return
    arrow, uid = held.arrow, statement.header.uid
    written = f" : {arrow.domain.written} {arrow.sort.value} {arrow.codomain.written}"
    widths = f"{space_text(arrow.domain)} to {space_text(arrow.codomain)}"
    yield InlayHint(_cursor(snapshot, uid, node.name.span.end), written, "type", widths)
    for part in walk(arrow, parts):
        match part:
            case Compose(stages=stages, operators=operators) if len(stages) >= LONG_PIPELINE:
                for stage, operator in zip(stages, operators, strict=False):
                    place = _cursor(snapshot, operator.unit, operator.span.start)
                    yield InlayHint(place, f"{stage.codomain.written} ", "pipeline", space_text(stage.codomain))
            case Scan(inferred=True, backward=True):
                yield from _direction(snapshot, statement, part)
            case Instance(inferred=names) if names:
                yield from _solved(snapshot, part)
            case _:
                pass


def _direction(snapshot: Snapshot, statement: Statement, scan: Scan) -> Hints:
    """`, direction=backward` before the closing parenthesis of a scan whose name decided it."""
    end = scan.origin.span.end
    if scan.origin.unit == statement.header.uid and statement.header.unit.text[end - 1 : end] == ")":
        text = ", direction=backward"
        why = "Read off the name. Accept the hint to write it out."
        place = _cursor(snapshot, scan.origin.unit, end - 1)
        yield InlayHint(place, text, "direction", why, (TextEdit(Range(place, place), text),))


def _solved(snapshot: Snapshot, call: Instance) -> Hints:
    """`, X=Embedded` before the closing parenthesis of a template's call that leaves it out."""
    place = snapshot.range(call.origin).end
    place = Cursor(place.line, place.column - 1)
    if snapshot.lines[place.line][place.column : place.column + 1] != ")":
        return
    given = len(call.arguments) > len(call.inferred) or snapshot.lines[place.line][: place.column].rstrip()[-1:] != "("
    values = dict(call.arguments)
    text = (", " if given else "") + ", ".join(f"{name}={values[name]}" for name in call.inferred)
    named = all(isinstance(values[name], int) or is_name(str(values[name])) for name in call.inferred)
    tooltip = "What the arguments say." + (" Accept the hint to write it out." if named else "")
    yield InlayHint(place, text, "parameter", tooltip, (TextEdit(Range(place, place), text),) if named else ())


def _calls(snapshot: Snapshot, program: Program) -> Hints:
    """What the calls of templates in the steps of a program leave out."""
    for arrow in arrows_of(program):
        if isinstance(arrow, Instance) and arrow.inferred:
            yield from _solved(snapshot, arrow)


def _holes(snapshot: Snapshot, stretch: Range) -> Hints:
    """The solved size after each hole, and after each name that stands for one."""
    for place, written, value in snapshot.holes():
        if value is not None and stretch.start <= place.end <= stretch.end:
            edits = (TextEdit(place, str(value)),) if written == "_" else ()
            tooltip = f"The only size that fits: {value}." + (" Accept the hint to write it out." if edits else "")
            yield InlayHint(place.end, f" = {value}", "hole", tooltip, edits)


EVIDENT = frozenset({"loc", "scale", "rate"})
"""Parameters that whoever reads a program knows by their place."""


def _step(snapshot: Snapshot, placed: Placed[Any]) -> Hints:
    """Parameter names before the positional arguments of a family, where the name tells more than the place does."""
    node = placed.unit.node
    if not isinstance(node, DrawStep):
        return
    name = node.draw.name.text
    family = language_family(snapshot, name)
    arguments = node.draw.args or ()
    if family is None or len(family.parameters) < 2 or len(arguments) < 2:
        return
    for parameter, argument in zip(family.parameters, arguments, strict=False):
        if argument.key is not None:
            return
        evident = parameter.name in EVIDENT or len(parameter.name) == 1
        if not evident and not (isinstance(argument.value, Variable) and argument.value.name.text == parameter.name):
            place = _cursor(snapshot, placed.uid, argument.span.start)
            yield InlayHint(place, f"{parameter.name}=", "parameter", parameter.constraint)
