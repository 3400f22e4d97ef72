"""What is said of an arrow's learned numbers."""

from __future__ import annotations

from pathlib import Path

from qvr_core.analysis import Analyzer
from qvr_core.semantics.programs.parameter_count import parameter_count
from tests.patience import calls

EXAMPLES = Path(__file__).parents[2] / "examples"


def count_of(example: str) -> int | None:
    model = Analyzer((EXAMPLES / f"{example}.qvr").read_text()).snapshot().model
    return parameter_count(model, model.programs[example])


def test_a_program_counts_the_arrows_that_it_uses() -> None:
    assert count_of("bidirectional_rnn_lm") == 115_968


def test_weights_of_rules_count_by_what_the_rules_can_build() -> None:
    assert count_of("grammar") == 5


def test_entries_in_a_file_have_no_count_rather_than_a_wrong_one() -> None:
    text = (EXAMPLES / "grammar.qvr").read_text().replace("    lexicon\n", '    lexicon from "more.txt"\n    lexicon\n')
    model = Analyzer(text).snapshot().model
    assert parameter_count(model, model.programs["grammar"]) is None


def test_rules_without_end_are_given_up_soon() -> None:
    rules = "\n".join(
        f"    rule r{i} : span(I, K, X), span(K, J, Y) |- span(I, J, C{i}(X, Y)) #[learnable]" for i in range(4)
    )
    text = f"""deduction d : FinSet 2 -> FinSet 1 [depth=4]
    atoms A, B
{rules}
    lexicon
        "a" : A = A
        "b" : B = B

program p : FinSet 1 -> FinSet 1
    let chart = parse(d, "a b")
    score s = chart.goal_weight()
    return s
"""
    model = Analyzer(text).snapshot().model
    found: list[object] = []
    assert calls(lambda: found.append(parameter_count(model, model.programs["p"]))) < 3_000_000
    assert found == [None]
