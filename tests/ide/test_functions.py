"""What an editor is told of functions (`def`), mixtures and templates."""

from __future__ import annotations

import pytest

from qvr_core.analysis import Analyzer, analyse
from qvr_core.ide.completion.completion import complete
from qvr_core.ide.completion.signature import signature
from qvr_core.ide.edits.rename import rename
from qvr_core.ide.hover import hover
from qvr_core.ide.navigation import definition, find_references
from qvr_core.ide.prose import markdown
from qvr_core.syntax.source import Cursor
from tests.ide.cases import applied, at, text_of

TEXT = """\
object Row : FinSet 5
def logistic(x, k = 1.0) = 1.0 / (1.0 + exp(-k * x))
def scaled(x, by)
    let both = logistic(x, k=by)
    return both
program effect(G : Object, sd : Real = 1.0) : G -> Real 1
    sample a : G <- Normal(0.0, sd)
    return a
program p : Row -> Real 1
    data x : Row
    sample m <- Normal(0.0, 1.0)
    sample u <- effect(Row, 2.0)
    observe z : Row <- Mixture([0.5, 0.5], Normal(0.0, 1.0), Normal(m, 1.0))
    observe y : Row <- Normal(scaled(x, m) + u, 1.0)
    return m
"""


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("Normal(sca$0led(", "def scaled(x, by)"),
        ("let both = logi$0stic(", "def logistic(x, k = 1.0)"),
        ("<- Mix$0ture(", "Mixture(weights, A(…), B(…), …)"),
        ("Mixture([0.5, 0.5], Nor$0mal(", "Normal(loc, scale)"),
        ("program effect(G : Object, s$0d", "sd : Real = 1.0"),
    ],
)
def test_hover(mark: str, words: str) -> None:
    answer = hover(*at(TEXT.replace(mark.replace("$0", ""), mark)))
    assert answer is not None and words in markdown(answer.content)


def test_definition_references_and_rename() -> None:
    place = at(TEXT.replace("let both = logistic", "let both = logi$0stic"))
    assert [place[0].lines[found.start.line] for found in definition(*place)] == [TEXT.splitlines()[1]]
    assert len(find_references(*place)) == 2
    edits = rename(*place, "sigmoid2")
    assert isinstance(edits, tuple)
    assert applied(TEXT, edits).count("sigmoid2(") == 2


def test_signatures() -> None:
    found = signature(*at(TEXT.replace("logistic(x, k=by)", "logistic(x, $0k=by)")))
    assert found is not None and found.label == "logistic(x, k = 1.0)" and found.active == 1
    found = signature(*at(TEXT.replace("effect(Row, 2.0)", "effect(Row, $02.0)")))
    assert found is not None and found.label == "effect(G, sd=1.0)" and found.active == 1
    found = signature(*at(TEXT.replace("Mixture([0.5", "Mixture($0[0.5")))
    assert found is not None and found.label.startswith("Mixture(weights, ")


def test_completion() -> None:
    marked = TEXT.replace("Normal(scaled(x, m) + u, 1.0)", "Normal(sca$0, 1.0)")
    assert "scaled" in [item.label for item in complete(*at(marked))]
    marked = TEXT.replace("<- Mixture(", "<- $0Mixture(")
    assert "Mixture" in [item.label for item in complete(*at(marked))]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("let both = logistic(x, k=by)", "let both = logistic(x, kk=by)"),
        ("let both = logistic(x, k=by)", "let both = logistic(z, k=by)"),
        ("def scaled(x, by)", "def scaled(x)"),
        ("def logistic(x, k = 1.0)", "def logistic(x, k)"),
        ("sd : Real = 1.0", "sd : Real"),
        ("exp(-k * x))", "exp(-k * x[0, 0]))"),
    ],
)
def test_an_edit_and_its_undoing_say_what_a_fresh_analysis_says(before: str, after: str) -> None:
    analyzer = Analyzer(TEXT)
    line = next(at for at, text in enumerate(TEXT.splitlines()) if before in text)
    column = TEXT.splitlines()[line].index(before)
    for old, new, text in ((before, after, TEXT.replace(before, after)), (after, before, TEXT)):
        analyzer.edit(Cursor(line, column), Cursor(line, column + len(old)), new)
        assert text_of(analyzer.snapshot()) == text
        assert analyzer.snapshot().diagnostics() == analyse(text).diagnostics()
