"""The counts that hovers and lenses show are those of the modules that run."""

from __future__ import annotations

from pathlib import Path

import pytest

from qvr_core.semantics.programs.parameter_count import parameter_count
from tests.standalone import standalone

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize(
    "name",
    [
        "bidirectional_rnn_lm",
        "seq2seq",
        "transformer_lm",
        "bert_pretraining",
        "lstm_lm",
        "gru_lm",
        "convolutional_classifier",
        "formula_truth",
        "term_autoencoder",
        "encoder_guide",
        "deep_markov",
        "rlstm_lm",
        "mogrifier_rlstm_lm",
        "mogrifier_low_rank_lm",
        "state_space",
        "hidden_markov",
        "factor_analysis",
    ],
)
def test_parameters_of_examples(name: str) -> None:
    from qvr_core.dsl import load

    path = EXAMPLES / f"{name}.qvr"
    model = standalone(path.read_text()).model
    wanted = sum(parameter.numel() for parameter in load(str(path)).morphism.parameters())
    assert parameter_count(model, model.programs[model.exports[0].name]) == wanted
