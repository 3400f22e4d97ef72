"""Hover on an operator: what it joins here, read off the tree."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from qvr_core.ide.answers import Hover
from qvr_core.ide.descriptions import value_text
from qvr_core.ide.language import code, paragraphs
from qvr_core.ide.view import model_of
from qvr_core.semantics.types import model as m
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.display import space_text
from qvr_core.semantics.types.walk import all_steps, operands, parts, values, walk
from qvr_core.syntax import walk as tree
from qvr_core.syntax.tree import (
    Binary,
    ComposeExpr,
    CoproductExpr,
    Placed,
    ProductExpr,
    Span,
    Statement,
    TensorExpr,
)

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

SIGN = re.compile(r"~|<-|->")

SIGNS = {
    "~": ("morphism f : A -> B ~ Family", "What the kernel draws from; a prior or a value for tensor arrows."),
    "<-": ("sample v <- f(x)", "Draws v from an arrow or a family."),
    "->": ("f : A -> B", "From the domain to the codomain; the role decides the sort of the arrow."),
}

ARITHMETIC = {
    "+": "The sum",
    "-": "The difference",
    "*": "The product",
    "/": "The quotient",
    "^": "The power",
}

Joined = ComposeExpr | TensorExpr | ProductExpr | CoproductExpr | Binary


def operator_hover(snapshot: Snapshot, statement: Statement, placed: Placed[Any], offset: int) -> Hover | None:
    """What the sign at an offset of a unit means there."""
    for node in tree.walk(placed.unit.node):
        for span in _signs(node):
            if span.start <= offset <= span.end:
                return Hover(_text(snapshot, statement, placed, node, span), snapshot.range(Origin(placed.uid, span)))
    for match in SIGN.finditer(placed.unit.text):
        if match.start() <= offset <= match.end():
            stretch = snapshot.range(Origin(placed.uid, Span(match.start(), match.end())))
            return Hover(paragraphs(code(SIGNS[match[0]][0]), SIGNS[match[0]][1]), stretch)
    return None


def _signs(node: Any) -> tuple[Span, ...]:
    if isinstance(node, Binary):
        return (node.operator_span,)
    listed = isinstance(node, ComposeExpr | TensorExpr | ProductExpr | CoproductExpr)
    return node.operators if listed else ()


def _text(snapshot: Snapshot, statement: Statement, placed: Placed[Any], node: Joined, span: Span) -> str:
    match node:
        case ComposeExpr():
            return _compose(arrow_of(snapshot, statement), placed.uid, span)
        case TensorExpr():
            return _side_by_side(arrow_of(snapshot, statement), Origin(placed.uid, node.span))
        case ProductExpr():
            return paragraphs(code("A * B"), "The product: both values side by side. Widths of real spaces add.")
        case CoproductExpr():
            return paragraphs(code("A + B"), "The disjoint union: an element of either set. Sizes add.")
        case Binary():
            return _arithmetic(snapshot, statement, node, Origin(placed.uid, node.span))


def _compose(root: m.Arrow | None, unit: int, span: Span) -> str:
    held = None if root is None else _operator_at(root, unit, span.start)
    if held is None:
        return paragraphs(code("f >> g"), "First f, then g: the codomain of f must fit the domain of g.")
    compose, index = held
    left, right = compose.stages[index], compose.stages[index + 1]
    return paragraphs(
        code("f >> g"),
        f"Left gives {space_text(left.codomain)}, right wants {space_text(right.domain)}.",
        f"`{compose.domain.written} {compose.sort.value} {compose.codomain.written}`",
    )


def _operator_at(root: m.Arrow, unit: int, offset: int) -> tuple[m.Compose, int] | None:
    """The composition and the index of its `>>` at an offset."""
    for arrow in walk(root, parts):
        if isinstance(arrow, m.Compose):
            for index, origin in enumerate(arrow.operators):
                if origin.unit == unit and origin.span.start <= offset <= origin.span.end:
                    return arrow, index
    return None


def _side_by_side(root: m.Arrow | None, origin: Origin) -> str:
    for arrow in () if root is None else walk(root, parts):
        if isinstance(arrow, m.Tensor) and arrow.origin == origin:
            sides = f"`{arrow.domain.written} {arrow.sort.value} {arrow.codomain.written}`"
            return paragraphs(code("f @ g"), "Side by side: each on its own part of the input.", sides)
    return paragraphs(code("f @ g"), "Side by side: dom f * dom g to cod f * cod g.")


def _arithmetic(snapshot: Snapshot, statement: Statement, node: Binary, origin: Origin) -> str:
    names = statement.header.unit.declares
    program = model_of(snapshot).programs.get(names[0].text) if names else None
    typed = (
        expr
        for step in (() if program is None else all_steps(program.steps))
        for value in values(step)
        for expr in walk(value, operands)
        if expr.origin == origin
    )
    found = next(typed, None)
    meaning = ARITHMETIC.get(node.operator, "1 where it holds, 0 elsewhere")
    gives = "" if found is None else f"Gives {value_text(found.type)}."
    return paragraphs(code(f"x {node.operator} y"), f"{meaning}, element by element.", gives)


def arrow_of(snapshot: Snapshot, statement: Statement) -> m.Arrow | None:
    """The expression of a let or an export."""
    names = statement.header.unit.declares
    if names and names[0].text in model_of(snapshot).lets:
        return model_of(snapshot).lets[names[0].text].arrow
    for export in snapshot.model.exports if statement.header.unit.keyword == "export" else ():
        if export.origin.unit == statement.header.uid:
            return export.arrow
    return None
