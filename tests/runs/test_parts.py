"""A part of the rows, scaled up, stands for all of them."""

from __future__ import annotations

import pytest
import torch

from qvr_core import dsl
from qvr_core.inference import ELBO, AutoNormalGuide
from qvr_core.runs.parts import ScaledELBO

MODEL = """\
object Group : FinSet 3
object Unit : Real 1
program regression : Unit -> Unit
    sample alpha : Group <- Normal(0.0, 2.0)
    sample sigma <- HalfNormal(1.0)
    observe y <- Normal(alpha[group], sigma)
    return sigma
"""


@pytest.mark.parametrize("particles", [1, 4])
def test_the_mean_over_all_parts_is_the_bound_of_all_rows(particles: int) -> None:
    torch.manual_seed(0)
    model = dsl.loads(MODEL).programs["regression"]
    guide = AutoNormalGuide(model, observed_names={"y"})
    data = {"y": torch.randn(12), "group": torch.arange(12) % 3}

    def bound(objective: object, rows: slice) -> tuple[float, torch.Tensor]:
        guide.zero_grad()
        torch.manual_seed(1)
        loss = objective(model, guide, None, {name: values[rows] for name, values in data.items()})  # type: ignore[operator]
        loss.backward()
        return loss.item(), torch.cat([p.grad.reshape(-1) for p in guide.parameters() if p.grad is not None])

    whole, gradient = bound(ELBO(particles), slice(0, 12))
    parts = [bound(ScaledELBO(particles, 12), slice(i, i + 4)) for i in (0, 4, 8)]
    assert sum(value for value, _ in parts) / 3 == pytest.approx(whole, rel=1e-5)
    assert torch.allclose(sum(g for _, g in parts) / 3, gradient, rtol=1e-4, atol=1e-4)
