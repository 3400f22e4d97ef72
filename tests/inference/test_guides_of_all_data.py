"""Guides that ask for the model's gradient: annealed draws, and Normals of several ways up the posterior."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from qvr_core.dsl import loads
from qvr_core.inference import ELBO, IWAEBound, Predictive
from qvr_core.inference.guides import AutoDAISGuide, AutoPathfinderGuide
from qvr_core.inference.objectives import weigh
from qvr_core.runtime.values.errors import InputProblem

SEEN = {"y": torch.tensor([0.4, 1.9, -0.6])}
BANANA = """
object I : FinSet 3
program banana : I -> Real 1
    sample a <- Normal(0.0, 1.0)
    sample b <- Normal(a * a, 0.5)
    observe y[i : I] <- Normal(b, 1.5)
    return a
"""
LINE = """
object I : FinSet 12
program line : I -> Real 1
    data x : I -> Real 1
    sample a <- Normal(0.0, 2.0)
    sample b <- Normal(1.0, 0.5)
    observe y[i : I] <- Normal(a + x[i] * b, 0.7)
    return a
"""
APART = """
program target : FinSet 1 -> Real 1
    sample v <- Mixture([0.3, 0.7], Normal(-1.5, 0.25), Normal(1.0, 0.35))
    return v
"""


def double(text: str) -> Any:
    model = loads(text).morphism
    model.double()
    return model


def test_a_way_is_a_leapfrog_walk_and_its_weight_that_of_the_momenta() -> None:
    """Against the walk by hand, with the density and its slope in closed form."""
    model = double(BANANA)
    guide = AutoDAISGuide(model, {"y"}, observations=SEEN, steps=3).double()
    torch.manual_seed(2)
    with torch.no_grad():
        for parameter in guide.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    z, log_q = guide.draw_joint(5, torch.Generator().manual_seed(8))
    generator = torch.Generator().manual_seed(8)
    noises = [torch.randn(5, 2, generator=generator, dtype=torch.float64).numpy() for _ in range(5)]
    tril, loc = guide.scale_tril.detach().numpy(), guide.loc.detach().numpy()
    y, kept = SEEN["y"].numpy(), float(guide.kept.detach().sigmoid())

    def slope(at: np.ndarray) -> np.ndarray:
        a, b = at.T
        by_b = -(b - a * a) / 0.25 + ((y[:, None] - b) / 2.25).sum(0)
        return np.stack([-a + 2.0 * a * (b - a * a) / 0.25, by_b], 1)

    def log_normal(at: np.ndarray) -> np.ndarray:
        return -0.5 * (at**2).sum(1) - math.log(2.0 * math.pi)

    u, momentum = noises[:2]
    by_hand = log_normal(u) - np.log(np.diag(tril)).sum()
    shares = guide.temperatures.detach().numpy()
    assert shares[-1] == pytest.approx(1.0) and (np.diff(shares) > 0.0).all()
    for size, share, noise in zip(guide.log_step.detach().exp().numpy(), shares, noises[2:], strict=True):
        u = u + 0.5 * size * momentum
        pushed = momentum + size * (share * slope(loc + u @ tril.T) @ tril - (1.0 - share) * u)
        u = u + 0.5 * size * pushed
        by_hand = by_hand + log_normal(momentum) - log_normal(pushed)
        momentum = kept * pushed + math.sqrt(1.0 - kept**2) * noise
    np.testing.assert_allclose(z.detach().numpy(), loc + u @ tril.T, rtol=1e-9)
    np.testing.assert_allclose(log_q.detach().numpy(), by_hand, rtol=1e-9)


def test_the_gradient_of_a_way_is_that_of_its_bound() -> None:
    """Central differences of the bound at the same noise: unbiased, since the noise is none of the parameters'."""
    model = double(BANANA)
    guide = AutoDAISGuide(model, {"y"}, observations=SEEN, steps=3).double()
    torch.manual_seed(2)
    with torch.no_grad():
        for parameter in guide.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))

    def loss() -> torch.Tensor:
        torch.manual_seed(5)
        return ELBO(num_particles=7)(model, guide, None, SEEN)

    loss().backward()
    for name, parameter in guide.named_parameters():
        assert parameter.grad is not None
        for place, found in enumerate(parameter.grad.flatten().tolist()):
            if name == "lower" and place != 2:
                continue
            with torch.no_grad():
                numbers, step = parameter.view(-1), 1e-6
                numbers[place] += step
                above = float(loss())
                numbers[place] -= 2.0 * step
                below = float(loss())
                numbers[place] += step
            assert found == pytest.approx((above - below) / (2.0 * step), rel=1e-5, abs=1e-6), (name, place)


def test_draws_of_a_way_need_no_gradient_and_are_those_of_the_posterior() -> None:
    """Weighted by importance they have the mean that quadrature gives."""
    model = double(BANANA)
    guide = AutoDAISGuide(model, {"y"}, observations=SEEN).double()
    with torch.no_grad():
        guide.log_diagonal.zero_()
        torch.manual_seed(1)
        run, log_weights = weigh(model, guide, None, SEEN, 20_000)
    assert not log_weights.requires_grad
    a, b = np.meshgrid(np.linspace(-5, 5, 801), np.linspace(-6, 14, 801), indexing="ij")
    log_p = -0.5 * a**2 - 0.5 * ((b - a * a) / 0.5) ** 2 - 0.5 * sum(((y - b) / 1.5) ** 2 for y in SEEN["y"].tolist())
    p = np.exp(log_p - log_p.max())
    weights = log_weights.softmax(0).numpy()
    drawn = run.sites["b"].value.detach().numpy().reshape(-1)
    size = 1.0 / float((weights**2).sum())
    mean, sd = (
        float((p * b).sum() / p.sum()),
        float(np.sqrt((p * b**2).sum() / p.sum() - ((p * b).sum() / p.sum()) ** 2)),
    )
    assert size > 2_000
    assert float(weights @ drawn) == pytest.approx(mean, abs=4.0 * sd / math.sqrt(size))


def test_the_way_up_a_normal_posterior_ends_in_it() -> None:
    """A linear model: mean and covariance in closed form, without a step of a fit."""
    model = double(LINE)
    y = torch.linspace(-1.0, 4.0, 12, dtype=torch.float64) + torch.tensor([0.3, -0.2, 0.1] * 4)
    seen = {"y": y, "x": 0.3 * torch.arange(12, dtype=torch.float64)}
    guide = AutoPathfinderGuide(model, {"y"}, observations=seen).double()
    guide.climb(model, seen, seed=3)
    design = np.stack([np.ones(12), 0.3 * np.arange(12)], 1)
    prior = np.diag([1 / 4.0, 1 / 0.25])
    covariance = np.linalg.inv(prior + design.T @ design / 0.49)
    mean = covariance @ (prior @ [0.0, 1.0] + design.T @ y.numpy() / 0.49)
    best = int(guide.weights.argmax())
    tril = (guide.lower.tril(-1) + guide.log_diagonal.exp().diag_embed()).detach().numpy()[best]
    np.testing.assert_allclose(guide.loc.detach().numpy()[best], mean, atol=0.05)
    np.testing.assert_allclose(tril @ tril.T, covariance, rtol=0.25, atol=0.01)
    with torch.no_grad():
        log_weights = weigh(model, guide, None, seen, 2_000)[1]
    assert float(log_weights.std()) < 0.3


def test_ways_into_two_modes_are_weighted_as_the_posterior_has_them() -> None:
    model = double(APART)
    guide = AutoPathfinderGuide(model, paths=6).double()
    guide.climb(model, seed=1)
    left = float(guide.weights.detach()[guide.loc[:, 0] < 0.0].sum())
    assert left == pytest.approx(0.3, abs=0.05)
    torch.manual_seed(1)
    drawn = Predictive(model, guide, num_samples=5_000)(None)["v"].flatten()
    assert float((drawn < -0.3).double().mean()) == pytest.approx(0.3, abs=0.05)
    # the same seed, the same ways
    again = AutoPathfinderGuide(model, paths=6).double()
    again.climb(model, seed=1)
    torch.testing.assert_close(again.loc, guide.loc)


@pytest.mark.parametrize("kind", [AutoDAISGuide, AutoPathfinderGuide])
def test_latents_of_rows_and_draws_inside_of_arrows_are_refused(kind: Any) -> None:
    file = loads("""
object R : Real 1
morphism k : R -> R [role=kernel] ~ Normal
program rows : R -> R
    sample z <- k
    observe y <- Normal(z, 1.0)
    return y
let twice = k >> k
program inside : FinSet 1 -> R
    sample z <- Normal(0.0, 1.0)
    sample w <- twice(z)
    observe y <- Normal(w, 1.0)
    return y
""")
    with pytest.raises(InputProblem, match="anew in each row"):
        kind(file.programs["rows"], {"y"}, observations={"y": torch.ones(1)})
    with pytest.raises(InputProblem, match="`w` draws inside"):
        kind(file.programs["inside"], {"y"}, observations={"y": torch.ones(1)})


def test_gradients_that_leave_the_way_out_are_refused() -> None:
    model = double(BANANA)
    guide = AutoDAISGuide(model, {"y"}, observations=SEEN).double()
    for bound in (ELBO(stl=True), IWAEBound(2, doubly=True)):
        with pytest.raises(InputProblem, match="the plain gradient alone"):
            bound(model, guide, None, SEEN)
    with pytest.raises(InputProblem, match="at least 1 step"):
        AutoDAISGuide(model, {"y"}, observations=SEEN, steps=0)


def test_no_way_up_is_told() -> None:
    model = double(
        "program p : FinSet 1 -> Real 1\n    sample v <- Normal(0.0, 1.0)\n    score s = log(0.0 * v)\n    return v\n"
    )
    guide = AutoPathfinderGuide(model)
    with pytest.raises(InputProblem, match="no path has found a place"):
        guide.climb(model)
