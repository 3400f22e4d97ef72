"""What the grammar says may come next."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qvr_core.syntax.completion import expected_at
from qvr_core.syntax.tables import STARTS
from tests.syntax.samples import PIECES


@pytest.mark.parametrize(
    ("start", "text", "wants", "prefix"),
    [
        ("statement", "let f = tok >> sc", "tensor", "sc"),
        ("statement", "let f = ", "expr", ""),
        ("statement", "morphism f : A -> ", "objexpr", ""),
        ("statement", "morphism f : A -> B [ro", "option", "ro"),
        ("statement", "morphism f : A -> B [role=", "value", ""),
        ("statement", "morphism f : A -> B ~ No", "expr", "No"),
        ("statement", "object A : FinSet ", "size", ""),
        ("statement", "let f = fan(a, ", "arrow_arg", ""),
        ("statement", "let f = a.da", "word", "da"),
        ("step", "observe y : ", "objexpr", ""),
        ("step", "let x = f(a, ", "arith_arg", ""),
        ("step", "let x = ", "arith", ""),
        ("deduction_item", "rule r : X(a), ", "term", ""),
    ],
)
def test_what_is_wanted(start: str, text: str, wants: str, prefix: str) -> None:
    found = expected_at(start, text, len(text))
    assert wants in found.wants and found.prefix == prefix


def test_keywords_that_fit() -> None:
    assert "sample" in expected_at("step", "sa", 2).words
    assert expected_at("statement", "object A : ", 11).words == (
        "CholeskyFactor", "Correlation", "Covariance", "FinSet", "Real", "Seq", "Simplex",
    )  # fmt: skip
    assert expected_at("statement", "morphism f : A -> B [", 21).words == ()


def test_after_the_draw_a_name_is_wanted() -> None:
    found = expected_at("step", "sample x <- ", 12)
    assert found.terminals == {"NAME"} and found.symbols[-1] == "DRAW"


@pytest.mark.parametrize(
    ("text", "inside"), [('x "a', "string"), ("x # a", "comment"), ('x "a" ', ""), ('"\\" #', "string")]
)
def test_strings_and_comments(text: str, inside: str) -> None:
    found = expected_at("step", text, len(text))
    assert found.inside == inside and not (inside and found.terminals)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(STARTS), st.lists(st.sampled_from(PIECES), max_size=8).map("".join), st.integers(-1, 60))
def test_any_text_is_answered(start: str, text: str, offset: int) -> None:
    expected_at(start, text, offset)
