"""Time series and fields: log densities against loops over the elements and matrices written out."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special, stats

from tests.examples.statistics.programs import assert_agrees
from tests.examples.statistics.tables import STATISTICS, Table

normal, half_normal = stats.norm.logpdf, stats.halfnorm.logpdf


def autoregression(v: SimpleNamespace) -> float:
    rate = Table("autoregression").rate
    prior = normal(v.level, 5, 3) + normal(v.phi).sum() + half_normal(v.sigma)
    terms = [normal(rate[t], v.level + v.phi @ (rate[[t - 1, t - 2]] - v.level), v.sigma) for t in range(2, len(rate))]
    return prior + sum(terms)


def garch(v: SimpleNamespace) -> float:
    change = Table("garch").change
    total = normal(v.mu, 0, 0.5) + half_normal(v.omega, scale=0.5)
    total += stats.beta.logpdf(v.alpha, 2, 8) + stats.beta.logpdf(v.persistence, 8, 2)
    variance = v.omega / (1 - v.persistence)
    for day, seen in enumerate(change):
        if day:
            past = (change[day - 1] - v.mu) ** 2
            variance = v.omega + v.alpha * past + (1 - v.alpha) * v.persistence * variance
        total += normal(seen, v.mu, np.sqrt(variance))
    return total


def local_linear_trend(v: SimpleNamespace) -> float:
    height = Table("local_linear_trend").height
    return (
        stats.lognorm.logpdf([v.level_sd, v.slope_sd], 0.5, scale=np.exp([-2.5, -3.5])).sum()
        + stats.lognorm.logpdf(v.gauge_sd, 0.2, scale=np.exp(-2.3))
        + normal(v.slope[0], 0, 0.1)
        + normal(v.slope[1:], v.slope[:-1], v.slope_sd).sum()
        + normal(v.level[0], 10, 2)
        + normal(v.level[1:], v.level[:-1] + v.slope[:-1], v.level_sd).sum()
        + normal(height, v.level, v.gauge_sd).sum()
    )


def stochastic_volatility(v: SimpleNamespace) -> float:
    change, phi = Table("stochastic_volatility").change, 2 * v.persistence - 1
    h = [v.mu + v.sigma * v.z[0] / np.sqrt(1 - phi**2)]
    for z in v.z[1:]:
        h.append(v.mu + phi * (h[-1] - v.mu) + v.sigma * z)
    return (
        normal(v.mu, -1, 1)
        + stats.beta.logpdf(v.persistence, 20, 1.5)
        + half_normal(v.sigma, scale=0.5)
        + normal(v.z).sum()
        + normal(change, 0, np.exp(np.array(h) / 2)).sum()
    )


def holt_winters(v: SimpleNamespace) -> float:
    sold = Table("holt_winters").sold
    total = stats.beta.logpdf([v.alpha, v.beta, v.gamma], [2, 1, 2], [2, 4, 2]).sum()
    total += normal(v.level0, 400, 50) + normal(v.trend0, 0, 5) + normal(v.season0, 0, 50).sum()
    total += half_normal(v.sigma, scale=20)
    level, trend, season = v.level0, v.trend0, list(v.season0)
    for quarter, seen in enumerate(sold[1:], 1):
        # the season of a quarter in the first year is that of `season0`
        last = season[quarter - 4] if quarter >= 4 else season[quarter]
        total += normal(seen, level + trend + last, v.sigma)
        before = level
        level = v.alpha * (seen - last) + (1 - v.alpha) * (level + trend)
        trend = v.beta * (level - before) + (1 - v.beta) * trend
        if quarter >= 4:
            season.append(v.gamma * (seen - level) + (1 - v.gamma) * last)
    return total


def change_point(v: SimpleNamespace) -> float:
    disasters = Table("change_point").disasters
    early, late = (stats.poisson.logpmf(disasters, rate) for rate in (v.early, v.late))
    years = len(disasters)
    each = [early[:change].sum() + late[change:].sum() - np.log(years) for change in range(years)]
    return stats.gamma.logpdf([v.early, v.late], 2.0).sum() + special.logsumexp(each)


def _squared_exponential(x: np.ndarray, alpha: float, rho: float) -> np.ndarray:
    return alpha**2 * np.exp(-((x[:, None] - x[None, :]) ** 2) / (2 * rho**2))


def gaussian_process(v: SimpleNamespace) -> float:
    t = Table("gaussian_process")
    K = _squared_exponential(t.age, v.alpha, v.rho) + v.sigma**2 * np.eye(len(t.age))
    prior = half_normal(v.alpha, scale=2) + stats.invgamma.logpdf(v.rho, 5, scale=20) + half_normal(v.sigma)
    return prior + stats.multivariate_normal.logpdf(t.height, cov=K)


def gaussian_process_counts(v: SimpleNamespace) -> float:
    t = Table("gaussian_process_counts")
    K = _squared_exponential(np.arange(25), v.alpha, v.rho) + 1e-6 * np.eye(25)
    rate = t.traffic * np.exp(v.mu + np.linalg.cholesky(K) @ v.z)
    return (
        normal(v.mu)
        + half_normal(v.alpha)
        + stats.invgamma.logpdf(v.rho, 5, scale=20)
        + normal(v.z).sum()
        + stats.poisson.logpmf(t.accidents, rate).sum()
    )


def icar(v: SimpleNamespace) -> float:
    data = {name: np.array(value) for name, value in json.loads((STATISTICS / "icar.json").read_text()).items()}
    one, other = data["edges"].T - 1
    assert abs(v.phi.sum()) < 1e-9
    risk = np.exp(v.intercept + v.beta * data["farming"] + v.tau * v.phi + v.kappa * v.theta)
    return (
        normal([v.intercept, v.beta]).sum()
        + half_normal([v.tau, v.kappa]).sum()
        - ((v.phi[one] - v.phi[other]) ** 2).sum() / 2
        + normal(v.theta).sum()
        + stats.poisson.logpmf(data["cases"], data["expected"] * risk).sum()
    )


@pytest.mark.parametrize(
    "density",
    [
        autoregression,
        garch,
        local_linear_trend,
        stochastic_volatility,
        holt_winters,
        change_point,
        gaussian_process,
        gaussian_process_counts,
        icar,
    ],
)
def test_the_density_is_what_the_formulas_say(density) -> None:
    assert_agrees(density)
