"""What an editor is told of `ZeroInflated(gate, …)` and `Hurdle(gate, …)`."""

from __future__ import annotations

import pytest

from qvr_core.ide.completion.completion import complete
from qvr_core.ide.completion.signature import signature
from qvr_core.ide.hover import hover
from qvr_core.ide.prose import markdown
from qvr_core.ide.semantic_tokens import statement_tokens
from tests.ide.cases import at

TEXT = """\
object Row : FinSet 5
program p : Row -> Row
    sample g <- Beta(1.0, 1.0)
    sample m <- Gamma(2.0, 1.0)
    observe y[i : Row] <- Hurdle(g, Poisson(m))
    return m
"""


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("Hur$0dle", "Zero with the probability `gate`, else counts of a family that are not 0."),
        ("Poi$0sson(m)", "Poisson(rate)"),
        ("observe $0y", "Hurdle(Poisson)"),
    ],
)
def test_hovers(mark: str, words: str) -> None:
    found = hover(*at(TEXT.replace(mark.replace("$0", ""), mark)))
    assert found is not None and words in markdown(found.content)


def test_both_are_offered_and_families_of_counts_behind_the_gate() -> None:
    offered = [item.label for item in complete(*at(TEXT.replace("Hurdle(g, Poisson(m))", "$0")))]
    assert {"ZeroInflated", "Hurdle"} <= set(offered)
    behind = [item.label for item in complete(*at(TEXT.replace("Poisson(m)", "$0")))]
    assert "Poisson" in behind and "Binomial" in behind


def test_the_signature_says_which_part_is_written() -> None:
    found = signature(*at(TEXT.replace("Poisson(m)", "$0")))
    assert found is not None and found.active == 1
    assert "gate" in found.label


def test_the_word_is_highlighted_as_a_family() -> None:
    snapshot, _ = at(TEXT + "$0")
    (line,) = (one for one in snapshot.statements if one.header.unit.keyword == "program")
    tokens = statement_tokens(snapshot, line)
    kinds = {snapshot.lines[one.line][one.column :][: one.length]: one.kind for one in tokens}
    assert kinds["Hurdle"] == kinds["Beta"]
