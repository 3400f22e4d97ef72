"""Sentences on lets of data that are observed, and on hidden counts (section 18)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats as st

from tests.runtime.densities.supports import (
    GROUP,
    SERIES,
    M,
    Sentence,
    Values,
    Y,
    mixed,
    normal,
    positive,
    real,
    unit,
)

X = np.array([0.2, -1.0, 0.7, 1.1])
Z = (Y - Y.mean()) / Y.std(ddof=1)
GROWTH = np.concatenate([[0.0], np.diff(SERIES)])
DATA = "data y, x : Row\n"

DATA_OUTCOMES = {
    "a let of data": Sentence(
        DATA + "let z = (y - mean(y)) / sd(y)\n" + M + "observe z[i : Row] <- Normal(m * x[i], 1.5)",
        {"m": real()}, {"y": Y, "x": X}, lambda v: [normal(v["m"], 0), normal(Z, v["m"] * X, 1.5)],
    ),
    "a let of lets of data": Sentence(
        DATA + "let level = mean(y)\nlet w[i : Row] = (x[i] - mean(x)) / sum(x[j]^2 for j : Row)\n"
        "let z[i : Row] = y[i] - level + w[i]\n" + M + "observe z[i : Row] <- Normal(m, 1.0) [right_censored=late]",
        {"m": real()}, {"y": Y, "x": X, "late": [0, 0, 0, 1]},
        lambda v: [
            normal(v["m"], 0), normal(_centred()[:3], v["m"]),
            st.norm.logsf(_centred()[3], v["m"]),
        ],
    ),
    "a let by group": Sentence(
        "data y : Row\ndata g : Row -> G\nlet t[k : G] = sum(y[i] for i : Row if g[i] == k)\n" + M
        + "observe t[k : G] <- Normal(m, 1.0)",
        {"m": real()}, {"y": Y, "g": GROUP},
        lambda v: [normal(v["m"], 0), normal([Y[GROUP == 0].sum(), Y[GROUP == 1].sum()], v["m"])],
    ),
    "a let along a series": Sentence(
        "data s : Time\nlet growth[t : Time] = s[t] - s[t - 1] from 0.0\n" + M
        + "observe growth[t : Time] <- Normal(m * growth[t - 1], 1.0)",
        {"m": real()}, {"s": SERIES},
        lambda v: [normal(v["m"], 0), normal(GROWTH[1:], v["m"] * GROWTH[:-1])],
    ),
    "a let below a hidden state": Sentence(
        DATA + "let z = y - mean(y)\n" + M + "marginalize c[i : Row] : State <- Categorical([0.4, 0.6])\n"
        "    observe z[i : Row] <- Normal(m + 2.0 * c[i], 1.0)",
        {"m": real()}, {"y": Y, "x": X},
        lambda v: [normal(v["m"], 0), mixed([0.4, 0.6], normal((Y - Y.mean())[:, None], [v["m"], v["m"] + 2.0]))],
    ),
    "a let of counts": Sentence(
        "data n : Row -> Nat\nlet k = n + n\nsample r <- Exponential(1.0)\nobserve k[i : Row] <- Poisson(r)",
        {"r": lambda random: np.exp(random.normal())}, {"n": [1, 0, 2, 1]},
        lambda v: [-v["r"], np.array([2, 0, 4, 2]) * np.log(v["r"]) - v["r"] - np.log([2.0, 1.0, 24.0, 2.0])],
    ),
}  # fmt: skip


LOW, HIGH = np.array([0, 2, 0, 3]), np.array([10, 20, 7, 30])
SEEN = np.array([[1, 2, 0, 1, 1], [4, 3, 2, 2, 4], [0, 0, 1, 0, 0], [9, 8, 10, 7, 9]])
PLACE, FOUND = np.array([0, 1, 1, 3, 2]), np.array([3, 0, 4, 9, 0])


def _counted(low: int, high: int, prior: Callable[[Any], Any], *seen: Callable[[Any], Any]) -> float:
    """log Σ_n p(n) Π p(seen | n), over all n one after the other."""
    return float(np.logaddexp.reduce([prior(n) + sum(np.sum(one(n)) for one in seen) for n in range(low, high + 1)]))


def _uniform(low: int, high: int) -> Callable[[Any], Any]:
    return lambda n: -np.log(high - low + 1.0)


def _abundance(v: Values) -> list[Any]:
    each = [
        _counted(
            low, high, _uniform(low, high), lambda n, g=g: st.binom.logpmf(SEEN[g], n, v["p"]),
            lambda n, g=g: st.poisson.logpmf(FOUND[g == PLACE], 0.7 * n + 0.1),
        )
        for g, (low, high) in enumerate(zip(LOW, HIGH, strict=True))
    ]  # fmt: skip
    return [st.beta.logpdf(v["p"], 2.0, 2.0), each]


def _royle(v: Values) -> list[Any]:
    """Royle (2004): abundances are Poisson, which a score says."""
    each = [
        _counted(0, 25, lambda n: st.poisson.logpmf(n, v["r"]), lambda n, g=g: st.binom.logpmf(SEEN[g], n, 0.4))
        for g in range(4)
    ]
    return [-v["r"], each]


def _survivors(v: Values) -> list[Any]:
    each = [
        _counted(0, high, lambda n, high=high: st.binom.logpmf(n, high, v["p"]), lambda n, g=g: normal(Y[g], n, 2.0))
        for g, high in enumerate(HIGH)
    ]
    return [st.beta.logpdf(v["p"], 2.0, 2.0), each]


PLACES = "data low, high : Row -> Nat\n"

COUNTS = {
    "hidden counts with bounds of data": Sentence(
        PLACES + "data where : Time -> Row\nsample p <- Beta(2.0, 2.0)\n"
        "marginalize n[g : Row] <- DiscreteUniform(low[g], high[g])\n"
        "    observe y[g : Row, t : Time] <- Binomial(n[g], p)\n"
        "    observe k[t : Time] <- Poisson(0.7 * n[where[t]] + 0.1)",
        {"p": unit()}, {"low": LOW, "high": HIGH, "y": SEEN, "where": PLACE, "k": FOUND}, _abundance,
    ),
    "hidden counts with a prior of their own": Sentence(
        "sample r <- Exponential(1.0)\nmarginalize n[g : Row] <- DiscreteUniform(0, 25)\n"
        "    score prior = sum(n[g] * log(r) - r - lgamma(n[g] + 1.0) + log(26.0) for g : Row)\n"
        "    observe y[g : Row, t : Time] <- Binomial(n[g], 0.4)",
        {"r": positive()}, {"y": SEEN}, _royle,
    ),
    "hidden counts from a Binomial": Sentence(
        PLACES + "sample p <- Beta(2.0, 2.0)\nmarginalize n[g : Row] <- Binomial(high[g], p)\n"
        "    observe y[g : Row] <- Normal(n[g], 2.0)",
        {"p": unit()}, {"low": LOW, "high": HIGH, "y": Y}, _survivors,
    ),
    "one hidden count": Sentence(
        M + "data top : Nat\nmarginalize n <- DiscreteUniform(0, top)\n    observe y[i : Row] <- Normal(m + n, 1.0)",
        {"m": real()}, {"y": Y, "top": 7},
        lambda v: [normal(v["m"], 0), _counted(0, 7, _uniform(0, 7), lambda n: normal(Y, v["m"] + n))],
    ),
}  # fmt: skip


def _centred() -> np.ndarray:
    return Y - Y.mean() + (X - X.mean()) / (X**2).sum()
