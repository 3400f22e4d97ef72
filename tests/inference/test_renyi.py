"""The Rényi bound between ELBO and the importance-weighted one, against quadrature over the noise of its particles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats as st
import torch

from qvr_core.dsl import loads
from qvr_core.inference import (
    ELBO,
    AutoIAFGuide,
    AutoMixtureGuide,
    AutoMultivariateNormalGuide,
    AutoNormalGuide,
    AutoPriorGuide,
    IWAEBound,
    RenyiBound,
)
from qvr_core.runtime.values.errors import InputProblem
from tests.inference.test_variational import conjugate

ALPHAS = (0.0, 0.3, 0.5, 0.9)
LOC, LOG_SCALE = 1.6, -0.4


def started() -> tuple[Any, Any, Any, float]:
    """The conjugate model with a guide that is not its posterior."""
    model, data, evidence = conjugate()
    guide = AutoNormalGuide(model, observed_names={"y"})
    with torch.no_grad():
        (loc,), (log_scale,) = guide.raw_loc.values(), guide.raw_log_scale.values()
        loc.fill_(LOC)
        log_scale.fill_(LOG_SCALE)
    return model, data, guide, evidence


def by_quadrature(y: np.ndarray, alpha: float, loc: float, log_scale: float) -> float:
    """The bound of two particles: a sum over Gauss and Hermite's nodes for the noise of both."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    z, scale = loc + math.exp(log_scale) * nodes, math.exp(log_scale)
    ratio = st.norm(1.0, 2.0).logpdf(z) + st.norm(z[:, None], 1.5).logpdf(y).sum(1) - st.norm(loc, scale).logpdf(z)
    power = 1.0 - alpha
    each = (np.logaddexp(power * ratio[:, None], power * ratio[None, :]) - math.log(2.0)) / power
    share = weights / weights.sum()
    return float(share @ each @ share)


@pytest.mark.parametrize("doubly", [False, True])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.sampled(2)
def test_the_bound_and_its_gradient_are_those_of_quadrature(alpha: float, doubly: bool) -> None:
    torch.manual_seed(3)
    model, data, guide, evidence = started()
    y = data["y"].double().numpy()
    objective, count = RenyiBound(2, alpha=alpha, doubly=doubly), 700
    (loc,), (log_scale,) = guide.raw_loc.values(), guide.raw_log_scale.values()
    found = np.empty((count, 3))
    for at in range(count):
        guide.zero_grad()
        loss = objective(model, guide, None, data)
        loss.backward()
        found[at] = -loss.item(), -loc.grad.item(), -log_scale.grad.item()
    step = 1e-4
    wanted = (
        by_quadrature(y, alpha, LOC, LOG_SCALE),
        (by_quadrature(y, alpha, LOC + step, LOG_SCALE) - by_quadrature(y, alpha, LOC - step, LOG_SCALE)) / (2 * step),
        (by_quadrature(y, alpha, LOC, LOG_SCALE + step) - by_quadrature(y, alpha, LOC, LOG_SCALE - step)) / (2 * step),
    )
    z = (found.mean(0) - wanted) / (found.std(0) / math.sqrt(count))
    assert np.abs(z).max() < 4.0, (z, wanted)
    assert wanted[0] < evidence


TWO = """
object X : Real 2
morphism decode : X -> X [role=linear]
program p : X -> X
    sample z : X <- Normal(0.0, 1.0)
    sample v <- Normal(0.0, exp(0.3 * z[0]))
    let mean = decode(z)
    observe y : X <- Normal(mean + v, 0.6)
    return z
"""


@pytest.mark.statistical
@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("kind", [AutoNormalGuide, AutoMultivariateNormalGuide, AutoIAFGuide])
def test_the_doubly_reparameterised_gradient_is_that_of_the_bound(kind: Any, alpha: float) -> None:
    """A z-test of every parameter, of the guide and of the model, with less noise in the guide's."""
    torch.manual_seed(2)
    model = loads(TWO).morphism.double()
    guide = kind(model, observed_names={"y"}, x=torch.zeros(3, 2, dtype=torch.float64), init_scale=0.8).double()
    with torch.no_grad():
        for parameter in guide.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    x, y = torch.zeros(3, 2, dtype=torch.float64), torch.randn(3, 2, dtype=torch.float64)
    parameters = [*guide.parameters(), *model.parameters()]
    found: list[torch.Tensor] = []
    for doubly in (False, True):
        objective, each = RenyiBound(64, alpha=alpha, doubly=doubly), list[torch.Tensor]()
        for _ in range(300):
            for parameter in parameters:
                parameter.grad = None
            objective(model, guide, x, {"y": y}).backward()
            grads = (torch.zeros_like(one) if one.grad is None else one.grad for one in parameters)
            each.append(torch.cat([grad.flatten() for grad in grads]))
        found.append(torch.stack(each))
    plain, through = found
    # of a unit that is seldom awake a mean of hundreds has no normal error
    moved = plain.std(0) > 1e-2 * plain.std(0).max()
    spread = ((plain.var(0) + through.var(0)) / len(plain)).sqrt()
    z = ((plain.mean(0) - through.mean(0)) / spread)[moved]
    assert float(z.abs().max()) < 4.5
    assert float((z.abs() > 2).double().mean()) < 0.15
    own = sum(parameter.numel() for parameter in guide.parameters())
    assert float(through.std(0)[:own].mean()) < float(plain.std(0)[:own].mean())


def test_what_has_no_gradient_through_its_draws_is_said() -> None:
    model, data, _, _ = started()
    objective = IWAEBound(4, doubly=True)
    with pytest.raises(InputProblem, match="which component of a mixture"):
        objective(model, AutoMixtureGuide(model, observed_names={"y"}), None, data)
    with pytest.raises(InputProblem, match="automatic guide, not AutoPriorGuide"):
        objective(model, AutoPriorGuide(model, observed_names={"y"}), None, data)


def test_the_order_leads_from_the_importance_weighted_bound_to_the_elbo() -> None:
    model, data, guide, evidence = started()

    def bound(objective: Any) -> float:
        torch.manual_seed(5)
        return -float(objective(model, guide, None, data).detach())

    between = [bound(RenyiBound(32, alpha=alpha)) for alpha in ALPHAS]
    assert bound(IWAEBound(32)) == pytest.approx(between[0], abs=1e-5)
    assert between == sorted(between, reverse=True)
    assert bound(RenyiBound(32, alpha=1.0 - 1e-3)) == pytest.approx(bound(ELBO(32)), abs=1e-2)
    assert between[-1] > bound(ELBO(32)) and bound(RenyiBound(20_000, alpha=0.0)) == pytest.approx(evidence, abs=0.05)


@pytest.mark.parametrize(("alpha", "said"), [(1.0, "1 is the ELBO"), (1.5, "from above"), (-0.1, "from above")])
def test_an_order_that_bounds_nothing_from_below_is_refused(alpha: float, said: str) -> None:
    with pytest.raises(InputProblem, match=said):
        RenyiBound(4, alpha=alpha)
