"""The closed tables of the language agree with each other."""

from __future__ import annotations

from qvr_core.semantics.language.combinators import COMBINATORS
from qvr_core.syntax import lexer


def test_the_lexer_knows_the_combinators_of_the_table() -> None:
    assert set(COMBINATORS) == lexer.COMBINATORS


def test_every_call_has_a_snippet_and_every_keyword_of_it_a_line() -> None:
    for one in COMBINATORS.values():
        assert one.bare or one.snippet.startswith(f"{one.name}(")
        assert set(one.words) <= set(dict(one.parameters))
