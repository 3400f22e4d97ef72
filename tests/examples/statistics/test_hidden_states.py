"""What is summed out: log densities against sums over states, and the forward recursion, written by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special, stats

from tests.examples.statistics.programs import assert_agrees
from tests.examples.statistics.tables import Table, among

normal, half_normal = stats.norm.logpdf, stats.halfnorm.logpdf


def _dirichlet(x: np.ndarray, alpha: float) -> float:
    """Log density of the rows of x, each under the same symmetric concentration."""
    k = x.shape[-1]
    constant = special.gammaln(k * alpha) - k * special.gammaln(alpha)
    return float((constant + (alpha - 1) * np.log(x).sum(-1)).sum())


def _forward(start: np.ndarray, P: np.ndarray, likelihood: np.ndarray) -> float:
    """log p of a chain's observations; likelihood is (times, states)."""
    belief, total = start, 0.0
    for step, seen in enumerate(likelihood):
        belief = (belief if step == 0 else belief @ P) * seen
        total += np.log(belief.sum())
        belief = belief / belief.sum()
    return total


def hidden_markov(v: SimpleNamespace) -> float:
    quakes = Table("hidden_markov").quakes
    P = np.diag(v.stay) + (1 - np.eye(3)) * (1 - v.stay)[:, None] / 2
    likelihood = stats.poisson.pmf(quakes[:, None], np.exp(v.log_rate))
    prior = np.log(6) + normal(v.log_rate, 2.5, 1).sum() + stats.beta.logpdf(v.stay, 8, 2).sum()
    return prior + _forward(np.array([0.4, 0.3, 0.3]), P, likelihood)


def hidden_markov_subjects(v: SimpleNamespace) -> float:
    t = Table("hidden_markov_subjects")
    elk, order = t.appearing("elk"), t.hour
    likelihood = stats.gamma.pdf(t.step[:, None], v.shape, scale=np.exp(v.log_length) / v.shape)
    prior = _dirichlet(v.P, 2.0) + _dirichlet(v.start, 1.0)
    prior += np.log(2) + normal(v.log_length).sum() + stats.lognorm.logpdf(v.shape, 0.5).sum()
    tracks = [np.flatnonzero(elk == e) for e in range(3)]
    return prior + sum(_forward(v.start, v.P, likelihood[track[np.argsort(order[track])]]) for track in tracks)


def capture_recapture(v: SimpleNamespace) -> float:
    """By the times at which a bird was last seen, and the probability never to be seen after these."""
    t, birds = Table("capture_recapture"), Table("capture_recapture_dippers")
    phi, p = v.survival, v.detection
    unseen = np.ones(6)
    for spring in range(4, -1, -1):
        unseen[spring] = 1 - phi[spring + 1] * (1 - (1 - p) * unseen[spring + 1])
    dipper, total = np.array(t.words("dipper")), 0.0
    for name, first in zip(birds.words("Dipper"), birds.ringed.astype(int) - 1981, strict=True):
        mine = dipper == name
        history = dict(zip(t.spring[mine].astype(int) - 1981, t.seen[mine], strict=True))
        last = max([first, *(spring for spring, seen in history.items() if seen)])
        for spring in range(first + 1, last + 1):
            total += np.log(phi[spring]) + np.log(p if history[spring] else 1 - p)
        total += np.log(unseen[last])
    return total  # the priors are flat


def occupancy(v: SimpleNamespace) -> float:
    t, ponds = Table("occupancy"), Table("occupancy_ponds")
    heard, temperature = np.empty((30, 3)), np.empty((30, 3))
    cells = t.pond.astype(int) - 1, among(t.words("visit"), ["first", "second", "third"])
    heard[cells], temperature[cells] = t.heard, t.temperature
    psi, found = special.expit(v.a + v.b * ponds.reeds), special.expit(v.c + v.d * temperature)
    there = np.prod(np.where(heard == 1, found, 1 - found), 1)
    prior = normal([v.a, v.b, v.c, v.d], 0, 1.5).sum()
    return prior + np.log(psi * there + (1 - psi) * (heard.sum(1) == 0)).sum()


def mixture(v: SimpleNamespace) -> float:
    wait = Table("mixture").wait
    each = np.log(v.share) + normal(wait[:, None], v.mu, v.sigma)
    return (
        _dirichlet(v.share, 2.0)
        + np.log(2) + normal(v.mu, 70, 20).sum()
        + half_normal(v.sigma, scale=10).sum()
        + special.logsumexp(each, 1).sum()
    )  # fmt: skip


def topic_model(v: SimpleNamespace) -> float:
    t = Table("topic_model")
    document, word = t.ascending("document"), t.appearing("word")
    p = (v.theta @ v.phi)[document, word]
    return _dirichlet(v.theta, 0.5) + _dirichlet(v.phi, 0.2) + np.log(p).sum()


def raters(v: SimpleNamespace) -> float:
    t = Table("raters")
    slide, reader = t.ascending("slide"), t.appearing("reader")
    grade = among(t.words("grade"), ["benign", "atypical", "malignant"])
    each = np.tile(np.log(v.prevalence), (slide.max() + 1, 1))
    for s, r, g in zip(slide, reader, grade, strict=True):
        each[s] += np.log([v.hit[r, k] if k == g else (1 - v.hit[r, k]) / 2 for k in range(3)])
    prior = _dirichlet(v.prevalence, 2.0) + stats.beta.logpdf(v.hit, 6, 2).sum()
    return prior + special.logsumexp(each, 1).sum()


@pytest.mark.parametrize(
    "density", [hidden_markov, hidden_markov_subjects, capture_recapture, occupancy, mixture, topic_model, raters]
)
def test_the_density_is_what_the_formulas_say(density) -> None:
    assert_agrees(density)
