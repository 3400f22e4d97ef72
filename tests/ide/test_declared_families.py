"""What an editor is told of families that a file declares."""

from __future__ import annotations

import pytest

from qvr_core.analysis import Analyzer, analyse
from qvr_core.ide.completion.completion import complete
from qvr_core.ide.completion.signature import signature
from qvr_core.ide.edits.rename import rename
from qvr_core.ide.hover import hover
from qvr_core.ide.navigation import definition, find_references
from qvr_core.ide.prose import markdown
from qvr_core.semantics.types.diagnostics import Severity
from qvr_core.syntax.source import Cursor
from tests.ide.cases import applied, at, text_of

TEXT = """\
object Row : FinSet 5
family Skewed(loc, scale : Real 1 [low=0.0], shape = 0.0) : Real 1 [low=0.0]
    let two = 2.0
    density(x) = two * (x - loc) / scale + shape
    draw = loc + Normal(0, 1)
program p : Row -> Real 1
    sample m <- Normal(0.0, 1.0)
    sample a <- Skewed(m, 1.0)
    observe y : Row <- Skewed(a, scale=1.0)
    return a
program q : Row -> Real 1
    sample m <- Normal(0.0, 1.0)
    observe y : Row <- Normal(m, 1.0)
    return m
"""


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("a <- Ske$0wed(", "family Skewed(loc, scale : Real 1 [low=0.0], shape = 0.0) : Real 1 [low=0.0]"),
        ("sample $0a <- ", "one number from 0 up"),
    ],
)
def test_hover(mark: str, words: str) -> None:
    answer = hover(*at(TEXT.replace(mark.replace("$0", ""), mark)))
    assert answer is not None
    assert words in markdown(answer.content)


def test_definition_references_and_rename() -> None:
    place = at(TEXT.replace("a <- Skewed", "a <- Ske$0wed"))
    assert [place[0].lines[found.start.line] for found in definition(*place)] == [TEXT.splitlines()[1]]
    assert len(find_references(*place)) == 3
    edits = rename(*place, "Leaning")
    assert isinstance(edits, tuple)
    assert applied(TEXT, edits).count("Leaning(") == 3


def test_signature_and_completion() -> None:
    found = signature(*at(TEXT.replace("Skewed(m, 1.0)", "Skewed(m, $01.0)")))
    assert found is not None
    assert found.label == "Skewed(loc, scale, shape=0)"
    assert found.active == 1
    assert "Skewed" in [item.label for item in complete(*at(TEXT.replace("a <- Skewed", "a <- $0Skewed")))]
    assert "shape" in [item.label for item in complete(*at(TEXT.replace("Skewed(m, 1.0)", "Skewed(m, $0)")))]


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("sca$0le=1.0", ["scale : Real 1 [low=0.0]", "Parameter of the family `Skewed`"]),
        ("x - lo$0c", ["loc", "Parameter of the family `Skewed`"]),
        ("= tw$0o *", ["let two = 2.0"]),
        ("dens$0ity(x)", ["the log density of one element"]),
        ("dra$0w =", ["one draw"]),
    ],
)
def test_hover_inside_and_on_arguments(mark: str, words: list[str]) -> None:
    answer = hover(*at(TEXT.replace(mark.replace("$0", ""), mark)))
    assert answer is not None
    for word in words:
        assert word in markdown(answer.content)


def labels(mark: str) -> list[str]:
    return [item.label for item in complete(*at(TEXT.replace(mark.replace("$0", ""), mark)))]


def test_completion_in_the_lines_of_a_family() -> None:
    density = labels("density(x) = $0two")
    assert density[:5] == ["loc", "scale", "shape", "two", "x"]
    assert "exp" in density and "Normal" not in density
    draw = labels("draw = $0loc")
    assert {"loc", "scale", "two", "Normal", "Gamma"} <= set(draw)
    assert "Skewed" not in draw and "x" not in draw


def test_components_of_a_mixture_are_families() -> None:
    text = TEXT.replace("Normal(m, 1.0)", "Mixture([0.3, 0.7], $0)")
    assert {"Normal", "Skewed"} <= {item.label for item in complete(*at(text))}


CALLED = """\
object Row : FinSet 5
family Shifted(loc, width : Real 1 [low=0.0]) : Real 1
    density(x) = -((x - loc) / width)^2
def line(x, slope = 1.0) = x * slope
def bend(x, power = 2.0)
    let y = x^power
    return y
program effects(G : Object, sd : Real = 1.0) : G -> G
    sample u : G <- Normal(0.0, sd)
    return u
program p : Row -> Real 1
    sample u <- effects(Row, sd=2.0)
    sample slope <- Normal(0.0, 1.0)
    let m = line(u, slope=slope) + bend(slope, power=3.0)
    observe y : Row <- Shifted(m, width=1.0)
    return u
"""


@pytest.mark.parametrize(
    "mark", ["$0width :", "$0width=", "$0slope = 1", "$0slope=", "$0power =", "$0power=", "$0sd :", "$0sd="]
)
def test_a_parameter_is_renamed_where_arguments_name_it(mark: str) -> None:
    name = mark[2:].split(maxsplit=1)[0].rstrip("=")
    edits = rename(*at(CALLED.replace(mark[2:], mark, 1)), "renamed")
    assert isinstance(edits, tuple)
    text = applied(CALLED, edits)
    assert f"renamed={'slope' if name == 'slope' else ''}" in text
    assert f"{name}=" not in text
    assert [each.message for each in analyse(text).diagnostics() if each.code.severity is Severity.ERROR] == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    draw = loc + Normal(0, 1)", "    draw = lok + Normal(0, 1)"),
        ("density(x) = two", "densty(x) = two"),
        ("let two = 2.0", "let two = x"),
        ("shape = 0.0) : Real 1", "shape) : Real 1"),
        ("Real 1 [low=0.0], shape", "Real 2, shape"),
        ("family Skewed", "family Skewd"),
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
