"""Guides, objectives and SVI: bounds, gradients, expansion over particles, and the errors they give."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from qvr_core.dsl import loads
from qvr_core.inference import (
    ELBO,
    SVI,
    AutoDeltaGuide,
    AutoLaplaceGuide,
    AutoLowRankMultivariateNormalGuide,
    AutoMultivariateNormalGuide,
    AutoNormalGuide,
    AutoPriorGuide,
    IWAEBound,
    Predictive,
)
from qvr_core.inference.objectives import weigh
from qvr_core.runtime.programs.handlers import condition, replay
from qvr_core.runtime.values.errors import DiscreteLatent, InputProblem, NoDensity, NonFinite
from tests.inference import posteriors
from tests.inference.walkthroughs import walkthrough

VANILLA = walkthrough("vanilla_rnn_lm").source
GUIDES = [AutoNormalGuide, AutoMultivariateNormalGuide, AutoLowRankMultivariateNormalGuide]


def conjugate() -> tuple[Any, dict[str, Tensor], float]:
    """A normal location model, its data, and its log evidence."""
    model = loads(posteriors.NORMAL_NORMAL).morphism
    y = torch.tensor([0.3, 1.2, -0.7, 2.5, 1.1, 0.4, 1.9, 0.1])
    covariance = 2.25 * torch.eye(8) + 4.0
    evidence = torch.distributions.MultivariateNormal(torch.full((8,), 1.0), covariance).log_prob(y)
    return model, {"y": y}, float(evidence)


def fitted(kind: type, model: Any, data: dict[str, Tensor], steps: int = 600, **settings: Any) -> Any:
    guide = kind(model, observed_names={"y"}, **settings)
    optim = torch.optim.Adam(guide.parameters(), lr=0.05)
    svi = SVI(model, guide, optim, ELBO(num_particles=8))
    for _ in range(steps):
        svi.step(None, data)
    return guide


@pytest.mark.parametrize("kind", GUIDES)
def test_the_bound_is_tight_where_the_guide_can_be_right(kind: type) -> None:
    model, data, evidence = conjugate()
    guide = fitted(kind, model, data)
    with torch.no_grad():
        bound = -float(ELBO(num_particles=4000)(model, guide, None, data))
    assert bound == pytest.approx(evidence, abs=0.03)


def test_more_particles_tighten_the_importance_weighted_bound() -> None:
    model, data, evidence = conjugate()
    guide = AutoNormalGuide(model, observed_names={"y"}, init_scale=1.0)
    with torch.no_grad():
        bounds = [
            -sum(float(objective(model, guide, None, data)) for _ in range(300)) / 300
            for objective in (ELBO(), IWAEBound(4), IWAEBound(64))
        ]
    assert bounds[0] < bounds[1] < bounds[2] < evidence + 0.05
    assert bounds[2] == pytest.approx(evidence, abs=0.1)


def test_sticking_the_landing_has_no_noise_at_the_optimum() -> None:
    model, data, _ = conjugate()
    guide = AutoNormalGuide(model, observed_names={"y"})
    precision = 1 / 4.0 + 8 / 2.25
    with torch.no_grad():
        (loc,), (log_scale,) = guide.raw_loc.values(), guide.raw_log_scale.values()
        loc.fill_((1.0 / 4.0 + float(data["y"].sum()) / 2.25) / precision)
        log_scale.fill_(-0.5 * math.log(precision))
    for objective, quiet in ((ELBO(stl=True), True), (ELBO(), False)):
        guide.zero_grad()
        objective(model, guide, None, data).backward()
        assert (abs(float(loc.grad)) < 1e-4) is quiet


def test_a_family_step_starts_narrow_at_the_middle_of_its_space() -> None:
    model, _, _ = conjugate()
    guide = AutoNormalGuide(model, observed_names={"y"})
    drawn = torch.cat([guide.propose(1).unconstrained["mu"] for _ in range(400)]).detach()
    assert float(drawn.mean()) == pytest.approx(0.0, abs=0.03)
    assert float(drawn.std()) == pytest.approx(0.1, rel=0.15)


@pytest.mark.parametrize("kind", [AutoNormalGuide, AutoDeltaGuide])
def test_latents_may_have_the_names_of_methods_of_modules(kind: Any) -> None:
    model = loads(
        "object R : FinSet 3\nprogram p : R -> R\n    sample half <- Normal(0.0, 1.0)\n"
        "    sample values <- Normal(half, 1.0)\n    observe y : R <- Normal(values, 1.0)\n    return half\nexport p\n"
    ).morphism
    guide = kind(model, observed_names={"y"}, observations={"y": torch.zeros(3)})
    assert len(list(guide.parameters())) == (4 if kind is AutoNormalGuide else 2)
    assert guide.propose(1).unconstrained.keys() == {"half", "values"}


def test_delta_finds_the_mode_and_laplace_its_curvature() -> None:
    model, data, evidence = conjugate()
    guide = fitted(AutoDeltaGuide, model, data)
    precision = 1 / 4.0 + 8 / 2.25
    mode = (1.0 / 4.0 + float(data["y"].sum()) / 2.25) / precision
    assert float(guide.loc["mu"].detach()) == pytest.approx(mode, abs=1e-3)
    laplace = fitted(AutoLaplaceGuide, model, data).laplace_approximation(model, None, data)
    assert float(laplace.scale_tril.detach()) == pytest.approx(precision**-0.5, rel=1e-3)
    with torch.no_grad():
        assert -float(ELBO(num_particles=4000)(model, laplace, None, data)) == pytest.approx(evidence, abs=0.02)


def test_particles_are_rows() -> None:
    model = loads(VANILLA).morphism
    guide = AutoNormalGuide(model, observed_names={"next_token"})
    x, y = torch.randint(0, 256, (3, 5)), torch.randint(0, 256, (3,))
    proposal = guide.propose(6)
    run = model.execute(x.repeat(2, 1), condition({"next_token": y.repeat(2)}), replay(proposal.noise))
    together = run.log_joint()
    noise = {name: site.noise for name, site in run.sites.items() if name == "h"}
    for particle in range(2):
        own = {"h": {path: u[3 * particle : 3 * particle + 3] for path, u in noise["h"].items()}}
        apart = model.execute(x, condition({"next_token": y}), replay(own)).log_joint()
        torch.testing.assert_close(together[3 * particle : 3 * particle + 3], apart, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("kind", [AutoNormalGuide, AutoPriorGuide])
def test_the_loss_is_a_mean_over_rows(kind: type) -> None:
    model = loads(VANILLA).morphism
    guide = kind(model, observed_names={"next_token"})
    x, y = torch.randint(0, 256, (4, 5)), torch.randint(0, 256, (4,))
    values = []
    for reduction in ("mean", "sum"):
        torch.manual_seed(3)
        values.append(float(ELBO(5, reduction)(model, guide, x, {"next_token": y}).detach()))
    assert values[1] == pytest.approx(4 * values[0], rel=1e-5)


def test_the_weights_of_a_guide_average_to_the_evidence() -> None:
    """E_q[p(y, z) / q(z)] = p(y), whichever guide proposes."""
    text = """
object Row : FinSet 3
program p : Row -> Row
    sample a <- Gamma(3.0, 2.0)
    sample w <- Dirichlet([2.0, 3.0])
    observe y : Row <- Normal(a * sum(w * [1.0, -1.0]), 1.0)
    return a
"""
    model = loads(text).morphism
    data = {"y": torch.tensor([0.3, -0.4, 0.1])}
    estimates = []
    for kind in (AutoPriorGuide, *GUIDES):
        settings = {} if kind is AutoPriorGuide else {"init_scale": 1.3}
        guide = kind(model, observed_names={"y"}, **settings)
        with torch.no_grad():
            _, log_weights = weigh(model, guide, None, data, 100_000)
        estimates.append(float(log_weights.logsumexp(0)) - math.log(100_000))
    assert max(estimates) - min(estimates) < 0.05


def test_a_discrete_latent_has_the_gradient_of_its_score() -> None:
    text = """
object X : Real 2
object Z : FinSet 3
object Y : Real 1
morphism which : X -> Z [role=kernel] ~ Categorical
morphism out : Z -> Y [role=kernel, scale=0.5] ~ Normal
program p : X -> Y
    sample z <- which
    observe y : Y <- out(z)
    return y
"""
    model = loads(text).morphism
    x, y = torch.randn(1, 2), torch.tensor([[0.7]])
    guide = AutoPriorGuide(model, observed_names={"y"})
    objective = ELBO(num_particles=20_000)
    model.zero_grad()
    objective(model, guide, x, {"y": y}).backward()
    found = {name: p.grad.clone() for name, p in model.named_parameters()}
    # the exact bound: E_{z ~ p(z | x)} log p(y | z)
    model.zero_grad()
    table = model.get_submodule("which").log_table(x)[0][0]
    states = torch.arange(3)
    each = model.get_submodule("out").log_prob(states, y.expand(3, 1))
    (-(table.exp() * each).sum()).backward()
    for name, p in model.named_parameters():
        torch.testing.assert_close(found[name], p.grad, atol=0.05, rtol=0.05, msg=name)


# ---------------------------------------------------------------- errors and predictions


def test_a_discrete_latent_cannot_be_moved() -> None:
    text = "object Row : FinSet 4\nprogram p : Row -> Row\n    sample z : Row <- Bernoulli(0.3)\n    return z\n"
    with pytest.raises(DiscreteLatent, match=r"`z` is discrete.*`marginalize z.*AutoPriorGuide"):
        AutoNormalGuide(loads(text).morphism)


def test_a_site_without_a_density_cannot_be_guided() -> None:
    text = """
object X : Real 2
morphism k : X -> X [role=kernel] ~ Normal
morphism n : X -> X [role=norm]
let h0 = k >> n
program p : X -> X
    sample h <- h0
    return h
"""
    with pytest.raises(NoDensity, match="deterministic arrow after its last draw"):
        AutoNormalGuide(loads(text).morphism)


def test_missing_observations_are_reported() -> None:
    model, _, _ = conjugate()
    guide = AutoNormalGuide(model, observed_names={"y"})
    with pytest.raises(InputProblem, match="the observations have no `y`"):
        ELBO()(model, guide, None, {})


def test_the_first_non_finite_value_is_named_and_nothing_moves() -> None:
    text = "object Row : FinSet 2\nprogram p : Row -> Row\n    sample m <- Normal(0.0, 1.0)\n"
    text += "    observe y : Row <- Gamma(2.0, exp(m))\n    return m\n"
    model = loads(text).morphism
    guide = AutoNormalGuide(model, observed_names={"y"})
    before = [p.clone() for p in guide.parameters()]
    svi = SVI(model, guide, torch.optim.Adam(guide.parameters(), lr=0.1), ELBO())
    with pytest.raises(NonFinite, match=r"site `y`: its log density has .* outside the support"):
        svi.step(None, {"y": torch.tensor([1.0, -2.0])})
    with pytest.raises(NonFinite, match="site `y`: the observed value has 1 NaN of 2"):
        svi.step(None, {"y": torch.tensor([1.0, float("nan")])})
    assert all(torch.equal(a, b) for a, b in zip(before, guide.parameters(), strict=True))


def test_predictive_draws_from_prior_guide_and_samples() -> None:
    model, data, _ = conjugate()
    prior = Predictive(model, num_samples=2000)()
    assert prior["mu"].shape == (2000,)
    assert float(prior["mu"].std()) == pytest.approx(2.0, rel=0.1)
    guide = fitted(AutoNormalGuide, model, data)
    drawn = Predictive(model, guide, num_samples=2000, return_sites=["mu"])()
    assert set(drawn) == {"mu"}
    assert float(drawn["mu"].std()) == pytest.approx((1 / 4.0 + 8 / 2.25) ** -0.5, rel=0.1)
    given = Predictive(model, posterior_samples={"mu": torch.full((500,), 3.0)})()
    assert given["y"].shape[0] == 500
    assert float(given["y"].mean()) == pytest.approx(3.0, abs=0.2)


def test_predictive_keeps_rows() -> None:
    model = loads(VANILLA).morphism
    drawn = Predictive(model, num_samples=7)(torch.randint(0, 256, (3, 5)))
    assert drawn["h"].shape == (7, 3, 128)
    assert drawn["next_token"].shape == (7, 3)
