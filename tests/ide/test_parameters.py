"""What is said of an arrow's learned numbers."""

from __future__ import annotations

from pathlib import Path

from qvr_core.analysis import Analyzer
from qvr_core.ide.arrows import parameter_count

EXAMPLES = Path(__file__).parents[2] / "examples"


def count_of(example: str) -> int | None:
    model = Analyzer((EXAMPLES / f"{example}.qvr").read_text()).snapshot().model
    return parameter_count(model, model.programs[example])


def test_a_program_counts_the_arrows_that_it_uses() -> None:
    assert count_of("bidirectional_rnn_lm") == 115_968


def test_weights_of_rules_are_not_told_as_none_at_all() -> None:
    assert count_of("grammar") is None
