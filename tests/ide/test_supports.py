"""What an editor is told of draws on smaller spaces, of effects that sum to 0, and of bases of functions."""

from __future__ import annotations

import pytest

from qvr_core.ide.completion.completion import complete
from qvr_core.ide.completion.signature import signature
from qvr_core.ide.edits.rename import rename
from qvr_core.ide.hover import hover
from qvr_core.ide.prose import markdown
from tests.ide.cases import applied, at

TEXT = """\
object Row : FinSet 5
object S : FinSet 3
program p : Row -> Real 1
    data x : Row
    data k : Row -> S
    sample lower <- Normal(0.0, 1.0)
    sample upper : Real 1 [low=lower] <- Normal(0.0, 1.0)
    sample u[s : S] <- Normal(0.0, 1.0) [sum_to_zero]
    sample mu : Ordered 2 <- Normal([0.0, 3.0], 1.0)
    let (phi, omega) = hsgp(x, m=4, c=1.5)
    let s = bspline(x, knots=[0.0, 1.0])
    observe above[i : Row] : Real 1 [low=2 * upper - u[k[i]]] <- Normal(0.0, 1.0)
    observe log(size)[i : Row] <- Normal(upper, 1.0)
    observe y[i : Row] <- Normal(u[k[i]] + mu[0] + phi[i, 0] + omega[1] + s[i, 2] + upper, 1.0)
    return u
"""


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("sample u$0pper", "from `Normal` between bounds"),
        ("sample $0u[", "from `Normal`, summing to 0 over the last set"),
        ("sample m$0u", "the density is their product, and not normalised"),
        ("let (ph$0i", "phi : Row -> Real 4"),
        ("let (phi, om$0ega", "4 numbers."),
        ("let $0s =", "s : Row -> Real 4"),
        ("low=lo$0wer", "sample lower <- Normal(0.0, 1.0)"),
        ("low=2 * up$0per", "upper : Real 1"),
        ("- u[k[$0i]]]", "i : Row"),
        ("log(si$0ze)", "`log(size)` from `Normal`"),
        ("= hs$0gp", "Hilbert-space basis of a Gaussian process"),
        ("[sum_to$0_zero", "The numbers over the last index sum to 0"),
    ],
)
def test_hover(mark: str, words: str) -> None:
    answer = hover(*at(TEXT.replace(mark.replace("$0", ""), mark, 1)))
    assert answer is not None
    assert words in markdown(answer.content)


def test_a_bound_is_renamed_with_its_name() -> None:
    edits = rename(*at(TEXT.replace("sample lower", "sample lo$0wer")), "least")
    assert isinstance(edits, tuple)
    assert "sample upper : Real 1 [low=least]" in applied(TEXT, edits)


def test_a_name_in_a_computed_bound_is_renamed() -> None:
    edits = rename(*at(TEXT.replace("sample upper", "sample up$0per")), "top")
    assert isinstance(edits, tuple)
    assert "[low=2 * top - u[k[i]]]" in applied(TEXT, edits)


def test_calls_are_offered_with_what_they_need() -> None:
    offered = {item.label: item.insert for item in complete(*at(TEXT.replace("let s = bspline", "let s = $0bspline")))}
    assert offered["bspline"] == "bspline(${1:x}, knots=[${2:0.0, 1.0}])"
    assert offered["hsgp"] == "hsgp(${1:x}, m=${2:20}, c=${3:1.5})"
    found = signature(*at(TEXT.replace("m=4, c=1.5", "m=4, c=$01.5")))
    assert found is not None
    assert (found.label, found.active) == ("hsgp(x, m, c)", 2)


def test_a_draw_is_offered_to_sum_to_0() -> None:
    labels = [item.label for item in complete(*at(TEXT.replace("[sum_to_zero]", "[$0]")))]
    assert "sum_to_zero" in labels
