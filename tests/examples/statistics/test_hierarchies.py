"""Regressions, hierarchies, choices and factors: log densities against those that formulas give."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special, stats

from tests.examples.statistics.programs import assert_agrees
from tests.examples.statistics.tables import Table, among

normal, half_normal, half_cauchy = stats.norm.logpdf, stats.halfnorm.logpdf, stats.halfcauchy.logpdf


def radon(v: SimpleNamespace) -> float:
    t, counties = Table("radon"), Table("radon_counties")
    county = among(t.words("county"), counties.words("County"))
    return (
        normal(v.mu, 0, 2)
        + normal([v.gamma, v.upstairs], 0, 1).sum()
        + half_normal([v.tau, v.sigma]).sum()
        + normal(v.level, v.mu + v.gamma * counties.log_uranium, v.tau).sum()
        + normal(t.log_radon, v.level[county] + v.upstairs * t.floor, v.sigma).sum()
    )


def varying_slopes(v: SimpleNamespace) -> float:
    t = Table("varying_slopes")
    subject, r = t.ascending("subject"), v.L[1, 0]
    assert np.allclose(v.L, [[1, 0], [r, np.sqrt(1 - r**2)]])
    u = v.beta + v.tau * np.stack([v.z[:, 0], r * v.z[:, 0] + np.sqrt(1 - r**2) * v.z[:, 1]], 1)
    return (
        normal(v.beta, 0, 3).sum()
        + half_normal(v.tau).sum()
        + stats.beta.logpdf((r + 1) / 2, 2, 2) - np.log(2)  # of a correlation under LKJ(2) in two dimensions
        + normal(v.z).sum()
        + half_normal(v.sigma)
        + normal(t.reaction, u[subject, 0] + u[subject, 1] * t.days, v.sigma).sum()
    )  # fmt: skip


def item_response(v: SimpleNamespace) -> float:
    t = Table("item_response")
    student, item = t.ascending("student"), t.ascending("item")
    p = special.expit(v.discrimination[item] * (v.ability[student] - v.difficulty[item]))
    return (
        normal(v.ability).sum()
        + normal(v.difficulty, 0, 2).sum()
        + stats.lognorm.logpdf(v.discrimination, 0.5).sum()
        + np.log(np.where(t.correct == 1, p, 1 - p)).sum()
    )


def multinomial_choice(v: SimpleNamespace) -> float:
    t, modes = Table("multinomial_choice"), ["car", "bus", "train"]
    cost = t.numbers(*[f"{mode}_cost" for mode in modes])
    minutes = t.numbers(*[f"{mode}_minutes" for mode in modes])
    beta = v.beta[t.ascending("person")]
    utility = v.preference + beta[:, :1] * cost + beta[:, 1:] * minutes
    chosen = among(t.words("mode"), modes)
    return (
        normal(v.preference, 0, 2).sum()
        + normal(v.mu).sum()
        + half_normal(v.tau).sum()
        + normal(v.beta, v.mu, v.tau).sum()
        + (utility[np.arange(len(chosen)), chosen] - special.logsumexp(utility, 1)).sum()
    )


def ordinal(v: SimpleNamespace) -> float:
    t = Table("ordinal")
    pain = among(t.words("pain"), ["none", "mild", "moderate", "severe", "unbearable"])
    eta = v.beta * t.dose + v.u[t.appearing("ward")]
    at_most = special.expit(np.concatenate([[-np.inf], v.cuts, [np.inf]]) - eta[:, None])
    p = np.diff(at_most, axis=1)[np.arange(len(pain)), pain]
    return (
        special.gammaln(5) + normal(v.cuts, 0, 3).sum()
        + normal(v.beta)
        + half_normal(v.tau)
        + normal(v.u, 0, v.tau).sum()
        + np.log(p).sum()
    )  # fmt: skip


def measurement_error(v: SimpleNamespace) -> float:
    t = Table("measurement_error")
    return (
        normal(v.mu, 9, 3)
        + half_normal(v.tau, scale=3)
        + normal(v.eaten, v.mu, v.tau).sum()
        + normal(v.a, 110, 20)
        + normal(v.b, 0, 5)
        + half_normal(v.sigma, scale=10)
        + normal(t.salt, v.eaten, t.error).sum()
        + normal(t.pressure, v.a + v.b * v.eaten, v.sigma).sum()
    )


def missing_predictors(v: SimpleNamespace) -> float:
    t = Table("missing_predictors")
    known = np.array([word != "" for word in t.words("fed")])
    fed = np.zeros(len(known))
    fed[known] = [float(word) for word in t.words("fed") if word]
    fed[~known] = v.fed  # of the latents, in the order of the rows
    return (
        half_normal(v.mean, scale=6)
        + normal(v.older, 0, 0.5)
        + stats.lognorm.logpdf(v.shape, 0.5, scale=np.exp(0.5))
        + stats.gamma.logpdf(fed, v.shape, scale=v.mean * np.exp(v.older * t.age) / v.shape).sum()
        + normal(v.intercept, 90, 15)
        + normal([v.b, v.d], 0, [3, 5]).sum()
        + half_normal(v.sigma, scale=15)
        + normal(t.marks, v.intercept + v.b * fed + v.d * t.age, v.sigma).sum()
    )


def ratings(v: SimpleNamespace) -> float:
    t = Table("ratings")
    viewer, film = t.ascending("viewer"), t.appearing("film")
    return (
        normal(v.mu, 3, 1)
        + half_normal(v.sd).sum()
        + normal(v.bias, 0, 0.5).sum()
        + normal(v.u).sum()
        + normal(v.q, 0, v.sd).sum()
        + half_normal(v.sigma)
        + normal(t.stars, v.mu + v.bias[film] + (v.u[viewer] * v.q[film]).sum(1), v.sigma).sum()
    )


def horseshoe(v: SimpleNamespace) -> float:
    t = Table("horseshoe")
    local = getattr(v, "lambda")
    beta = v.z * v.tau * local * np.sqrt(v.slab / (v.slab + v.tau**2 * local**2))
    x = t.numbers(*[f"x_{g}" for g in range(12)])
    return (
        normal(v.intercept, 5, 2)
        + half_cauchy(v.tau, scale=0.1)
        + stats.invgamma.logpdf(v.slab, 2, scale=8)
        + half_cauchy(local).sum()
        + normal(v.z).sum()
        + half_normal(v.sigma)
        + normal(t.tonnes, v.intercept + x @ beta, v.sigma).sum()
    )


def factor_analysis(v: SimpleNamespace) -> float:
    y = Table("factor_analysis").numbers("jaw", "width", "height", "length", "nose")
    W = np.tril(v.below, -1)
    W[[0, 1], [0, 1]] = v.diagonal
    return (
        normal(v.mu).sum()
        + normal(v.below).sum()
        + half_normal(v.diagonal, scale=2).sum()
        + half_normal(v.sigma)
        + stats.multivariate_normal.logpdf(y, v.mu, W @ W.T + v.sigma**2 * np.eye(5)).sum()
    )


def survival(v: SimpleNamespace) -> float:
    t = Table("survival")
    scale = np.exp(v.intercept + t.numbers("treated", "age", "stage") @ v.beta)
    z = (t.months / scale) ** v.shape
    hazard = np.log(v.shape / t.months * z)
    return (
        normal(v.intercept, 2.5, 1)
        + normal(v.beta).sum()
        + stats.lognorm.logpdf(v.shape, 0.5)
        + (np.where(t.censored == 1, 0, hazard) - z).sum()
    )


def mrp(v: SimpleNamespace) -> float:
    t = Table("mrp")
    state, age = t.appearing("state"), t.appearing("age")
    logits = v.mu + v.u[state] + v.a[age]
    return (
        normal(v.mu)
        + half_normal([v.tau, v.omega]).sum()
        + normal(v.u, 0, v.tau).sum()
        + normal(v.a, 0, v.omega).sum()
        - np.logaddexp(0, np.where(t.yes, -logits, logits)).sum()  # exact where a probability is all but 1
    )


def meta_analysis(v: SimpleNamespace) -> float:
    t = Table("meta_analysis")
    return (
        normal(v.mu)
        + half_normal(v.tau, scale=0.5)
        + normal(v.baseline, -2, 1).sum()
        + normal(v.effect, v.mu, v.tau).sum()
        + stats.binom.logpmf(t.controls_died, t.controls, special.expit(v.baseline)).sum()
        + stats.binom.logpmf(t.treated_died, t.treated, special.expit(v.baseline + v.effect)).sum()
    )


def neural_network(v: SimpleNamespace) -> float:
    t = Table("neural_network")
    with_one = np.column_stack([t.numbers("x_0", "x_1"), np.ones(30)])  # the last weight of each unit is its bias
    hidden = np.tanh(with_one @ v.first.T)
    expected = 50 + 20 * (np.column_stack([hidden, np.ones(30)]) @ v.second[0])
    return (
        half_normal(v.sigma, scale=5)
        + normal(v.first, 0, 1).sum()
        + normal(v.second, 0, 0.5).sum()
        + normal(t.percent, expected, v.sigma).sum()
    )


@pytest.mark.parametrize(
    "density",
    [
        neural_network,
        mrp,
        meta_analysis,
        radon,
        varying_slopes,
        item_response,
        multinomial_choice,
        ordinal,
        measurement_error,
        missing_predictors,
        ratings,
        horseshoe,
        factor_analysis,
        survival,
    ],
)
def test_the_density_is_what_the_formulas_say(density) -> None:
    assert_agrees(density)
