"""B4: a family observed along a sequence takes a target a position, as a head does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import qvr
from qvr_core.analysis import analyse
from qvr_core.data.needs import needs_of
from qvr_core.runs.record.protocol import Failed, Finished
from qvr_core.runtime.values.errors import InputProblem
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


# ---------------------------------------------------------------- bodies of embedding and arithmetic alone

PLAIN = """\
object Token : FinSet 7
object Wide : Real 7
object Number : Real 1
morphism embed : Token -> Wide [role=embed]
morphism gate : Token -> Number [role=embed]
program lm(tokens) : {kind}
    let h = embed(tokens)
    let logits = {logits}
    observe next_token : Token <- Categorical(logits=logits)
    return next_token
export lm
"""
ONE_A_POSITION = [
    "h - mean(h)",
    "max(h) + h",
    "h / norm(h) + dot(h, h) * h",
    "sum(h) * ones(7) + h",
    "(gate(tokens) + mean(h)) * h",
    "where(mean(h) > 0.0, h, 2.0 * h)",
    "0.1 * tokens * h + h",
]


@pytest.mark.parametrize("logits", ONE_A_POSITION)
@pytest.mark.parametrize("length", [5, 7])
def test_b4_a_number_a_position_meets_the_vector_of_its_position(logits: str, length: int) -> None:
    """As many positions as entries is where a number of another position would be taken without a word."""
    along = qvr.loads(PLAIN.format(kind="Seq Token -> Seq Token", logits=logits)).programs["lm"]
    alone = qvr.loads(PLAIN.format(kind="Token -> Token", logits=logits)).programs["lm"]
    alone.load_state_dict(along.state_dict())
    tokens = torch.randint(0, 7, (3, length), generator=torch.Generator().manual_seed(1))
    targets = tokens.roll(1, 1)
    each = alone.log_joint(tokens.flatten(), {"next_token": targets.flatten()})
    torch.testing.assert_close(along.log_joint(tokens, {"next_token": targets}), each.view(3, length).sum(1))


async def test_b4_a_type_without_a_sequence_is_told_to_say_it(tmp_path: Path) -> None:
    text = PLAIN.format(kind="Token -> Token", logits="2.0 * h").replace(" 7\n", " 256\n")
    with pytest.raises(InputProblem, match="`Seq Token`"):
        qvr.loads(text).programs["lm"].log_joint(torch.zeros(2, 5, dtype=torch.int64), {"next_token": torch.zeros(2)})
    (tmp_path / "t.txt").write_bytes(b"the quick brown fox jumps over the lazy dog; " * 40)
    _, last = await watched(make_job(tmp_path, text, algorithm="svi", steps=1))
    assert isinstance(last, Failed) and "`Seq Token`" in last.message
