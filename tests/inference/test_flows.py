"""Guides by normalising flows: their density is that of what they draw, their gradients are unbiased, and with them
the evidence of conjugate programs is found."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from scipy.special import betaln, gammaln
from torch import Tensor

from qvr_core.dsl import loads
from qvr_core.inference import (
    ELBO,
    SVI,
    AutoDAISGuide,
    AutoIAFGuide,
    AutoMixtureGuide,
    AutoMultivariateNormalGuide,
    AutoNormalGuide,
    AutoPathfinderGuide,
    AutoSplineGuide,
)
from qvr_core.inference.objectives import weigh
from tests.inference import posteriors

GUIDES = [AutoIAFGuide, AutoSplineGuide]
WIDER = [*GUIDES, AutoMixtureGuide]
TWO = """
object Row : FinSet 1
program banana : Row -> Row
    sample a <- Normal(0.0, 1.0)
    sample b <- Normal(a * a, 0.5)
    sample c <- Normal(0.0, exp(0.5 * a))
    observe y : Row <- Normal(b + c, 0.7)
    return a
"""
SEEN = {"y": torch.tensor([1.3])}


def bent(kind: Any, seed: int = 0) -> tuple[Any, Any]:
    """A program of three latents, and a flow that is not the identity it begins as."""
    torch.manual_seed(seed)
    model = loads(TWO).morphism
    model.double()
    guide = kind(model, observed_names={"y"}).double()
    with torch.no_grad():
        for parameter in guide.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model, guide


@pytest.mark.parametrize("kind", GUIDES)
def test_the_density_is_that_of_the_draws(kind: Any) -> None:
    """log q by the change of variables: the noise is found again from the draws, and its derivative taken in full."""
    _, guide = bent(kind)
    drawn, log_q = guide.draw_joint(7, torch.Generator().manual_seed(5))
    noise = torch.randn(7, 3, generator=torch.Generator().manual_seed(5), dtype=torch.float64)

    def moved(one: Tensor) -> Tensor:
        for bend in guide.bends:
            one = bend()(one)
        return guide.loc + guide.log_scale.exp() * one

    torch.testing.assert_close(moved(noise), drawn)
    for row in range(7):
        slope: Any = torch.autograd.functional.jacobian(moved, noise[row])
        by_hand = -0.5 * noise[row].square().sum() - 1.5 * math.log(2 * math.pi) - slope.det().abs().log()
        torch.testing.assert_close(log_q[row], by_hand)


@pytest.mark.parametrize("kind", GUIDES)
def test_a_flow_begins_as_the_normals_of_a_mean_field(kind: Any) -> None:
    model = loads(TWO).morphism
    guide = kind(model, observed_names={"y"})
    drawn, _ = guide.draw_joint(3, torch.Generator().manual_seed(1))
    noise = torch.randn(3, 3, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(drawn, 0.1 * noise, rtol=1e-5, atol=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", WIDER)
def test_without_the_score_the_density_is_the_same_and_the_gradient_unbiased(kind: Any) -> None:
    """A z-test of every parameter's gradient with a fixed seed: sticking the landing against the plain bound."""
    model, guide = bent(kind, seed=2)
    found: dict[bool, list[Tensor]] = {}
    values: dict[bool, float] = {}
    for stl in (False, True):
        torch.manual_seed(7)
        each: list[Tensor] = []
        for _ in range(150):
            guide.zero_grad()
            loss = ELBO(num_particles=100, stl=stl)(model, guide, None, SEEN)
            loss.backward()
            each.append(torch.cat([parameter.grad.flatten() for parameter in guide.parameters()]))
            values[stl] = float(loss.detach())
        found[stl] = each
    assert values[True] == pytest.approx(values[False], rel=1e-9)
    plain, stuck = torch.stack(found[False]), torch.stack(found[True])
    difference = plain - stuck
    moved = difference.std(0) > 1e-9
    z = (difference.mean(0) / (difference.std(0) / math.sqrt(len(difference))))[moved]
    # of some hundred correlated numbers: none far out, and as many beyond two as chance has
    assert float(z.abs().max()) < 5.0
    assert float((z.abs() > 2).double().mean()) < 0.15


@pytest.mark.parametrize("kind", [AutoNormalGuide, AutoMultivariateNormalGuide, *WIDER])
def test_where_the_guide_is_the_posterior_sticking_to_the_landing_has_no_noise(kind: Any) -> None:
    text = "object I : FinSet 3\nprogram p : I -> I\n    sample a[i : I] <- Normal(0.0, 1.0)\n    return a"
    model = loads(text).morphism
    guide = kind(model, init_scale=1.0)
    if kind is AutoMixtureGuide:
        with torch.no_grad():
            guide.loc.zero_()
    noises: dict[bool, float] = {}
    for stl in (False, True):
        guide.zero_grad()
        ELBO(num_particles=8, stl=stl)(model, guide).backward()
        noises[stl] = max(float(one.grad.abs().max()) for one in guide.parameters() if one.grad is not None)
    assert noises[True] < 1e-5
    assert noises[False] > 1e-2


def conjugate() -> dict[str, tuple[str, dict[str, Tensor], float]]:
    """Programs with a data set each, and their evidence in closed form."""
    y = torch.tensor([0.3, 1.2, -0.7, 2.5, 1.1, 0.4, 1.9, 0.1])
    covariance = 2.25 * torch.eye(8) + 4.0
    location = float(torch.distributions.MultivariateNormal(torch.full((8,), 1.0), covariance).log_prob(y))
    flips = torch.tensor([1, 0, 0, 1, 1, 0, 1, 1, 0, 1, 1, 1])
    heads = int(flips.sum())
    counts = torch.tensor([3, 1, 4, 1, 5, 2, 2, 6, 3])
    shape, rate, total = 2.0, 0.5, int(counts.sum())
    poisson = (
        shape * math.log(rate) - gammaln(shape) + gammaln(shape + total) - (shape + total) * math.log(rate + 9)
        - float(gammaln(counts.numpy() + 1.0).sum())
    )  # fmt: skip
    return {
        "location": (posteriors.NORMAL_NORMAL, {"y": y}, location),
        "coin": (posteriors.BETA_BERNOULLI, {"y": flips}, betaln(2 + heads, 3 + 12 - heads) - betaln(2.0, 3.0)),
        "counts": (posteriors.GAMMA_POISSON, {"y": counts}, poisson),
    }


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [*WIDER, AutoPathfinderGuide, AutoDAISGuide])
@pytest.mark.parametrize("name", ["location", "coin", "counts"])
def test_the_evidence_of_conjugate_programs(name: str, kind: Any) -> None:
    """The mean weight of 20,000 draws, within four of its standard errors, and a bound that is close below."""
    text, data, evidence = conjugate()[name]
    torch.manual_seed(3)
    model = loads(text).morphism
    of_all_data = {"observations": data} if kind in (AutoPathfinderGuide, AutoDAISGuide) else {}
    guide = kind(model, observed_names={"y"}, **of_all_data)
    if isinstance(guide, AutoPathfinderGuide):
        guide.climb(model, data)
    svi = SVI(model, guide, torch.optim.Adam(guide.parameters(), lr=0.02), ELBO(num_particles=16))
    for _ in range(400):
        svi.step(None, data)
    with torch.no_grad():
        log_weights = weigh(model, guide, None, data, 20_000)[1].double()
    weights = (log_weights - evidence).exp()
    error = float(weights.std()) / math.sqrt(len(weights))
    assert float(weights.mean()) == pytest.approx(1.0, abs=4 * error + 1e-6)
    assert evidence - 0.1 < float(log_weights.mean()) < evidence + 0.01
