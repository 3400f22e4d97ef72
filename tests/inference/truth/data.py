"""Data of ten posteriors: the eight schools as published (Rubin 1981), the others drawn under a fixed seed with
parameters near the published estimates of each model.

Models and priors are those of posteriordb (Magnusson et al.): eight_schools_noncentered, kidscore_interaction, arK,
garch11 (with a prior on the base of the variance, which is flat there), hmm_example, low_dim_gauss_mix, gp_regr,
wells_dist100, a radon model with varying intercepts, and irt_2pl.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Data = dict[str, Any]
Generator = np.random.Generator


def eight_schools(_: Generator) -> Data:
    return {
        "y": np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]),
        "sigma": np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]),
    }


def kidscore(g: Generator) -> Data:
    """Gelman & Hill (2007), section 3.3: test scores by the mother's school and intelligence."""
    hs = (g.random(434) < 0.79).astype(float)
    iq = g.normal(100.0, 15.0, 434)
    return {"hs": hs, "iq": iq, "points": -11.5 + 51.3 * hs + 1.1 * iq - 0.5 * hs * iq + 18.0 * g.standard_normal(434)}


def autoregression(g: Generator) -> Data:
    y = np.zeros(305)
    for t in range(5, 305):
        y[t] = 0.1 + y[t - 5 : t][::-1] @ np.array([0.5, -0.2, 0.15, 0.05, -0.1]) + 0.5 * g.standard_normal()
    return {"y": y[100:]}


def garch(g: Generator) -> Data:
    y = np.zeros(200)
    variance = 0.25
    for t in range(200):
        if t:
            variance = 0.3 + 0.35 * (y[t - 1] - 0.2) ** 2 + 0.4 * variance
        y[t] = 0.2 + np.sqrt(variance) * g.standard_normal()
    return {"y": y}


def hidden_markov(g: Generator) -> Data:
    state, levels, y = 0, (3.0, 9.0), np.zeros(100)
    for t in range(100):
        state = state if g.random() < (0.8, 0.65)[state] else 1 - state
        y[t] = levels[state] + g.standard_normal()
    return {"y": y}


def mixture(g: Generator) -> Data:
    second = g.random(1000) < 0.65
    return {"y": np.where(second, 2.0 + g.standard_normal(1000), -2.0 + 0.8 * g.standard_normal(1000))}


def gaussian_process(g: Generator) -> Data:
    x = np.linspace(-10.0, 10.0, 11)
    covariance = 9.0 * np.exp(-0.5 * ((x[:, None] - x) / 5.5) ** 2) + 0.5 * np.eye(11)
    return {"x": x, "y": np.linalg.cholesky(covariance) @ g.standard_normal(11)}


def wells(g: Generator) -> Data:
    """Gelman & Hill (2007), section 5.4: who changes to a safe well, by its distance in 100 metres."""
    distance = g.gamma(1.5, 0.32, 3020)
    chance = 1.0 / (1.0 + np.exp(-(0.61 - 0.62 * distance)))
    return {"distance": distance, "switched": (g.random(3020) < chance).astype(np.int64)}


def radon(g: Generator) -> Data:
    """Gelman & Hill (2007), chapter 12: 919 houses in 85 counties of unequal size."""
    size = g.gamma(0.8, 1.0, 85)
    county = g.choice(85, 919, p=size / size.sum())
    ground = (g.random(919) < 0.17).astype(float)
    level = 1.49 + 0.32 * g.standard_normal(85)
    return {"county": county, "ground": ground, "y": level[county] - 0.66 * ground + 0.73 * g.standard_normal(919)}


def item_response(g: Generator) -> Data:
    ability, slope = 1.2 * g.standard_normal(100), np.exp(0.4 * g.standard_normal(20))
    difficulty = 0.3 + 1.0 * g.standard_normal(20)
    chance = 1.0 / (1.0 + np.exp(-slope[:, None] * (ability - difficulty[:, None])))
    return {"right": (g.random((20, 100)) < chance).astype(np.int64)}


MAKE: dict[str, Callable[[Generator], Data]] = {
    made.__name__: made
    for made in (
        eight_schools, kidscore, autoregression, garch, hidden_markov, mixture, gaussian_process, wells, radon,
        item_response,
    )
}  # fmt: skip


def data_of(name: str) -> Data:
    """The same numbers each time."""
    return MAKE[name](np.random.default_rng(20))


def for_stan(name: str) -> Data:
    """The data as the Stan program calls them."""
    return {{"points": "score"}.get(key, key): value for key, value in data_of(name).items()}


def checksum(data: Data) -> float:
    """A number that other data would hardly have."""
    return float(sum((np.arange(1, value.size + 1) * value.ravel()).sum() for value in data.values()))
