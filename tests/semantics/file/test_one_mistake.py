"""One changed token of a program that is right is one error, wherever it stands, and its first fix takes it back."""

from __future__ import annotations

from pathlib import Path

import pytest

from qvr_core.analysis import Analyzer, LocatedDiagnostic, Snapshot
from qvr_core.semantics.types.diagnostics import Severity
from tests.ide.cases import applied
from tests.standalone import standalone

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"

# program, what stands there, what the mistake makes of it, the code
MISTAKES = [
    ("bert_pretraining", " [role=position, max_length=64]", "", "missing-family"),
    ("bert_pretraining", "segment_embed : Segment -> Hidden", "segment_embed : Hidden -> Segment", "role-mismatch"),
    ("bert_pretraining", "pool(states[0])", "pool(states0])", "unmatched-bracket"),
    ("bert_pretraining", "let encoder", "let enocder", "unknown-name"),
    ("bidirectional_rnn_lm", "tok_embed : Token", "to_kembed : Token", "unknown-name"),
    ("bidirectional_rnn_lm", "object FwdHidden", "object FwHdidden", "unknown-name"),
    ("bidirectional_rnn_lm", "Token [role=kernel] ~", "Token [role=latent] ~", "role-mismatch"),
    ("elman_rnn_lm", "tok_embed : Token -> Embedded [role=embed]", "tok_embed : Token -> Embedded", "missing-family"),
    ("bert_pretraining", "pool : Hidden -> Hidden", "pool : Hidden * Hidden -> Hidden", "argument-mismatch"),
    ("flower_classifier", "Measurement -> Species", "Species -> Measurement", "family-mismatch"),
    ("hidden_markov", "object Face", "object Faec", "unknown-name"),
    ("hidden_markov", "roll : Die -> Face", "roll : Face -> Die", "compose-mismatch"),
    ("lstm_lm", "object Token", "object Toekn", "unknown-name"),
    ("lstm_lm", "    return next_token\n", "", "missing-return"),
    ("lstm_lm", "lstm(Embedded, Hidden)", "lstm(Embedded)", "template-arguments"),
    ("transformer_lm", "heads=4", "heads=5", "template-arguments"),
    ("mogrifier_rlstm_lm", "_rlstm_lm(tokens)", "_rlstm_lmtokens)", "unmatched-bracket"),
    ("seq2seq", "-> HeadOut [role=kernel, replicate=4", "-> HeadOut [role=kernel, replicate=four", "invalid-option"),
    ("seq2seq", "Latent -> FFHidden [role=kernel", "Latent -> FFHidden [role=observed", "role-mismatch"),
    ("state_space", "program state_space(x)", "program state_spacex)", "unmatched-bracket"),
    ("topic_model", "words_of[z[i]]", "words_ofz[i]]", "unmatched-bracket"),
]  # fmt: skip


def errors(snapshot: Snapshot) -> list[LocatedDiagnostic]:
    return [item for item in snapshot.diagnostics() if item.severity is Severity.ERROR]


@pytest.mark.parametrize(("name", "right", "wrong", "code"), MISTAKES, ids=[f"{m[0]}: {m[2][:40]}" for m in MISTAKES])
def test_one_mistake_is_one_error(name: str, right: str, wrong: str, code: str) -> None:
    text = (EXAMPLES / f"{name}.qvr").read_text(encoding="utf-8")
    assert right in text
    assert not errors(standalone(text))
    assert [item.code.name for item in errors(standalone(text.replace(right, wrong, 1)))] == [code]


@pytest.mark.parametrize(("declared", "used", "times"), [("Paitent", "Patient", 3), ("Patient", "Paitent", 3)])
def test_a_misspelt_declaration_is_reported_once_and_renamed(declared: str, used: str, times: int) -> None:
    text = f"object {declared} : FinSet 9\nprogram p : {used} -> {used}\n    sample y : {used} <- Normal(0.0, 1.0)\n"
    text += "    return y\n"
    [error] = errors(Analyzer(text).snapshot())
    assert text.splitlines()[0][error.range.start.column : error.range.end.column] == declared
    assert len(error.related) == times
    rename, change_uses = error.fixes
    assert rename.preferred
    assert applied(text, rename.edits) == text.replace(declared, used)
    assert applied(text, change_uses.edits) == text.replace(used, declared)
