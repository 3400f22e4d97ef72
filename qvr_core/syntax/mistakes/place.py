"""A place where a unit stops making sense, and what a mistake there is told with."""

from __future__ import annotations

from typing import NamedTuple

from qvr_core.syntax.lexer import CLOSERS, OPENERS
from qvr_core.syntax.tokens import Token
from qvr_core.syntax.tree.names import Span


class Place(NamedTuple):
    """Token number `at` of a unit is acceptable nowhere; `expected` are the terminals that would be."""

    tokens: list[Token]
    at: int
    expected: frozenset[str]
    start: str

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    @property
    def kind(self) -> str:
        return self.tokens[self.at].kind

    @property
    def before(self) -> Token:
        return self.tokens[self.at - 1]


class Mistake(NamedTuple):
    """What to say, where, and what fixes it: a title and replacements (none where it is open what was meant).

    `read_as` are the replacements that make one readable line of it, where the edits make several.
    """

    message: str
    span: Span
    title: str = ""
    edits: tuple[tuple[Span, str], ...] = ()
    read_as: tuple[tuple[Span, str], ...] = ()


def span_of(token: Token) -> Span:
    return Span(token.start, token.end)


def around(span: Span, brackets: str) -> tuple[tuple[Span, str], ...]:
    return (Span(span.start, span.start), brackets[0]), (Span(span.end, span.end), brackets[1])


def closing(tokens: list[Token], at: int) -> Token | None:
    """The bracket that closes the one at `at`."""
    depth = 0
    for token in tokens[at:]:
        depth += (token.kind in OPENERS) - (token.text in CLOSERS)
        if depth == 0:
            return token
    return None


def opened(p: Place) -> int:
    """The index of the innermost bracket that is open at a place, -1 for none."""
    depth = 0
    for j in range(p.at - 1, -1, -1):
        depth += (p.tokens[j].text in CLOSERS) - (p.tokens[j].kind in OPENERS)
        if depth < 0:
            return j
    return -1
