"""Refactorings: extract to a let, inline a let, name a space, a width into a hole and back, order the declarations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from qvr_core.ide.answers import Action, TextEdit
from qvr_core.ide.symbols import Found, lookup, place_of, references
from qvr_core.ide.target import symbol_at
from qvr_core.ide.view import first_line, language_family, model_of
from qvr_core.semantics.types.diagnostics import Origin, Severity
from qvr_core.semantics.types.model.arrows import Stack
from qvr_core.semantics.types.spaces import Linear, sizes
from qvr_core.semantics.types.walk import parts
from qvr_core.semantics.types.walk import walk as arrow_walk
from qvr_core.syntax.source import Cursor, Range
from qvr_core.syntax.tree.arithmetic import Literal
from qvr_core.syntax.tree.arrows import (
    ArrowArg,
    ArrowCall,
    ArrowExpr,
    ArrowRef,
    ComposeExpr,
    ParenArrow,
    PostfixExpr,
    TensorExpr,
)
from qvr_core.syntax.tree.declarations import ExportDecl, LetDecl, ObjectDecl
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.objects import EnumExpr, FinSetExpr, Size, SpaceExpr
from qvr_core.syntax.tree.steps import SampleStep
from qvr_core.syntax.tree.units import Placed, Statement
from qvr_core.syntax.walk import walk

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

EXPRESSIONS = (ArrowCall, ComposeExpr, TensorExpr, PostfixExpr, ParenArrow)


def refactorings(snapshot: Snapshot, stretch: Range) -> list[Action]:
    """What may be done to the text at a stretch, or at a cursor where it is empty."""
    place = snapshot.unit_at(stretch.start)
    if place is None:
        return []
    statement, placed, offset = place
    end = offset
    if stretch.end != stretch.start:
        other = snapshot.unit_at(stretch.end)
        if other is None or other[1].uid != placed.uid:
            return []
        end = other[2]
    span = Span(offset, end)
    found = [
        *_extract(snapshot, statement, placed, span),
        *_inline(snapshot, stretch.start),
        *_name_space(snapshot, statement, placed, span),
        *_hole(snapshot, statement, placed, span),
        *_noncentred(snapshot, placed),
    ]
    return found


def _text(placed: Placed[Any], span: Span) -> str:
    return placed.unit.text[span.start : span.end]


def _fresh(snapshot: Snapshot, base: str) -> str:
    """A name that nobody has declared: `base`, `base_2`, …"""
    name, number = base, 1
    while name in snapshot.owners:
        number += 1
        name = f"{base}_{number}"
    return name


def _above(snapshot: Snapshot, placed: Placed[Any], line: str) -> TextEdit:
    """A new line above the statement of a unit."""
    start = snapshot.range(Origin(placed.uid, Span(0, 0))).start
    place = Cursor(first_line(snapshot, start), 0)
    return TextEdit(Range(place, place), line + "\n")


# ---------------------------------------------------------------- lets


def _extract(snapshot: Snapshot, statement: Statement, placed: Placed[Any], span: Span) -> Iterator[Action]:
    """The selected part of an arrow expression becomes a let above."""
    node = placed.unit.node
    if not isinstance(node, LetDecl | ExportDecl) or span.start == span.end:
        return
    wanted = _trimmed(placed, span)
    whole = node.value.span
    for part in walk(node.value):
        stages = _stages(part, wanted)
        if stages is None or stages == whole:
            continue
        text = _text(placed, stages)
        name = _fresh(snapshot, f"{node.name.text}_part" if isinstance(node, LetDecl) else "extracted")
        inner = text[1:-1] if isinstance(part, ParenArrow) and stages == part.span else text
        edits = (
            _above(snapshot, placed, f"let {name} = {inner}"),
            TextEdit(snapshot.range(Origin(placed.uid, stages)), name),
        )
        yield Action(f"Extract to `let {name}`", "refactor.extract", edits)
        return


def _stages(part: Any, wanted: Span) -> Span | None:
    """The span of a part that is exactly selected: a whole expression, or a run of stages of a pipeline."""
    if isinstance(part, EXPRESSIONS) and part.span == wanted:
        return part.span
    if isinstance(part, ComposeExpr):
        starts = {stage.span.start for stage in part.stages}
        ends = {stage.span.end for stage in part.stages}
        if wanted.start in starts and wanted.end in ends and wanted.start < wanted.end:
            inside = sum(wanted.start <= stage.span.start and stage.span.end <= wanted.end for stage in part.stages)
            return wanted if inside > 1 else None
    return None


def _trimmed(placed: Placed[Any], span: Span) -> Span:
    text = _text(placed, span)
    return Span(span.start + len(text) - len(text.lstrip()), span.end - (len(text) - len(text.rstrip())))


def _inline(snapshot: Snapshot, cursor: Cursor) -> Iterator[Action]:
    """Every use of a let is replaced by what it names, and the let goes."""
    found = symbol_at(snapshot, cursor)
    if found is None or found.symbol.kind != "let":
        return
    held = lookup(snapshot, found.symbol.name)
    if held is None:
        return
    node = held.statement.header.unit.node
    if not isinstance(node, LetDecl):
        return
    uses = [use for use in references(snapshot, found.symbol) if use.occurrence.part != "declare"]
    model = model_of(snapshot).lets.get(found.symbol.name)
    in_lets = all(isinstance(use.placed.unit.node, LetDecl | ExportDecl) for use in uses)
    if not uses or model is None or not in_lets:
        return  # a step draws from a name, not from an expression
    if len(uses) > 1 and any(isinstance(part, Stack) for part in arrow_walk(model.arrow, parts)):
        return  # the layers of a stack are fresh wherever it is written: two copies would no longer share them
    text = _text(held.statement.header, node.value.span)
    edits = [TextEdit(place_of(snapshot, use), _grouped(node.value, text, use)) for use in uses]
    edits.append(TextEdit(_whole_lines(snapshot, held.statement), ""))
    yield Action(f"Inline `{found.symbol.name}`", "refactor.inline", tuple(edits))


def _grouped(value: ArrowExpr, text: str, use: Found) -> str:
    """The text with parentheses where it would otherwise be read differently."""
    if isinstance(value, ArrowRef | ArrowCall | ParenArrow | PostfixExpr):
        return text
    node = use.placed.unit.node
    alone = isinstance(node, LetDecl | ExportDecl) and node.value.span == use.occurrence.span
    argument = any(isinstance(part, ArrowArg) and part.value.span == use.occurrence.span for part in walk(node))
    return text if alone or argument else f"({text})"


def _whole_lines(snapshot: Snapshot, statement: Statement) -> Range:
    """A statement with its documentation and the line end behind it."""
    start = Cursor(first_line(snapshot, Cursor(snapshot.layout.start_line(statement.uid), 0)), 0)
    end = snapshot.layout.end_line(statement.uid)
    if end < len(snapshot.lines):
        return Range(start, Cursor(end, 0))
    return Range(start, Cursor(end - 1, len(snapshot.lines[end - 1])))


# ---------------------------------------------------------------- spaces


def _name_space(snapshot: Snapshot, statement: Statement, placed: Placed[Any], span: Span) -> Iterator[Action]:
    """An anonymous space in a type becomes a declared object."""
    if isinstance(placed.unit.node, ObjectDecl):
        return
    for part in walk(placed.unit.node):
        if not isinstance(part, SpaceExpr | FinSetExpr | EnumExpr):
            continue
        if part.span.start <= span.start and span.end <= part.span.end:
            name = _fresh(snapshot, "Space" if isinstance(part, SpaceExpr) else "Elements")
            edits = (
                _above(snapshot, statement.header, f"object {name} : {_text(placed, part.span)}"),
                TextEdit(snapshot.range(Origin(placed.uid, part.span)), name),
            )
            yield Action(f"Name this space: `object {name}`", "refactor.extract", edits)
            return


def _hole(snapshot: Snapshot, statement: Statement, placed: Placed[Any], span: Span) -> Iterator[Action]:
    """A width becomes a hole that is inferred, and a solved hole its number."""
    node = placed.unit.node
    if not isinstance(node, ObjectDecl):
        return
    written = [part for part in walk(node.space) if isinstance(part, Size)]
    held = model_of(snapshot).objects.get(node.names[0].text)
    solved = list(sizes(held.space.space)) if held is not None else []
    for index, size in enumerate(written):
        if not (size.span.start <= span.start and span.end <= size.span.end):
            continue
        place = snapshot.range(Origin(placed.uid, size.span))
        if isinstance(size.value, int):
            yield Action("Let this size be inferred: `_`", "refactor.rewrite", (TextEdit(place, "_"),))
        elif len(solved) == len(written) and not isinstance(solved[index], Linear):
            number = str(int(solved[index]))  # pyright: ignore[reportArgumentType]
            yield Action(f"Write the inferred size out: {number}", "refactor.rewrite", (TextEdit(place, number),))


# ---------------------------------------------------------------- the whole file

ORDER = {
    "import": -1,
    "from": -1,
    "object": 0,
    "morphism": 1,
    "let": 2,
    "define": 2,
    "deduction": 3,
    "def": 3,
    "family": 3,
    "program": 4,
    "export": 5,
    "composition": -1,
    "transformation": 3,
    "data type": 1,
    "encoder": 3,
    "decoder": 3,
}


# Kinds that stand with blank lines around each.
APART = ("program", "composition", "transformation", "family", "encoder", "decoder")


def _noncentred(snapshot: Snapshot, placed: Placed[Any]) -> Iterator[Action]:
    """`[noncentred]` behind a draw whose parameters are not numbers that are written out."""
    step = placed.unit.node
    if not isinstance(step, SampleStep) or step.draw.expression is not None:
        return
    name = step.draw.name.text
    family = language_family(snapshot, name)
    given = () if step.options is None else step.options.items
    fixed = all(isinstance(arg.value, Literal) for arg in step.draw.args or ())
    if family is None or not family.noncentred or fixed or any(o.key.text == "noncentred" for o in given):
        return
    end = step.draw.span.end if not given else given[-1].span.end
    text = " [noncentred]" if not given else ", noncentred"
    edit = TextEdit(snapshot.range(Origin(placed.uid, Span(end, end))), text)
    yield Action(f"Sample `{step.pattern.names[0].text}` non-centred", "refactor.rewrite", (edit,))


def organize(snapshot: Snapshot) -> tuple[TextEdit, ...]:
    """Objects, morphisms, lets, deductions, programs, exports, with their comments; nothing where that cannot be.
    A composition holds for what comes after it: nothing moves across one."""
    statements = list(snapshot.statements)
    kinds = [statement.header.unit.keyword for statement in statements]
    damaged = any(found.code.severity is Severity.ERROR for found in snapshot.diagnostics())
    if damaged or not all(kind in ORDER for kind in kinds):
        return ()
    parts = list(accumulate(kind == "composition" for kind in kinds))
    ordered = sorted(range(len(statements)), key=lambda index: (parts[index], ORDER[kinds[index]]))
    if ordered == list(range(len(statements))):
        return ()
    arrow_kinds = [index for index in range(len(statements)) if ORDER[kinds[index]] in (2, 4)]
    if "export" not in kinds and arrow_kinds and [i for i in ordered if i in arrow_kinds][-1] != arrow_kinds[-1]:
        return ()  # without an export the last let or program is the file's arrow
    lines = snapshot.lines
    ends = [snapshot.layout.end_line(statement.uid) for statement in statements]
    # A comment above a blank line belongs to the file, and stays.
    head = first_line(snapshot, Cursor(snapshot.layout.start_line(statements[0].uid), 0))
    starts = [head, *ends[:-1]]
    chunks = ["\n".join(lines[start:end]).strip("\n") for start, end in zip(starts, ends, strict=True)]
    groups: list[str] = []
    previous = ""
    for index in ordered:
        kind = kinds[index]
        gap = "" if not groups else "\n\n" if ORDER[kind] != ORDER.get(previous) or kind in APART else "\n"
        groups.append(gap + chunks[index])
        previous = kind
    whole = Range(Cursor(head, 0), Cursor(ends[-1] - 1, len(lines[ends[-1] - 1])))
    return (TextEdit(whole, "".join(groups)),)
