"""Hovers of programs that use no input: there is no batch of rows, so nothing is said of one (finding A5)."""

from __future__ import annotations

import pytest

from qvr_core.analysis import Analyzer
from qvr_core.ide.hover import hover
from qvr_core.syntax.source import Cursor

TEXT = """\
object Row : FinSet _
object School : FinSet 8
object Pair : FinSet 2
program p : Row -> Row
    data school : Row -> School
    data x : Row
    sample tau <- HalfNormal(1.0)
    sample u : School <- Normal(0.0, tau)
    sample v[s : School, k : Pair] <- Normal(0.0, tau)
    sample w[i : Row] <- Normal(0.0, 1.0)
    let eta[i : Row] = u[school[i]] + x[i] + v[school[i], 0] + w[i]
    let c = tau * 2.0
    observe y[i : Row] <- Normal(eta[i], c)
    return u
"""


def said(word: str, whole: str = TEXT) -> str:
    lines = whole.splitlines()
    line = next(at for at, text in enumerate(lines) if text.lstrip().startswith(word))
    column = lines[line].index(word) + len(word) - 1
    found = hover(Analyzer(whole).snapshot(), Cursor(line, column))
    assert found is not None
    return str(found.content)


@pytest.mark.parametrize(
    "word",
    ["data school", "data x", "sample tau", "sample u", "sample v", "sample w", "let eta", "let c", "observe y"],
)
def test_a5_nothing_is_said_of_rows_of_a_batch(word: str) -> None:
    text = said(word)
    assert "all rows" not in text and "row to row" not in text and "batch" not in text and "(B" not in text


def test_a5_a_draw_has_the_shape_of_its_plate_by_number_or_by_name() -> None:
    assert "`(8,)`" in said("sample u") and "shape" not in said("sample tau")
    assert "`(Row,)`" in said("sample w")


def test_a_let_is_computed_from_what_its_line_reads() -> None:
    assert "Computed from `u`, `school`, `x`, `v`, `w`: neither data nor a latent." in said("let eta")
    assert "Computed from `tau`: neither data nor a latent." in said("let c")
    assert "Computed from" not in said("sample u") + said("data x") + said("observe y")


def test_a_let_whose_shape_data_decide() -> None:
    text = TEXT.replace("let c = tau * 2.0", "let c = tau * height")
    assert "How many numbers it is comes with `height`." in said("let c", text)


def test_a_program_is_a_model_of_what_it_observes() -> None:
    text = said("program p")
    assert "A model of `y`. Its data have one row for each element of `Row`." in text
    assert "It returns `u` (one number for each school)." in text


def test_what_is_summed_out_and_what_is_missing_is_told_in_words() -> None:
    steps = "    marginalize z[i : Row] : Pair <- Bernoulli(0.5)\n        observe y[i : Row] <- Normal(z[i], tau)"
    steps += " [missing=drop]"
    lines = TEXT.replace("    observe y[i : Row] <- Normal(eta[i], c)", steps).splitlines()
    snapshot = Analyzer("\n".join(lines)).snapshot()

    def told(word: str) -> str:
        line = next(at for at, text in enumerate(lines) if word in text)
        found = hover(snapshot, Cursor(line, lines[line].index(word)))
        assert found is not None
        return str(found.content)

    assert "averaged over its values, weighted by their probabilities" in told("marginalize")
    assert "without this option they are an error" in told("missing")
