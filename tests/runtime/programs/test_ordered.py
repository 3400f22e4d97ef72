"""`: Ordered k`: density, draws, bijectors and inference."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats as st
import torch

from qvr_core import dsl
from qvr_core.inference import ELBO, MCMC, SVI, AutoNormalGuide, NUTSKernel, Predictive, trace
from qvr_core.runtime.families import RUNTIME_FAMILIES
from qvr_core.runtime.families.bijectors import Support, constrain
from qvr_core.runtime.families.on_spaces.ordered import ordered

t = torch.tensor


pytestmark = pytest.mark.usefixtures("double_precision")


ORDINAL = """object Row : FinSet 200
program p : Row -> Real 1
    sample cuts : Ordered 3 <- Normal(0.0, 5.0)
    sample b <- Normal(0.0, 1.0)
    let eta = b * x
    observe y : Row <- OrderedLogistic(eta, cuts)
    return b
export p
"""


def test_the_density_is_k_factorial_times_the_product():
    model = dsl.loads(ORDINAL).p
    cuts = np.array([-1.0, 0.5, 2.0])
    values = {"cuts": torch.as_tensor(cuts), "b": t(0.0), "x": torch.zeros(200), "y": torch.zeros(200).long()}
    found = trace(model, None, values).sites["cuts"].log_prob.sum()
    assert found.item() == pytest.approx(math.log(6) + st.norm(0, 5).logpdf(cuts).sum(), rel=1e-12)
    backwards = trace(model, None, {**values, "cuts": t([0.5, -1.0, 2.0])}).sites["cuts"].log_prob.sum()
    assert backwards.item() == -math.inf


@pytest.mark.parametrize("low", [None, -1.0])
@pytest.mark.parametrize("high", [None, 2.5])
def test_the_bijector_ascends_and_its_jacobian_is_the_determinant(low, high):
    support = Support("ordered", low, high)
    u = torch.randn(1, 4)
    value, log = constrain(u, support)
    assert (value[0, 1:] > value[0, :-1]).all()
    assert low is None or (value > low).all()
    assert high is None or (value < high).all()
    jacobian = torch.autograd.functional.jacobian(lambda v: constrain(v[None], support)[0][0], u[0])
    assert log.item() == pytest.approx(torch.linalg.slogdet(jacobian).logabsdet.item(), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("Normal", (0.3, 1.2)), ("HalfNormal", (1.2,)), ("Uniform", (-1.0, 2.0)), ("Gamma", (2.0, 1.5))],
)
def test_the_density_integrates_to_one_through_the_bijector(name, parameters):
    """The mean of density · |Jacobian| / proposal, over unconstrained numbers."""
    family = ordered(RUNTIME_FAMILIES[name], 3)
    params = tuple(t(p) for p in parameters)
    scale = 1.8
    u = scale * torch.randn(400_000, 3)
    proposal = torch.distributions.Normal(0.0, scale).log_prob(u).sum(-1)
    support = family.support(params)
    value, log = constrain(u, support)
    weights = (family.log_prob(value, *params) + log - proposal).exp()
    assert weights.mean().item() == pytest.approx(1.0, abs=5 * weights.std().item() / math.sqrt(len(u)))
    assert weights.std().item() < 20


def test_draws_are_order_statistics():
    """Entry i of k uniform draws is Beta(i, k + 1 − i); with a plate, each of its elements is ordered by itself."""
    text = """object Item : FinSet 5
program p : Item -> Real 1
    sample c : Ordered 3 <- Uniform(0.0, 1.0) [iid_over=Item]
    sample g : Ordered 2 <- Gamma(2.0, 1.0)
    return g
export p
"""
    drawn = Predictive(dsl.loads(text).p, num_samples=2000)(None, generator=torch.Generator().manual_seed(0))
    assert drawn["c"].shape == (2000, 5, 3) and drawn["g"].shape == (2000, 2)
    assert (drawn["c"].diff(dim=-1) > 0).all() and (drawn["g"].diff(dim=-1) > 0).all()
    for i in range(3):
        assert st.kstest(drawn["c"][:, 2, i].numpy(), st.beta(i + 1, 3 - i).cdf).pvalue > 1e-3


@pytest.mark.statistical
def test_cutpoints_of_an_ordinal_regression_are_found():
    generator = np.random.default_rng(1)
    x = generator.normal(size=200)
    truth, slope = np.array([-1.0, 0.5, 1.5]), 0.8
    y = (slope * x + generator.logistic(size=200) > truth[:, None]).sum(0)
    data = {"x": torch.as_tensor(x), "y": torch.as_tensor(y)}
    model = dsl.loads(ORDINAL).p
    result = MCMC(NUTSKernel(), num_warmup=300, num_samples=600, num_chains=2, seed=1).run(model, None, data)
    cuts = result.samples["cuts"].flatten(0, 1)
    assert (cuts.diff(dim=-1) > 0).all()
    assert np.abs(cuts.mean(0).numpy() - truth).max() < 0.6
    guide = AutoNormalGuide(model, observed_names={"y"})
    svi = SVI(model, guide, torch.optim.Adam(guide.parameters(), lr=0.05), ELBO(num_particles=8))
    for _ in range(500):
        svi.step(None, data)
    drawn = Predictive(model, guide, num_samples=2000, return_sites=["cuts"])(None, data)["cuts"]
    assert torch.allclose(drawn.mean(0), cuts.mean(0), atol=0.15)
