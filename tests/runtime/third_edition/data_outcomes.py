"""Sentences on lets of data that are observed (section 18)."""

from __future__ import annotations

import numpy as np
import scipy.stats as st

from tests.runtime.third_edition.supports import GROUP, SERIES, M, Sentence, Y, mixed, normal, real

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


def _centred() -> np.ndarray:
    return Y - Y.mean() + (X - X.mean()) / (X**2).sum()
