"""Posteriors that are known: closed forms, filters, published results, calibration.  Seeds are fixed.

Tolerances are about five Monte Carlo standard errors of the run lengths used here.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor

from qvr_core.dsl import loads
from qvr_core.inference import (
    ELBO,
    MCMC,
    SVI,
    AutoMultivariateNormalGuide,
    AutoNormalGuide,
    HMCKernel,
    MCMCResult,
    NUTSKernel,
    Predictive,
)
from qvr_core.runtime.programs.handlers import condition
from tests.inference import posteriors

pytestmark = pytest.mark.statistical


def nuts(text: str, data: dict[str, Any], draws: int = 800, chains: int = 4, **settings: Any) -> MCMCResult:
    return MCMC(NUTSKernel(**settings), 400, draws, chains, seed=1).run(loads(text).morphism, None, data)


def full_covariance(text: str, data: dict[str, Any], steps: int = 1500) -> dict[str, Tensor]:
    """Draws of every latent from a full-covariance guide after SVI."""
    model = loads(text).morphism
    observed = {name for name in data if name in model.sites}
    guide = AutoMultivariateNormalGuide(model, observed_names=observed, observations=data)
    optim = torch.optim.Adam(guide.parameters(), lr=0.02)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optim, steps)
    svi = SVI(model, guide, optim, ELBO(num_particles=16))
    for _ in range(steps):
        svi.step(None, data)
        schedule.step()
    return Predictive(model, guide, num_samples=4000)(None, data)


CONJUGATE = {
    "beta-bernoulli": (
        posteriors.BETA_BERNOULLI,
        {"y": torch.tensor([1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0])},
        "p",
        stats.beta(2 + 8, 3 + 4),
    ),
    "normal-normal": (
        posteriors.NORMAL_NORMAL,
        {"y": torch.tensor([0.3, 1.2, -0.7, 2.5, 1.1, 0.4, 1.9, 0.1])},
        "mu",
        stats.norm(
            (1.0 / 4.0 + 6.8 / 2.25) / (1 / 4.0 + 8 / 2.25),
            math.sqrt(1 / (1 / 4.0 + 8 / 2.25)),
        ),
    ),
    "gamma-poisson": (
        posteriors.GAMMA_POISSON,
        {"y": torch.tensor([3, 1, 4, 1, 5, 9, 2, 6, 5])},
        "rate",
        stats.gamma(2 + 36, scale=1 / (0.5 + 9)),
    ),
}


@pytest.mark.parametrize("name", CONJUGATE)
def test_conjugate_by_nuts(name: str) -> None:
    text, data, site, exact = CONJUGATE[name]
    result = nuts(text, data)
    draws = result.samples[site].flatten()
    assert float(result.r_hat[site]) < 1.02
    error = exact.std() / math.sqrt(float(result.ess[site]))
    assert float(draws.mean()) == pytest.approx(exact.mean(), abs=5 * error)
    assert float(draws.std()) == pytest.approx(exact.std(), rel=0.12)
    for level in (0.1, 0.9):
        assert float(draws.quantile(level)) == pytest.approx(exact.ppf(level), abs=0.2 * exact.std())


@pytest.mark.parametrize("name", CONJUGATE)
def test_conjugate_by_full_covariance_svi(name: str) -> None:
    text, data, site, exact = CONJUGATE[name]
    draws = full_covariance(text, data)[site].flatten()
    assert float(draws.mean()) == pytest.approx(exact.mean(), abs=0.15 * exact.std())
    assert float(draws.std()) == pytest.approx(exact.std(), rel=0.12)


def inverse_gamma_posterior(y: Tensor) -> tuple[Any, Any]:
    """Marginals of (v, mu) for v ~ IG(3, 2), mu | v ~ N(0.5, v/2)."""
    n, mean = len(y), float(y.mean())
    kappa = 2.0 + n
    location = (2.0 * 0.5 + n * mean) / kappa
    a = 3.0 + n / 2
    b = 2.0 + 0.5 * float((y - mean).square().sum()) + 0.5 * 2.0 * n * (mean - 0.5) ** 2 / kappa
    return stats.invgamma(a, scale=b), stats.t(2 * a, location, math.sqrt(b / (a * kappa)))


def test_normal_inverse_gamma() -> None:
    y = torch.tensor([1.3, 0.2, 2.1, 0.7, 1.5, -0.4, 0.9, 1.1, 2.6, 0.3])
    variance, location = inverse_gamma_posterior(y)
    result = nuts(posteriors.NORMAL_INVERSE_GAMMA, {"y": y}, draws=800)
    fitted = full_covariance(posteriors.NORMAL_INVERSE_GAMMA, {"y": y})
    for site, exact in (("v", variance), ("mu", location)):
        draws = result.samples[site].flatten()
        error = exact.std() / math.sqrt(float(result.ess[site]))
        assert float(draws.mean()) == pytest.approx(exact.mean(), abs=5 * error)
        assert float(draws.quantile(0.9)) == pytest.approx(exact.ppf(0.9), abs=0.15 * exact.std())
        assert float(fitted[site].mean()) == pytest.approx(exact.mean(), abs=0.25 * exact.std())


def test_dirichlet_categorical() -> None:
    y = torch.tensor([0, 2, 2, 1, 2, 0, 1, 2, 2, 2, 1, 0, 2, 1, 2])
    alpha = torch.tensor([1.0, 2.0, 3.0]) + torch.bincount(y, minlength=3)
    mean = alpha / alpha.sum()
    sd = (mean * (1 - mean) / (alpha.sum() + 1)).sqrt()
    result = nuts(posteriors.DIRICHLET_CATEGORICAL, {"y": y})
    draws = result.samples["p"].flatten(0, 1)
    torch.testing.assert_close(
        draws.mean(0), mean, atol=float(5 * (sd / result.ess["p"].sqrt()).max()), rtol=0.0, check_dtype=False
    )
    torch.testing.assert_close(draws.std(0), sd, rtol=0.12, atol=0.0, check_dtype=False)
    fitted = full_covariance(posteriors.DIRICHLET_CATEGORICAL, {"y": y})["p"].flatten(0, -2)
    torch.testing.assert_close(fitted.mean(0), mean, atol=0.02, rtol=0.0, check_dtype=False)


def test_linear_regression() -> None:
    x = torch.randn(30, 3)
    y = x @ torch.tensor([1.0, -0.5, 0.3]) + 0.7 * torch.randn(30)
    precision = x.T @ x / 0.49 + torch.eye(3) / 4.0
    covariance = torch.linalg.inv(precision)
    mean = covariance @ (x.T @ y) / 0.49
    sd = covariance.diagonal().sqrt()
    result = nuts(posteriors.LINEAR_REGRESSION, {"y": y, "X": x}, dense_mass=True)
    draws = result.samples["beta"].flatten(0, 1)
    fitted = full_covariance(posteriors.LINEAR_REGRESSION, {"y": y, "X": x})["beta"].flatten(0, -2)
    for found in (draws, fitted):
        torch.testing.assert_close(found.mean(0), mean, atol=float(0.15 * sd.max()), rtol=0.0, check_dtype=False)
        torch.testing.assert_close(
            found.T.cov(), covariance, atol=float(0.2 * covariance.diagonal().max()), rtol=0.0, check_dtype=False
        )


def test_hmc_agrees() -> None:
    text, data, site, exact = CONJUGATE["normal-normal"]
    kernel = HMCKernel(trajectory_length=1.5)
    result = MCMC(kernel, 400, 800, 4, seed=3).run(loads(text).morphism, None, data)
    draws = result.samples[site].flatten()
    assert float(draws.mean()) == pytest.approx(exact.mean(), abs=0.1 * exact.std())
    assert float(draws.std()) == pytest.approx(exact.std(), rel=0.1)


def test_gaussian_chain_has_its_marginals() -> None:
    result = nuts(posteriors.GAUSSIAN_CHAIN, {}, draws=1000)
    a, b, c = (result.samples[name].flatten() for name in "abc")
    assert float(a.mean()) == pytest.approx(1.0, abs=0.1)
    assert float(b.mean()) == pytest.approx(0.5, abs=0.1)
    assert float(c.mean()) == pytest.approx(-0.5, abs=0.1)
    assert float(b.var()) == pytest.approx(0.25 + 0.64, rel=0.12)
    assert float(c.var()) == pytest.approx(0.25 + 0.64 + 0.36, rel=0.12)
    assert float(torch.stack([a, c]).cov()[0, 1]) == pytest.approx(-0.5, abs=0.1)


def test_prior_only_returns_the_prior() -> None:
    result = nuts(posteriors.PRIORS, {}, draws=1000)
    exact = {
        "a": stats.norm(1, 2),
        "b": stats.gamma(3, scale=0.5),
        "c": stats.beta(2, 5),
        "e": stats.uniform(-1, 4),
        "g": stats.t(7, 1, 2),
        "k": stats.truncnorm(0.5, 2.0),
    }
    for name, prior in exact.items():
        draws = result.samples[name].flatten()
        error = prior.std() / math.sqrt(float(result.ess[name]))
        assert float(draws.mean()) == pytest.approx(prior.mean(), abs=5 * error), name
        for level in (0.1, 0.5, 0.9):
            slack = 0.15 * prior.std()
            assert float(draws.quantile(level)) == pytest.approx(prior.ppf(level), abs=slack), name
    f = result.samples["f"]
    assert float(f.log().std()) == pytest.approx(0.5, rel=0.1)
    d = result.samples["d"].flatten(0, 1)
    torch.testing.assert_close(d.mean(0), torch.tensor([0.2, 0.3, 0.5]), atol=0.02, rtol=0.0, check_dtype=False)
    factor = result.samples["h"].flatten(0, 1)
    correlations = factor @ factor.mT
    torch.testing.assert_close(
        correlations.diagonal(dim1=-2, dim2=-1), torch.ones(len(factor), 3), atol=1e-4, rtol=0.0, check_dtype=False
    )
    # an off-diagonal entry under LKJ(η) in d dimensions is 2 Beta(α, α) − 1 with α = η + d/2 − 1
    assert float(correlations[:, 0, 1].var()) == pytest.approx(1.0 / (2.0 * 2.5 + 1.0), rel=0.15)


def test_funnel() -> None:
    centred = nuts(posteriors.FUNNEL, {}, draws=400, target_accept=0.6)
    assert int(centred.divergence_counts.sum()) > 0
    assert any("diverged" in warning and "write `z` non-centred" in warning for warning in centred.warnings)
    straight = nuts(posteriors.STRAIGHT_FUNNEL, {}, draws=1000)
    v = straight.samples["v"].flatten()
    assert int(straight.divergence_counts.sum()) == 0
    assert float(v.mean()) == pytest.approx(0.0, abs=0.4)
    assert float(v.std()) == pytest.approx(3.0, rel=0.1)


def test_eight_schools() -> None:
    data = {
        "y": torch.tensor([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]),
        "sigma": torch.tensor([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]),
    }
    result = nuts(posteriors.EIGHT_SCHOOLS, data, draws=1000, target_accept=0.9)
    # posteriordb, eight_schools_noncentered: mu 4.4 ± 3.3, tau 3.6 ± 3.2
    mu, tau = result.samples["mu"].flatten(), result.samples["tau"].flatten()
    assert float(mu.mean()) == pytest.approx(4.4, abs=0.4)
    assert float(mu.std()) == pytest.approx(3.3, abs=0.35)
    assert float(tau.mean()) == pytest.approx(3.6, abs=0.45)
    assert float(tau.std()) == pytest.approx(3.2, abs=0.6)
    assert max(float(value.max()) for value in result.r_hat.values()) < 1.02
    assert int(result.divergence_counts.sum()) <= 4


# ---------------------------------------------------------------- state spaces


def kalman(y: Tensor, a: float, q: float, c: float, d: float, r: float) -> float:
    """log p(y) for h_t = a h_{t−1} + N(0, q²), y_t = c h_t + d + N(0, r²), h_0 = 0."""
    mean, variance, total = 0.0, 0.0, 0.0
    for value in y.tolist():
        mean, variance = a * mean, a * a * variance + q * q
        spread = c * c * variance + r * r
        total += stats.norm(c * mean + d, math.sqrt(spread)).logpdf(value)
        gain = variance * c / spread
        mean, variance = mean + gain * (value - c * mean - d), (1.0 - gain * c) * variance
    return total


def test_elbo_of_a_linear_gaussian_scan_meets_the_kalman_filter() -> None:
    model = loads(posteriors.KALMAN).morphism
    values = dict(model.named_parameters())
    with torch.no_grad():
        for p in values.values():
            p.zero_()
        values["cell.output.weight"][0, 1] = 0.8
        values["emit.output.weight"][0, 0] = 1.3
        values["emit.output.bias"][0] = 0.2
    x = torch.zeros(1, 6, 1)
    y = model.rsample(x).detach()
    q, r = (s * (math.log1p(math.exp(0.541325)) + 0.001) for s in (0.7, 0.5))
    exact = kalman(y.flatten(), 0.8, q, 1.3, 0.2, r)
    bounds = {}
    for kind in (AutoNormalGuide, AutoMultivariateNormalGuide):
        guide = kind(model, observed_names={"y"}, x=x)
        optim = torch.optim.Adam(guide.parameters(), lr=0.02)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optim, 1500)
        svi = SVI(model, guide, optim, ELBO(num_particles=8))
        for _ in range(1500):
            svi.step(x, {"y": y})
            schedule.step()
        with torch.no_grad():
            bounds[kind] = -float(ELBO(num_particles=20000)(model, guide, x, {"y": y}))
    assert bounds[AutoNormalGuide] < exact + 0.02
    assert bounds[AutoMultivariateNormalGuide] < exact + 0.02
    assert bounds[AutoMultivariateNormalGuide] == pytest.approx(exact, abs=0.05)
    assert bounds[AutoNormalGuide] < bounds[AutoMultivariateNormalGuide] - 0.05


def test_hidden_markov_scan_meets_the_forward_algorithm() -> None:
    model = loads(posteriors.HIDDEN_MARKOV).morphism
    x, y = torch.randn(2, 5, 1), torch.randint(0, 4, (2, 5))
    found = model.execute(x, condition({"y": y})).log_joint()
    move, emit = model.get_submodule("move"), model.get_submodule("emit")
    states = torch.arange(3)
    emission = emit.log_table(states)[0]
    for row in range(2):
        step = [move.log_table((x[row, t].expand(3, 1), states))[0] for t in range(5)]
        alpha = step[0][0] + emission[:, y[row, 0]]
        for t in range(1, 5):
            alpha = (alpha[:, None] + step[t]).logsumexp(0) + emission[:, y[row, t]]
        assert found[row].item() == pytest.approx(alpha.logsumexp(0).item(), rel=1e-5)


# ---------------------------------------------------------------- simulation-based calibration


@pytest.mark.parametrize(
    ("text", "sites"), [(posteriors.SBC_LOCATION, ("mu", "s")), (posteriors.SBC_COUNTS, ("rate",))]
)
def test_simulation_based_calibration(text: str, sites: tuple[str, ...]) -> None:
    """200 replicates as 200 rows: their posteriors are independent, so one chain draws from all of them."""
    model = loads(text).morphism
    x = torch.zeros(200, 1)
    drawn = model.execute(x)
    result = MCMC(NUTSKernel(), 500, 2475, 1, seed=5).run(model, x, {"y": drawn.sites["y"].value})
    for site in sites:
        truth = drawn.sites[site].value.reshape(200)
        kept = result.samples[site][0, ::25].reshape(99, 200)
        ranks = (kept < truth).sum(0)
        counts = torch.histc(ranks.float(), bins=10, min=0, max=100)
        assert stats.chisquare(counts.numpy()).pvalue > 0.005, (site, counts)
        assert stats.kstest((ranks.numpy() + 0.5) / 100, "uniform").pvalue > 0.005
