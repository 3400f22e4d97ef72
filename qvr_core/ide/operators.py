"""What an operator or a sign means where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qvr_core.ide.hovers.sites import value_text
from qvr_core.ide.prose import Code, Prose, prose
from qvr_core.ide.target import Operator, Sign
from qvr_core.ide.view import model_of
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import Arrow, Compose, Tensor
from qvr_core.semantics.types.type_text import space_text, structure
from qvr_core.semantics.types.walk import all_steps, operands, parts, values, walk
from qvr_core.syntax.tree.arithmetic import Binary, FactorCase, Lambda
from qvr_core.syntax.tree.arrows import ComposeExpr, TensorExpr
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.objects import CoproductExpr, FinSetExpr, ProductExpr, Size, SpaceExpr
from qvr_core.syntax.tree.units import Statement
from qvr_core.syntax.walk import walk as walk_tree

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

SIGNS = {
    "~": ("morphism f : A -> B ~ Family", "What the kernel draws from; a prior or a value for tensor arrows."),
    "<-": ("sample v <- f(x)", "Draws v from an arrow or a family."),
    "->": ("f : A -> B", "From the domain to the codomain; the role decides the sort of the arrow."),
    "_": ("object County : FinSet _", "A size that comes with the data, as the elements do."),
}

ARITHMETIC = {
    "+": "The sum",
    "-": "The difference",
    "*": "The product",
    "/": "The quotient",
    "^": "The power",
}


def sign_text(snapshot: Snapshot, sign: Sign) -> Prose:
    """What a sign means where it stands."""
    match sign.node:
        case FinSetExpr() | SpaceExpr() | Size() if sign.text == "_":
            return _hole(snapshot, sign)
        case Lambda() if sign.text == "->":
            shown, meaning = "x -> e", "A function: what e is for each x."
        case FactorCase():
            shown, meaning = "0 -> e", "The value of the factor at this element."
        case _:
            shown, meaning = SIGNS[sign.text]
    return prose(Code(shown), meaning)


def _hole(snapshot: Snapshot, sign: Sign) -> Prose:
    """A size that is not written: that of a set comes with the data, a width from where the space is used."""
    names = [name.text for name in sign.placed.unit.declares]
    listed = (
        f"`{names[0]}`" if len(names) == 1 else f"{', '.join(f'`{name}`' for name in names[:-1])} and `{names[-1]}`"
    )
    of = f"of {listed} " if names and sign.placed.unit.keyword == "object" else ""
    if any(isinstance(node, FinSetExpr) for node in _around(sign)):
        says = f"The size {of}is not written: it comes with the data, and so do the elements."
    else:
        held = model_of(snapshot).objects.get(names[0]) if of else None
        found = f" Here: `{structure(held.space.space)}`." if held is not None else ""
        says = f"The size {of}is not written: it is found from where the space is used.{found}"
    return prose(Code(sign.placed.unit.text if of else SIGNS["_"][0]), says)


def _around(sign: Sign) -> list[Any]:
    return [node for node in walk_tree(sign.placed.unit.node) if node.span.start <= sign.span.start < node.span.end]


def operator_text(snapshot: Snapshot, operator: Operator) -> Prose:
    """What an operator joins here."""
    statement, uid, span = operator.statement, operator.placed.uid, operator.span
    match operator.node:
        case ComposeExpr():
            return _compose(arrow_of(snapshot, statement), uid, span)
        case TensorExpr(span=whole):
            return _side_by_side(arrow_of(snapshot, statement), Origin(uid, whole))
        case ProductExpr():
            return prose(Code("A * B"), "The product: both values side by side. Widths of real spaces add.")
        case CoproductExpr():
            return prose(Code("A + B"), "The disjoint union: an element of either set. Sizes add.")
        case Binary(span=whole) as node:
            return _arithmetic(snapshot, statement, node, Origin(uid, whole))


def _compose(root: Arrow | None, unit: int, span: Span) -> Prose:
    held = None if root is None else _operator_at(root, unit, span.start)
    if held is None:
        return prose(Code("f >> g"), "First f, then g: the codomain of f must fit the domain of g.")
    compose, index = held
    left, right = compose.stages[index], compose.stages[index + 1]
    return prose(
        Code("f >> g"),
        f"Left gives {space_text(left.codomain)}, right wants {space_text(right.domain)}.",
        f"`{compose.domain.written} {compose.sort.value} {compose.codomain.written}`",
    )


def _operator_at(root: Arrow, unit: int, offset: int) -> tuple[Compose, int] | None:
    """The composition and the index of its `>>` at an offset."""
    for arrow in walk(root, parts):
        if isinstance(arrow, Compose):
            for index, origin in enumerate(arrow.operators):
                if origin.unit == unit and origin.span.start <= offset <= origin.span.end:
                    return arrow, index
    return None


def _side_by_side(root: Arrow | None, origin: Origin) -> Prose:
    for arrow in () if root is None else walk(root, parts):
        if isinstance(arrow, Tensor) and arrow.origin == origin:
            sides = f"`{arrow.domain.written} {arrow.sort.value} {arrow.codomain.written}`"
            return prose(Code("f @ g"), "Side by side: each on its own part of the input.", sides)
    return prose(Code("f @ g"), "Side by side: dom f * dom g to cod f * cod g.")


def _arithmetic(snapshot: Snapshot, statement: Statement, node: Binary, origin: Origin) -> Prose:
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
    gives = "" if found is None else f"Gives {value_text(found.type, rows=program is not None and program.uses_input)}."
    return prose(Code(f"x {node.operator} y"), f"{meaning}, element by element.", gives)


def arrow_of(snapshot: Snapshot, statement: Statement) -> Arrow | None:
    """The expression of a let or an export."""
    names = statement.header.unit.declares
    if names and names[0].text in model_of(snapshot).lets:
        return model_of(snapshot).lets[names[0].text].arrow
    for export in snapshot.model.exports if statement.header.unit.keyword == "export" else ():
        if export.origin.unit == statement.header.uid:
            return export.arrow
    return None
