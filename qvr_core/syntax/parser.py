"""Tokens of a unit -> what the builder makes of them, or the place where they stop making sense.  lark parses.

Nothing here keeps state between calls, so any number of threads may parse at once.
"""

# lark's types are partial.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lark import UnexpectedToken
from lark.lexer import LexerThread
from lark.parsers.lalr_interactive_parser import InteractiveParser

from qvr_core.syntax.grammar import STARTS, UnitLexer, grammar
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tokens import Token


@immutable
class Failure:
    """Token number `position` is acceptable nowhere after the tokens before it."""

    tokens: tuple[Token, ...]
    position: int
    start: str

    def reader(self) -> InteractiveParser:
        """A parser that has read the tokens before the place, and reduced nothing because of what follows: LALR reduces
        too eagerly where the next token turns out to be wrong, and forgets what else could have followed."""
        reader = read(self.tokens[: self.position], self.start)
        assert reader is not None
        return reader


def parse(tokens: Sequence[Token], start: str) -> Any:
    """Parse `tokens`, whose last is `$END`, from the start symbol.

    Returns the value that the action of the outermost rule made, or a `Failure`.
    """
    thread = LexerThread.from_custom_input(_LEXER, tokens)
    try:
        part: Any = grammar().parser.parse(thread, start)
        return part[0]
    except UnexpectedToken as error:
        found = error.token
        position = next((i for i, token in enumerate(tokens) if token is found), len(tokens) - 1)
        return Failure(tuple(tokens), position, start)


_LEXER = UnitLexer()


# ---------------------------------------------------------------- what may follow


def read(tokens: Sequence[Token], start: str) -> InteractiveParser | None:
    """A parser that has read these tokens, and builds nothing; None where they make no sense."""
    if start not in STARTS:
        return None
    reader = grammar().parser.parse_interactive(LexerThread(_LEXER, None), start)
    reader.parser_state.parse_conf.callbacks = {}
    try:
        for token in tokens:
            reader.feed_token(token)
    except UnexpectedToken:
        return None
    return reader


def accepted(reader: InteractiveParser) -> frozenset[str]:
    """The terminals that may come next."""
    return frozenset(reader.accepts())


def beginnings(reader: InteractiveParser) -> frozenset[str]:
    """The rules that may begin next."""
    return frozenset(symbol for symbol in reader.choices() if symbol.islower())


def part_before(reader: InteractiveParser, kind: str | None) -> str:
    """The symbol that has just been read when a terminal of that kind comes next, `kind` None where nothing does."""
    states = reader.parser_state.state_stack
    if kind is not None:
        ahead = reader.copy(deepcopy_values=False)
        try:
            ahead.feed_token(Token(kind, "", 0, 0))
        except UnexpectedToken:
            pass
        else:
            states = ahead.parser_state.state_stack[:-1]
    return grammar().symbols.get(states[-1], "")
