"""Colours by Pygments."""

import random
from importlib.metadata import entry_points

import pygments
import pytest
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, String, Text, Token

from qvr.highlighting import QvrLexer
from scripts.vocabulary import VOCABULARY
from tests.editors.grammar import programs

PROGRAMS = programs()
SHOWN = """\
#! What it is about.
import "std/priors.qvr" as pr  # of the library
object data : FinSet 256
object Box : Real 3 [low=0.5]
let both = fan(cell, pr.rnn) >> scan(cell)
program p(alpha : Real) : Row -> Real 1
    data sigma : Row
    let u[i : Row] = total(v[i] for j : Row if j == 2) + exp(data)
    observe y : Row <- Normal(u, scale=2)
deduction d : A -> B [start=S]
    rule r : S |- S #[learnable]
    lexicon
        "a" : S = x
"""


def kinds(text: str) -> list[tuple[object, str]]:
    """The tokens of a text that are no space."""
    return [(kind, piece) for kind, piece in QvrLexer().get_tokens(text) if piece.strip()]


def test_pygments_finds_the_lexer_by_its_name() -> None:
    assert "qvr" in entry_points(group="pygments.lexers").names
    assert isinstance(get_lexer_by_name("qvr"), QvrLexer)
    assert '<span class="kd">object</span>' in pygments.highlight("object A : Real 2", QvrLexer(), HtmlFormatter())


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_piece_of_a_program_has_a_kind(name: str) -> None:
    text = PROGRAMS[name]
    tokens = list(QvrLexer(stripnl=False, ensurenl=False).get_tokens(text))
    assert "".join(piece for _, piece in tokens) == text
    unknown = {piece for kind, piece in tokens if kind in (Error, Text) and not piece.isspace()}
    # a broken sample may hold signs of other languages
    assert not {piece for piece in unknown if piece.isascii() and piece.isalnum()}
    if name.startswith(("examples", "qvr_core")):
        assert not unknown


@pytest.mark.parametrize(
    ("piece", "kind"),
    [
        ("#! What it is about.", Comment.Special),
        ("# of the library", Comment.Single),
        ('"std/priors.qvr"', String.Double),
        ("import", Keyword.Declaration),
        ("object", Keyword.Declaration),
        ("lexicon", Keyword.Declaration),
        ("FinSet", Keyword.Type),
        ("Real", Keyword.Type),
        ("256", Number.Integer),
        ("0.5", Number.Float),
        ("fan", Name.Builtin),
        ("exp", Name.Builtin),
        ("Normal", Name.Class),
        ("total", Name.Function),
        ("rnn", Name.Attribute),
        ("learnable", Name.Attribute),
        ("scale", Name.Variable),
        ("for", Keyword),
        ("if", Keyword),
        ("|-", Operator),
        (">>", Operator),
    ],
)
def test_a_piece_has_its_kind(piece: str, kind: object) -> None:
    assert {found for found, text in kinds(SHOWN) if text == piece} == {kind}


def test_a_word_that_opens_a_line_is_a_name_elsewhere() -> None:
    assert [kind for kind, piece in kinds(SHOWN) if piece == "data"] == [Name, Keyword.Declaration, Name]


@pytest.mark.parametrize("kind", ["families", "builtins", "combinators", "statements", "steps"])
def test_the_words_of_the_tables_are_known(kind: str) -> None:
    expected = {"families": Name.Class, "builtins": Name.Builtin, "combinators": Name.Builtin}.get(
        kind, Keyword.Declaration
    )
    assert not [word for word in VOCABULARY[kind] if kinds(f"{word}(x)")[0] != (expected, word)]


def test_a_megabyte_is_as_many_tokens_as_its_lines_say() -> None:
    line = "    sample x <- Normal(0.0, scale=1.0)\n"
    count = len(list(QvrLexer().get_tokens(line)))
    times = 1_000_000 // len(line)
    assert len(list(QvrLexer().get_tokens(line * times))) <= count * times


@pytest.mark.parametrize(
    "text", ['"' * 100_000, "#[" * 50_000, " " * 100_000, "(" * 100_000, "a." * 50_000, "1." * 50_000]
)
def test_a_long_line_ends(text: str) -> None:
    assert "".join(piece for _, piece in QvrLexer(stripnl=False, ensurenl=False).get_tokens(text)) == text


def test_any_text_comes_back_whole() -> None:
    chance = random.Random(1)
    for _ in range(100):
        text = "".join(chance.choices("\n\n   ab.1\"'#[]()=<->|é⊢\\", k=80))
        tokens = list(QvrLexer(stripnl=False, ensurenl=False).get_tokens(text))
        assert "".join(piece for _, piece in tokens) == text
        assert all(kind is not Token.Error for kind, _ in tokens)
