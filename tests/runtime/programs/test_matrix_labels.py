"""Matrices over a set are indexed by its labels, as everything else over it is."""

from __future__ import annotations

import torch

from qvr_core.dsl import loads
from qvr_core.inference import Predictive

EFFECTS = """\
object Effect : {intercept, slope}

program effects : Effect -> Effect
    sample L <- LKJCholesky(2.0) [over=Effect]
    sample z : Effect <- Normal(0.0, 1.0)
    let correlation = L[slope, intercept]
    let below[e : Effect] = L[slope, e]
    let effect = sum(L["slope", k] * z[k] for k : Effect)
    return z
"""


def test_a_label_picks_a_row_of_a_cholesky_factor() -> None:
    model = loads(EFFECTS).morphism
    torch.manual_seed(0)
    drawn = Predictive(model, num_samples=50)()
    torch.manual_seed(0)
    lets = Predictive(model, num_samples=50).deterministic()
    L, z = drawn["L"], drawn["z"]
    assert torch.equal(lets["correlation"], L[:, 1, 0])
    assert torch.equal(lets["below"], L[:, 1])
    torch.testing.assert_close(lets["effect"], (L[:, 1] * z).sum(-1))
