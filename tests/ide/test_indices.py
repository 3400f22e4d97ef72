"""Indices, data, functions and families in the answers of an editor."""

from __future__ import annotations

import pytest

from qvr_core.analysis import Analyzer
from qvr_core.ide.completion.completion import complete
from qvr_core.ide.edits.formatting import indentation
from qvr_core.ide.hover import hover
from qvr_core.ide.navigation import definition, find_references
from qvr_core.ide.outline_and_folding import folds, outline
from qvr_core.ide.semantic_tokens import tokens
from qvr_core.syntax.source import Cursor, Range
from tests.ide.cases import at, text_of

TEXT = """\
object Time : FinSet 5
object Firm : {"General Motors", ford}
#! S-shaped.
def logistic(x, k = 1.0) = 1 / (1 + exp(-k * x))
def soft(x, y)
    let top = maximum(x, y)
    return top
family Skew(loc, scale : Real 1 [low=0.0]) : Real 1
    density(x) = -(x - loc) / scale
program p(sd : Real = 1.0) : Time -> Time
    data x : Time * Firm
    sample s <- Skew(0.0, sd)
    let v[t : Time] = sum(x[t, f] for f : Firm if f != ford) + v[t - 1]
        from logistic(s)
    predict ahead[t : Time] <- Normal(v[t], s) from Normal(s, s)
    return v
"""
PROGRAM = "program p : Time -> Time\n    sample s <- Normal(0.0, 1.0)\n"


def marked(text: str) -> str:
    """The text with the mark's letters around the cursor put where `text` says."""
    before, _, after = text.partition("$0")
    assert TEXT.count(before + after) == 1, text
    return TEXT.replace(before + after, text)


def test_every_new_name_has_its_colour() -> None:
    snapshot = Analyzer(TEXT).snapshot()
    found = {
        (token.line, snapshot.lines[token.line][token.column : token.column + token.length]): token
        for token in tokens(snapshot, Range(Cursor(0, 0), Cursor(99, 0)))
    }
    expected = {
        (1, "General Motors"): "enumMember",
        (3, "logistic"): "function",
        (3, "k"): "parameter",
        (3, "exp"): "function",
        (5, "top"): "variable",
        (5, "x"): "parameter",
        (7, "Skew"): "class",
        (8, "scale"): "parameter",
        (8, "x"): "parameter",
        (10, "x"): "data",
        (11, "Skew"): "class",
        (12, "t"): "parameter",
        (12, "f"): "parameter",
        (12, "x"): "data",
        (12, "sum"): "function",
        (13, "logistic"): "function",
        (14, "ahead"): "variable",
        (14, "Normal"): "class",
    }
    assert {place: found[place].kind for place in expected} == expected


def test_the_outline_holds_functions_families_and_data() -> None:
    found = {symbol.name: symbol for symbol in outline(Analyzer(TEXT).snapshot())}
    assert [found[name].kind for name in ("logistic", "soft", "Skew")] == ["function", "function", "distribution"]
    assert [child.name for child in found["Skew"].children] == ["density"]
    assert [(child.name, child.kind) for child in found["p"].children] == [
        ("x", "data"),
        ("s", "site"),
        ("v", "binding"),
        ("ahead", "site"),
    ]


def test_a_function_and_a_family_fold() -> None:
    assert {(4, 6, ""), (7, 8, ""), (12, 13, "")} & set(folds(Analyzer(TEXT).snapshot())) == {(4, 6, ""), (7, 8, "")}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("sum(x[t$0, f]", (12, 10)),
        ("v[t$0 - 1]\n", (12, 10)),
        ("x[t, f$0]", (12, 38)),
        ("if f$0 != ford", (12, 38)),
        ("-k$0 * x", (3, 16)),
        ("from logi$0stic", (3, 4)),
        ("s <- Ske$0w", (7, 7)),
        ("density(x) = -(x - lo$0c)", (7, 12)),
        ("Normal(v[t$0], s)", (14, 18)),
        ("sum(x$0[t", (10, 9)),
    ],
)
def test_definition(text: str, place: tuple[int, int]) -> None:
    assert [found.start for found in definition(*at(marked(text)))] == [Cursor(*place)]


def test_an_index_is_that_of_its_own_step() -> None:
    snapshot, cursor = at(marked("let v[t$0 : Time]"))
    assert [found.start.line for found in find_references(snapshot, cursor)] == [12, 12, 12]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sum(x[t, f] fo$0r f", "Runs over the elements"),
        ("i$0f f != ford", "Leaves out the elements"),
        ("    fro$0m logistic", "The first elements"),
        ("    predi$0ct ahead", "from the posterior"),
        ("    da$0ta x", "reads from outside"),
        ("fami$0ly Skew", "given by its log density"),
        ("de$0f soft", "A function of arithmetic"),
    ],
)
def test_words_explain_themselves(text: str, words: str) -> None:
    assert words in str(hover(*at(marked(text))))


def test_a_function_shows_how_it_is_called_and_its_comment() -> None:
    shown = str(hover(*at(marked("from logi$0stic"))))
    assert "def logistic(x, k = 1.0)" in shown and "S-shaped." in shown


@pytest.mark.parametrize(
    ("line", "offered", "not_offered"),
    [
        ("    let v[t : $0]", {"Time"}, {"sum"}),
        ("    sample v[t : $0", {"Time"}, {"sum"}),
        ("    let v = sum(s for f : $0)", {"Time"}, {"exp"}),
        ("    let v = sum(s $0)", {"for"}, {"if"}),
        ("    let v = sum(s for f : Time $0)", {"if"}, {"for"}),
        ("    let v = s $0", {"from"}, {"for"}),
        ("    data x : $0", {"Time", "Real", "Nat"}, {"sum"}),
        ("    sample v <- Normal(0.0, s) from $0", {"Normal", "s"}, set[str]()),
        ("    let v = s\n        from $0", {"s", "exp"}, set[str]()),
        ("def f(x) = $0", {"exp"}, set[str]()),
        ("family F(a) : $0", {"Time", "Real"}, set[str]()),
        ("family F(a) : Real 1\n    $0", {"density", "draw"}, {"tensor_op", "sample"}),
        ("def f(x)\n    $0", {"let", "return"}, {"density"}),
        ("$0", {"def", "family"}, {"data"}),
    ],
)
def test_completion(line: str, offered: set[str], not_offered: set[str]) -> None:
    found = {item.label for item in complete(*at("object Time : FinSet 5\n" + PROGRAM + line + "\n"))}
    assert offered <= found
    assert not (not_offered & found)


@pytest.mark.parametrize(
    ("header", "width"),
    [("def f(x, y)", 4), ("def f(x):  # note", 4), ("def f(x) = x", 0), ("family F(a) : Real 1", 4)],
)
def test_a_line_below_a_header_is_indented(header: str, width: int) -> None:
    snapshot, cursor = at(header + "\n$0\n")
    edits = indentation(snapshot, cursor)
    assert [edit.text for edit in edits] == ([" " * width] if width else [])
    assert text_of(snapshot).startswith(header)
