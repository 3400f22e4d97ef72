"""B4: a family observed along a sequence takes a target a position, as a head does."""

from __future__ import annotations

from pathlib import Path

import pytest

from qvr_core.analysis import analyse
from qvr_core.data.needs import needs_of
from qvr_core.runs.record.protocol import Finished
from tests.runs.jobs import make_job, watched

MODEL = """\
object Token : FinSet 256
object Hidden : Real 8
object Wide : Real {width}
morphism embed : Token -> Hidden [role=embed]
morphism mix : Hidden -> Hidden [role=attention, heads=2, causal=true]
morphism wide : Hidden -> Wide [role=linear]
let backbone = embed >> mix
program lm(tokens) : Token -> Token
    let h = backbone(tokens)
    let logits = {logits}
    observe next_token : Token <- Categorical(logits=logits)
    return next_token
export lm
"""
LOGITS = [
    "wide(h)",
    "2.0 * wide(h) + 1.0",
    "matmul(h, transpose(ones(256, 8)))",
    "0.5 * matmul(h, transpose(ones(256, 8)))",
]


@pytest.mark.parametrize("logits", LOGITS)
def test_b4_targets_are_a_sequence(logits: str) -> None:
    snapshot = analyse(MODEL.format(width=256, logits=logits))
    assert not [one for one in snapshot.diagnostics() if one.severity.name == "ERROR"]
    assert needs_of(snapshot.model.programs["lm"]).observed[0].sequence


def test_b4_as_many_logits_as_the_set_has() -> None:
    found = [one.code.name for one in analyse(MODEL.format(width=40, logits="wide(h)")).diagnostics()]
    assert "ascription-mismatch" in found


async def test_b4_a_text_is_fitted_position_by_position(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes(b"the quick brown fox jumps over the lazy dog; " * 40)
    text = MODEL.format(width=256, logits="matmul(wide(h), transpose(eye(256)))")
    _, last = await watched(make_job(tmp_path, text, algorithm="svi", steps=3))
    assert isinstance(last, Finished), last
