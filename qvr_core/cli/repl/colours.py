"""Colours of what is typed: an editor's semantic tokens, and between them what the lexer alone tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qvr_core.analysis import Snapshot
from qvr_core.cli.repl.document import Excerpt
from qvr_core.ide.completion.context import start_symbol
from qvr_core.ide.keywords import KEYWORDS
from qvr_core.ide.semantic_tokens import statement_tokens
from qvr_core.ide.view import statements_between
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.syntax.layout import shape
from qvr_core.syntax.lexer import SPACES, tokenize
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.source import Cursor
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.units import Statement

STYLE = {
    "command": "bold ansimagenta",
    "word": "ansimagenta",
    "number": "ansicyan",
    "string": "ansigreen",
    "comment": "ansibrightblack italic",
    "type": "ansiyellow",
    "typeparameter": "ansiyellow",
    "class": "ansiyellow",
    "function": "ansiblue",
    "method": "ansiblue",
    "keyword": "ansimagenta",
    "namespace": "ansiyellow",
    "enummember": "ansicyan",
    "data": "ansigreen",
    "error": "underline ansired",
    "warning": "underline ansiyellow",
}
"""By the kind of a token in small letters; the others have the terminal's own colour.
The sixteen colours are the user's."""

Painted = tuple[int, int, int, str]
"""Line, first column and the one behind it, counted from what was typed, and a name of `STYLE`."""


def painted(excerpt: Excerpt) -> Iterator[Painted]:
    """What is coloured; later ones lie over earlier ones."""
    snapshot, first = excerpt.snapshot, excerpt.line
    last = first + len(excerpt.typed) - 1
    for statement in statements_between(snapshot, first, last):
        for line, start, end, kind in (*_lexical(snapshot, statement), *_named(snapshot, statement)):
            yield from _within(excerpt, line, start, end, kind)
    for line in range(first, last + 1):
        text = snapshot.lines[line]
        code = shape(text)
        sign = text.find("#", code.end)
        if sign >= 0 and (not code.code or not text.startswith("#[", sign)):
            yield from _within(excerpt, line, sign, len(text), "comment")


def _within(excerpt: Excerpt, line: int, start: int, end: int, kind: str) -> Iterator[Painted]:
    place = excerpt.here(Cursor(line, start))
    behind = excerpt.here(Cursor(line, end))
    kind = kind.lower()
    if kind in STYLE and 0 <= place.line < len(excerpt.typed) and place.column < behind.column:
        yield place.line, place.column, behind.column, kind


def _named(snapshot: Snapshot, statement: Statement) -> Iterator[Painted]:
    for token in statement_tokens(snapshot, statement):
        yield token.line, token.column, token.column + token.length, token.kind


def _lexical(snapshot: Snapshot, statement: Statement) -> Iterator[Painted]:
    """Numbers, strings and words of the language."""
    for placed in units_of(statement):
        for token in tokenize(placed.unit.text, start_symbol(statement, placed))[0]:
            kind = _kind(token)
            if kind:
                start, end = snapshot.range(Origin(placed.uid, Span(token.start, token.end)))
                yield start.line, start.column, end.column, kind


def _kind(token: Any) -> str:
    match token.kind:
        case "INT" | "FLOAT":
            return "number"
        case "STRING":
            return "string"
        case "SPACE":
            return "type"
        case "NAME" | "$END":
            return ""
        case _:
            return "type" if token.text in ("FinSet", *SPACES) else "word" if token.text in KEYWORDS else ""
