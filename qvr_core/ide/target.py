"""What stands at a cursor, said once for every answer about a place: a name, an operator, a sign, or a keyword."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from qvr_core.ide.completion.context import Bracket, Context, start_symbol
from qvr_core.ide.keywords import KEYWORDS
from qvr_core.ide.names import Occurrence, called_part, names_of
from qvr_core.ide.symbols import Found, Symbol, symbol_of
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.syntax.lexer import tokenize
from qvr_core.syntax.source import Cursor, Range
from qvr_core.syntax.tree.arithmetic import Binary
from qvr_core.syntax.tree.arrows import ComposeExpr, TensorExpr
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.objects import CoproductExpr, FinSetExpr, ProductExpr, SpaceExpr
from qvr_core.syntax.tree.units import Placed, Statement
from qvr_core.syntax.walk import walk

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

Joined = ComposeExpr | TensorExpr | ProductExpr | CoproductExpr | Binary
SIGNS = frozenset(("~", "<-", "->", "_"))


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of `node`: one of its signs where it joins several."""

    node: Joined
    span: Span
    placed: Placed[Any]
    statement: Statement


@dataclass(frozen=True, slots=True)
class Sign:
    """One of `SIGNS`; `node` is the innermost one that it belongs to."""

    text: str
    node: Any
    span: Span
    placed: Placed[Any]
    statement: Statement


@dataclass(frozen=True, slots=True)
class Keyword:
    """A word of the language that is no name."""

    text: str
    span: Span
    placed: Placed[Any]
    statement: Statement


Target = Found | Operator | Sign | Keyword


def target_at(snapshot: Snapshot, cursor: Cursor) -> Target | None:
    """What the cursor touches; None for space, comments, numbers, strings and brackets."""
    place = snapshot.unit_at(cursor)
    if place is None:
        return None
    statement, placed, offset = place
    touched = [found for found in names_of(placed.unit) if _holds(found.span, offset)]
    if touched:
        # Where two names touch, the one that begins at the cursor is meant.
        return Found(symbol_of(snapshot, statement, placed, touched[-1]), touched[-1], placed, statement)
    for node in walk(placed.unit.node):
        for span in _operators(node):
            if _holds(span, offset):
                return Operator(node, span, placed, statement)
    return next(_words(statement, placed, offset), None)


def symbol_at(snapshot: Snapshot, cursor: Cursor) -> Found | None:
    """The symbol whose name the cursor touches."""
    found = target_at(snapshot, cursor)
    return found if isinstance(found, Found) else None


def range_of(snapshot: Snapshot, target: Target) -> Range:
    """Where it stands."""
    return snapshot.range(Origin(target.placed.uid, target.span))


def called(snapshot: Snapshot, place: Context, bracket: Bracket) -> Symbol | None:
    """What the name in front of an open bracket stands for, in damaged text too."""
    name = bracket.before
    if name is None or place.statement is None:
        return None
    before = place.tokens[bracket.start - 2].text if bracket.start > 1 else ""
    arithmetic = place.start != "statement" and before != "<-"
    occurrence = Occurrence(name.text, Span(name.start, name.end), called_part(name.text, arithmetic=arithmetic))
    return symbol_of(snapshot, place.statement, place.placed or place.statement.header, occurrence)


def _holds(span: Span, offset: int) -> bool:
    return span.start <= offset <= span.end


def _operators(node: Any) -> tuple[Span, ...]:
    if isinstance(node, Binary):
        return (node.operator_span,)
    return node.operators if isinstance(node, ComposeExpr | TensorExpr | ProductExpr | CoproductExpr) else ()


def _words(statement: Statement, placed: Placed[Any], offset: int) -> Iterator[Sign | Keyword]:
    """The sign or the keyword at an offset.  The tree keeps the first word; the others are read off the tokens."""
    first = placed.unit.keyword
    if offset <= len(first) and first in KEYWORDS and placed.unit.text.startswith(first):
        yield Keyword(first, Span(0, len(first)), placed, statement)
    for token in tokenize(placed.unit.text, start_symbol(statement, placed))[0]:
        kind, text, start, end = token.kind, token.text, token.start, token.end
        span = Span(start, end)
        if not _holds(span, offset) or kind == "$END":
            continue
        if text in SIGNS:
            around = [node for node in walk(placed.unit.node) if node.span.start <= start and end <= node.span.end]
            if text == "_" and not any(isinstance(node, FinSetExpr | SpaceExpr) for node in around):
                continue
            yield Sign(text, around[-1] if around else None, span, placed, statement)
        elif text in KEYWORDS:
            yield Keyword(text, span, placed, statement)
