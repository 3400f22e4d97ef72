"""A probability that is written as the sigmoid of a number loses nothing where rounding makes it 1."""

from __future__ import annotations

import pytest
import torch

from qvr_core.dsl import loads
from qvr_core.inference import trace

PROGRAM = """
object Row : FinSet 2
program saturated : Row -> Row
    sample mu <- Normal(0.0, 50.0)
    observe y : Row <- {family}
    return mu
"""


@pytest.mark.parametrize(
    "family", ["Bernoulli(sigmoid(mu))", "Bernoulli(probs=inv_logit(mu))", "Binomial(1, sigmoid(mu))"]
)
def test_the_improbable_outcome_keeps_its_density(family: str) -> None:
    model = loads(PROGRAM.format(family=family)).morphism
    mu = torch.tensor(45.0, dtype=torch.float64, requires_grad=True)
    density = trace(model, None, {"y": torch.zeros(2).double(), "mu": mu}).sites["y"].log_prob
    assert density is not None
    assert float(density.detach().sum()) == pytest.approx(-90.0, rel=1e-12)
    (slope,) = torch.autograd.grad(density.sum(), mu)
    assert float(slope) == pytest.approx(-2.0, rel=1e-12)


ARRANGED = """
object Row : FinSet 2
object Item : FinSet 3
program p : Row -> Row
    sample mu[r : Row] <- Normal(0.0, 50.0)
    observe y[r : Row, i : Item] <- {family}
    return mu
"""


@pytest.mark.parametrize("family", ["Bernoulli(sigmoid(mu[r]))", "NegativeBinomial(2.0, sigmoid(mu[r]))"])
def test_it_does_where_the_steps_axes_stand_otherwise(family: str) -> None:
    model = loads(ARRANGED.format(family=family)).morphism
    mu = torch.tensor([45.0, 41.0], dtype=torch.float64)
    density = trace(model, None, {"y": torch.zeros(2, 3).double(), "mu": mu}).sites["y"].log_prob
    assert density is not None
    successes = 2.0 if "Negative" in family else 1.0
    assert float(density.sum()) == pytest.approx(-3.0 * successes * (45.0 + 41.0), rel=1e-12)
