"""The guide of several Normals: its density, the gradient of its weights, and that it takes two modes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.stats as st
import torch

from qvr_core.dsl import loads
from qvr_core.inference import ELBO, SVI, AutoMixtureGuide, Predictive
from qvr_core.inference.objectives import weigh
from qvr_core.runtime.values.errors import InputProblem
from tests.inference import posteriors

APART = """
program target : FinSet 1 -> Real 1
    sample v <- Mixture([0.3, 0.7], Normal(-3.0, 0.7), Normal(2.0, 1.0))
    return v
export target
"""


def moved(text: str, observed: set[str], components: int) -> tuple[Any, AutoMixtureGuide]:
    """A program and a guide of it that is not what it begins as, in double precision."""
    torch.manual_seed(4)
    model = loads(text).morphism
    model.double()
    guide = AutoMixtureGuide(model, observed_names=observed, components=components).double()
    with torch.no_grad():
        for parameter in guide.parameters():
            parameter.add_(0.4 * torch.randn_like(parameter))
    return model, guide


def test_the_density_is_that_of_the_draws() -> None:
    text = APART.replace("    return", "    sample w[i : FinSet 3] <- Normal(v, 1.0)\n    return")
    _, guide = moved(text, set(), 3)
    drawn, log_q = guide.draw_joint(200, torch.Generator().manual_seed(5))
    assert drawn.shape == (200, 4)
    tril = guide.lower.tril(-1) + guide.log_diagonal.exp().diag_embed()
    each = [
        st.multivariate_normal(loc.numpy(), (one @ one.T).numpy()).logpdf(drawn.detach().numpy())
        for loc, one in zip(guide.loc.detach(), tril.detach(), strict=True)
    ]
    weights = guide.weights.detach().numpy()
    by_hand = np.log(sum(weight * np.exp(one) for weight, one in zip(weights, each, strict=True)))
    np.testing.assert_allclose(log_q.detach().numpy(), by_hand, rtol=1e-9)
    shares = torch.bincount(guide._chosen, minlength=3) / 200
    np.testing.assert_allclose(shares.numpy(), weights, atol=0.12)


@pytest.mark.statistical
@pytest.mark.parametrize("stl", [False, True])
def test_the_gradient_is_that_of_the_bound_by_quadrature(stl: bool) -> None:
    """A z-test of each parameter with a fixed seed, the weights' too, whose gradient is the score's."""
    data = {"y": torch.tensor([0.3, 1.2, -0.7, 2.5, 1.1, 0.4, 1.9, 0.1])}
    model, guide = moved(posteriors.NORMAL_NORMAL, {"y"}, 2)
    inputs = [guide.loc, guide.log_diagonal, guide.logits]

    def bound(flat: np.ndarray) -> float:
        loc, log_sd, logits = flat[:2], flat[2:4], flat[4:]
        weights = np.exp(logits - np.logaddexp(*logits))
        low, high = (loc - 8 * np.exp(log_sd)).min(), (loc + 8 * np.exp(log_sd)).max()
        z = np.linspace(low, high, 4001)
        q = weights @ st.norm.pdf(z, loc[:, None], np.exp(log_sd)[:, None])
        p = st.norm.logpdf(z, 1.0, 2.0) + sum(st.norm.logpdf(one, z, 1.5) for one in data["y"].tolist())
        return float(scipy.integrate.simpson(q * (p - np.log(q)), x=z))

    at = torch.cat([one.detach().flatten() for one in inputs]).numpy()
    step = 1e-4
    slopes = [(bound(at + step * unit) - bound(at - step * unit)) / (2 * step) for unit in np.eye(len(at))]
    torch.manual_seed(7)
    found: list[torch.Tensor] = []
    for _ in range(150):
        guide.zero_grad()
        ELBO(num_particles=200, stl=stl)(model, guide, None, data).backward()
        found.append(-torch.cat([one.grad.flatten() for one in inputs if one.grad is not None]))
    each = torch.stack(found)
    z = (each.mean(0).numpy() - np.array(slopes)) / (each.std(0).numpy() / math.sqrt(len(each)))
    assert np.abs(z).max() < 4.0, (z, slopes)


@pytest.mark.statistical
def test_two_modes_are_both_taken() -> None:
    torch.manual_seed(1)
    model = loads(APART).morphism
    guide = AutoMixtureGuide(model)
    svi = SVI(model, guide, torch.optim.Adam(guide.parameters(), lr=0.02), ELBO(num_particles=32))
    for _ in range(1000):
        svi.step(None, {})
    with torch.no_grad():
        log_weights = weigh(model, guide, None, {}, 20_000)[1].double()
        drawn = Predictive(model, guide, num_samples=20_000)(None)["v"].flatten()
    assert float(log_weights.mean()) > -0.05
    assert float((drawn < -0.5).float().mean()) == pytest.approx(0.3, abs=0.05)


def test_one_component_is_another_guide() -> None:
    model = loads(APART).morphism
    with pytest.raises(InputProblem, match="multivariate_normal"):
        AutoMixtureGuide(model, components=1)
