"""Numbers one a position: those of arrows and means are columns beside the entries of a position, elements are not."""

from __future__ import annotations

import torch

from qvr_core.dsl import loads

TEXT = """
object Item : Real 3
object Word : FinSet 5
object Score : Real 1
morphism rate : Item -> Score [role=linear]
program p(x, w) : Seq Item * Seq Word -> Seq Item * Seq Score
    let m = mean(x) * mean(x) + 0.5
    let twice = w + w
    let c = x * m + twice
    let s = rate(x) + mean(x) + m
    sample n : Item <- Normal(0.0, 1.0)
    return (c, s)
export p
"""


def test_means_of_positions_meet_their_entries_also_after_they_have_met_one_another() -> None:
    model = loads(TEXT).programs["p"]
    x, w = torch.randn(2, 4, 3), torch.randint(0, 5, (2, 4))
    found, scores = model.execute((x, w)).output
    means = x.mean(-1, keepdim=True)
    assert torch.allclose(found, x * (means.square() + 0.5) + 2.0 * w.unsqueeze(-1), atol=1e-6)
    layer = model.leaves["rate"]
    expected = x @ layer.weight.T + layer.bias + means + means.square() + 0.5
    assert torch.allclose(scores.reshape(2, 4), expected.reshape(2, 4), atol=1e-6)
