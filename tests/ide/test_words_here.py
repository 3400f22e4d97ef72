"""A hover says what a word does on its line, not only what it does anywhere."""

from __future__ import annotations

import pytest

from tests.ide.judged import hovered


@pytest.mark.parametrize(
    ("example", "begins", "word", "said"),
    [
        ("lstm_lm", "from", "from", ["The file that the names behind import come from, here lstm."]),
        ("lstm_lm", "from", "import", ["What is brought from std/recurrent.qvr: lstm."]),
        ("statistics/radon", "sample tau", "sample", ["Draws a latent", "tau : Real 1 [low=0]"]),
        ("statistics/radon", "data floor", "data", ["data floor : House", "One number for each house."]),
        ("statistics/mrp", "let inhabitants", "let", ["Names a value that is computed from others.", "for each state"]),
        ("statistics/radon", "program radon", "program", ["A model of log_radon."]),
        ("conversion_test", "return", "return", ["• lift: One number."]),
        ("statistics/mrp", "let inhabitants", "sum", ["sum(people[c] for c : Cell if", "the sum of all people[c]"]),
        ("statistics/mrp", "let inhabitants", "for", ["c stands for each element of Cell in turn"]),
        ("statistics/mrp", "let inhabitants", "if", ["only those count for which cell_state[c] == s holds"]),
        ("statistics/garch", "from omega", "from", ["from gives the first element"]),
        ("statistics/radon", "sample level", "Normal", ["Here loc is mu + gamma * log_uranium[c] and scale is tau."]),
        (
            "lstm_lm",
            "morphism lm_head",
            "Categorical",
            ["the weights of the arrow give probs (probabilities that sum to 1) for each input"],
        ),
        ("lstm_lm", "morphism lm_head", "role", ["Here kernel: a Markov kernel"]),
        ("topic_model", "sample topics_of", "over", ["Here topics_of: latent", "one for each topic for each document"]),
        ("statistics/missing_predictors", "observe fed", "impute", ["impute (of missing): each cell"]),
        ("statistics/survival", "data months", "Real", ["Here one number from 0 up."]),
        ("linear_regression", "object Row", "FinSet", ["Here Row: a set of 60 elements."]),
        (
            "analyses/bills",
            "sample L",
            "L",
            ["Cholesky factor of a correlation matrix, with a row and a column for each side"],
        ),
        ("statistics/icar", "sample phi", "phi", ["shape (District,)"]),
        ("occupancy", "marginalize present", "present", ["0 or 1 for each pond"]),
        ("overdispersed_counts", "let expected", "expected", ["One number from 0 up for each patient."]),
        ("poisson_regression", "observe accidents", "accidents", ["one count for each road"]),
        ("grammar", "score sentence", "goal_weight", ["The weight of the start category over the sentence"]),
        (
            "analyses/engel",
            "let wave",
            "sin",
            ["The sine of x, an angle in radians"],
        ),
        ("hidden_markov", "morphism roll", "roll", ["Given a Die, draws a Face: a table"]),
    ],
)
def test_a_word_is_explained_on_its_line(example: str, begins: str, word: str, said: list[str]) -> None:
    told = hovered(example, begins, word)
    assert [words for words in said if words not in told] == []


def test_a_template_of_unknown_width_has_no_shapes_and_no_count() -> None:
    told = hovered("rlstm_lm", "from", "rlstm")
    assert "Template over X : Object" in told
    assert "?" not in told and "parameters" not in told and "Shapes" not in told


def test_a_kernel_speaks_no_machine_language() -> None:
    told = hovered("lstm_lm", "morphism lm_head", "lm_head")
    assert "mlp" not in told and "Exact density" not in told
    assert "A fit knows the density of its result exactly" in told
