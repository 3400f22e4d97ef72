"""What may come next in a unit that is being typed: the grammar's half of completion."""

from __future__ import annotations

from typing import NamedTuple

from qvr_core.syntax.lalr import Token, acceptable, advance
from qvr_core.syntax.lexer import keyword_kinds, tokenize
from qvr_core.syntax.tables import table


class Expectation(NamedTuple):
    """What the grammar accepts at a place of a unit.

    `terminals` is empty where the text before the place already makes no sense; `tokens` then still says what stands
    there.  `wants` are the rules of `grammar.lark` that may begin here ('objexpr', 'expr', 'arith', 'word' and 'option'
    for an option's key, 'value', 'size', 'arrow_arg', …); the last of `symbols` is the symbol before the place.
    """

    terminals: frozenset[str]
    words: tuple[str, ...]
    """Keywords among the terminals, as they are written."""
    wants: frozenset[str]
    symbols: tuple[str, ...]
    """The symbols that the text before has been read as, outermost first."""
    tokens: tuple[Token, ...]
    """The tokens before the place, without the word that is being typed."""
    prefix: str
    """The part of that word which stands before the place."""
    inside: str
    """'string' or 'comment' where the place is in one, '' elsewhere."""


def expected_at(start: str, text: str, offset: int) -> Expectation:
    """What may come next at `offset` of a unit that is parsed from `start`.  Never raises."""
    before = text[: max(offset, 0)]
    prefix = _word_before(before)
    inside = _inside(before)
    head = before[: len(before) - len(prefix)] if not inside else before
    tokens, _ = tokenize(head, start)
    tokens.pop()
    grammar = table()
    states: list[int] | None = [grammar.starts[start]]
    for token in tokens:
        kind = token.kind
        states = advance(grammar, states, kind) or advance(grammar, states, "NAME")
        if states is None:
            return Expectation(frozenset(), (), frozenset(), (), tuple(tokens), prefix, inside)
    terminals = acceptable(grammar, states) if not inside else frozenset[str]()
    symbols = tuple([grammar.symbols[state] for state in states[1:]])
    wants = frozenset([rule for rule in grammar.gotos[states[-1]] if not rule.startswith("_")])
    # Where any word is a plain name, no keyword is meant.
    plain = "word" in wants
    words = () if plain else tuple(sorted([w for w, kind in keyword_kinds().items() if kind in terminals]))
    return Expectation(terminals, words, wants, symbols, tuple(tokens), prefix, inside)


def _word_before(before: str) -> str:
    end = len(before)
    start = end
    while start and (before[start - 1].isalnum() or before[start - 1] == "_"):
        start -= 1
    # Digits alone are a number, not the start of a name.
    return before[start:] if start < end and not before[start].isdigit() else ""


def _inside(before: str) -> str:
    """Whether a place behind `before` lies in a string or a comment."""
    line = before[before.rfind("\n") + 1 :]
    quoted = escaped = False
    for i, character in enumerate(line):
        if escaped:
            escaped = False
        elif quoted and character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted
        elif character == "#" and not quoted and line[i + 1 : i + 2] != "[":
            return "comment"
    return "string" if quoted else ""
