"""Where a cursor stands in the grammar: the unit, the tokens before it, the innermost bracket, what may come next."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from qvr_core.ide.view import statement_before
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.syntax.lexer import CLOSERS, OPENERS, tokenize
from qvr_core.syntax.parser import accepted, read
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.source import Cursor
from qvr_core.syntax.tokens import Token
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.units import Placed, Statement

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

PARTIAL = re.compile(r"[A-Za-z_]\w*\Z")
CLOSING = frozenset(CLOSERS.values())


@dataclass(frozen=True, slots=True)
class Bracket:
    """An open bracket: its kind, the token before it, and the tokens since it or since the last comma in it."""

    kind: str
    before: Token | None
    since: tuple[Token, ...]
    position: int
    """How many commas stand before the cursor in this bracket."""
    start: int
    """Where the bracket opens, as an index into the tokens."""


@dataclass(frozen=True, slots=True)
class Context:
    """The place of a cursor.

    `start` is the grammar's symbol that the unit is read from; `tokens` are those before the word at the cursor, whose
    beginning is `partial`; `begins` says that this word begins the line.  `accepted` are the terminals that may stand
    here, None where the text before the cursor is damaged.
    """

    start: str
    statement: Statement | None
    placed: Placed[Any] | None
    tokens: tuple[Token, ...]
    partial: str
    text: str
    accepted: frozenset[str] | None
    brackets: tuple[Bracket, ...]
    line: int
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    """What files hold for the program at the cursor: each column with its file."""

    @property
    def begins(self) -> bool:
        return not self.tokens

    @property
    def keyword(self) -> str:
        return self.tokens[0].text if self.tokens else ""

    @property
    def last(self) -> Token | None:
        return self.tokens[-1] if self.tokens else None

    def expects_operand(self) -> bool:
        return self.accepted is None or "NAME" in self.accepted


def context_at(snapshot: Snapshot, cursor: Cursor) -> Context:
    """The place of a cursor, in damaged text too."""
    statement, placed, begin = _unit_before(snapshot, cursor)
    line = snapshot.lines[cursor.line][: cursor.column]
    if placed is None or (begin.line < cursor.line and not _continues(snapshot, begin, cursor)):
        # A line of its own: what it may become is decided by its indentation.
        indent = len(line) - len(line.lstrip())
        return _context(_line_start(statement, indent), statement, None, line, cursor.line)
    text = _slice(snapshot.lines, begin, cursor)
    assert statement is not None
    return _context(start_symbol(statement, placed), statement, placed, text, cursor.line)


def _unit_before(snapshot: Snapshot, cursor: Cursor) -> tuple[Statement | None, Placed[Any] | None, Cursor]:
    """The last unit that begins at or before the cursor, and where."""
    statement = statement_before(snapshot, cursor)
    if statement is None:
        return None, None, cursor
    best: Placed[Any] | None = None
    at = cursor
    for placed in units_of(statement):
        begin = snapshot.range(Origin(placed.uid, Span(0, 0))).start
        if begin <= cursor:
            best, at = placed, begin
    return statement, best, at


def _continues(snapshot: Snapshot, begin: Cursor, cursor: Cursor) -> bool:
    """Whether the cursor's line goes on with what begins above: an open bracket, or an operator at the line's end."""
    line = snapshot.lines[cursor.line]
    if line[:1].isalpha() or line[:1] == "_":
        return False
    text = _slice(snapshot.lines, begin, Cursor(cursor.line, 0))
    tokens = tokenize(text, "statement")[0][:-1]
    if not tokens:
        return False
    depth = sum((token.kind in OPENERS) - (token.kind in CLOSING) for token in tokens)
    stripped = line.lstrip()
    joined = tokens[-1].text in JOINERS or any(stripped.startswith(sign) for sign in JOINERS)
    return depth > 0 or joined or (_FROM.match(stripped) is not None and len(line) - len(stripped) > begin.column)


_FROM = re.compile(r"from\b")
JOINERS = (">>", "@", "+", "-", "*", "/", "->", "<-", "~", "|-", "=")


def _slice(lines: Sequence[str], begin: Cursor, cursor: Cursor) -> str:
    if begin.line == cursor.line:
        return lines[begin.line][begin.column : cursor.column]
    middle = lines[begin.line + 1 : cursor.line]
    return "\n".join([lines[begin.line][begin.column :], *middle, lines[cursor.line][: cursor.column]])


BODY_SYMBOLS = {
    **{"program": "step", "deduction": "deduction_item", "composition": "composition_rule"},
    **{"def": "step", "family": "composition_rule", "transformation": "composition_rule"},
    "encoder": "composition_rule",
    "decoder": "composition_rule",
}


def _line_start(statement: Statement | None, indent: int) -> str:
    if indent == 0 or statement is None:
        return "statement"
    return BODY_SYMBOLS.get(statement.header.unit.keyword, "")


def start_symbol(statement: Statement, placed: Placed[Any]) -> str:
    """The grammar's symbol that a unit is read from."""
    if placed is statement.header:
        return "statement"
    symbol = BODY_SYMBOLS.get(statement.header.unit.keyword, "step")
    if symbol == "deduction_item" and placed.unit.text.startswith('"'):
        return "lexicon_entry"
    return symbol


def _context(start: str, statement: Statement | None, placed: Placed[Any] | None, text: str, line: int) -> Context:
    match = PARTIAL.search(text)
    partial = match[0] if match else ""
    before = text[: len(text) - len(partial)]
    tokens = tuple(tokenize(before, start or "statement")[0][:-1])
    return Context(start, statement, placed, tokens, partial, before, _accepted(start, tokens), _brackets(tokens), line)


def before_prefix(place: Context) -> Context:
    """The place in front of `l.`, where the name with its prefix stands as a whole."""
    text = place.text[: place.tokens[-2].start]
    return _context(place.start, place.statement, place.placed, text, place.line)


def _accepted(start: str, tokens: tuple[Token, ...]) -> frozenset[str] | None:
    reader = read(tokens, start)
    return None if reader is None else accepted(reader)


MOST_OPEN = 100
"""Open brackets that are looked at, the innermost ones: each keeps what stands in it."""


def _brackets(tokens: tuple[Token, ...]) -> tuple[Bracket, ...]:
    """The brackets that are open at the end of the tokens, outermost first."""
    stack: list[tuple[int, int, int]] = []  # index of the opener, index after the last comma, commas
    for index, token in enumerate(tokens):
        if token.kind in OPENERS:
            stack.append((index, index + 1, 0))
        elif token.kind in CLOSING and stack:
            stack.pop()
        elif token.kind == "COMMA" and stack:
            opener, _, commas = stack[-1]
            stack[-1] = (opener, index + 1, commas + 1)
    return tuple(
        Bracket(tokens[opener].kind, tokens[opener - 1] if opener else None, tokens[since:], commas, opener)
        for opener, since, commas in stack[-MOST_OPEN:]
    )
