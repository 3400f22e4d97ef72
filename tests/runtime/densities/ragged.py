"""Sentences on ragged data, whose type has the lengths (section 18)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from tests.runtime.densities.supports import SERIES, M, Sentence, Values, normal, positive, real

N = np.array([5, 2])
NOTHING = np.nan
TABLES = np.stack([SERIES, np.where(np.arange(5) < 2, SERIES + 0.5, NOTHING)])
WORDS = np.array([[0, 1, 1, 0, 1], [1, 1, 0, 0, 0]])
THERE = np.arange(5) < N[:, None]
FLAGS = np.where(THERE, WORDS, NOTHING)
WEIGHTS = np.where(THERE, [[0.5, 2.0, 1.0, 1.5, 0.25], [3.0, 0.75, 0.0, 0.0, 0.0]], NOTHING)
DATA = "data n : G -> Nat\ndata x : G * Time -> Real 1 [lengths=n]\n"
TOTAL = np.array([0.4, 1.9])


def _rows(of: Any) -> list[Any]:
    """What exists of each sequence."""
    return [row[:count] for row, count in zip(np.asarray(of), N, strict=True)]


def _walks(v: Values) -> list[Any]:
    found = [normal(v["s"], 0.0)]
    for h, x in zip(_rows(v["h"]), _rows(TABLES), strict=True):
        found += [normal(h[0], 0.0, 2.0), normal(h[1:], 0.8 * h[:-1]), normal(x, h * v["s"])]
    return found


RAGGED = {
    "outcomes have the lengths of their type": Sentence(
        DATA + M + "observe x[g : G, t : Time] <- Normal(m, 1.0)",
        {"m": real()}, {"n": N, "x": TABLES},
        lambda v: [normal(v["m"], 0.0), *(normal(row, v["m"]) for row in _rows(TABLES))],
    ),
    "latents over the same sets have them": Sentence(
        DATA + "sample e[g : G, t : Time] <- Normal(0.0, 2.0)\nobserve x[g : G, t : Time] <- Normal(e[g, t], 1.0)",
        {"e": real(2, 5)}, {"n": N, "x": TABLES},
        lambda v: [normal(v["e"], 0.0, 2.0)[THERE], normal(TABLES, v["e"])[THERE]],
    ),
    "chains over the same sets have them": Sentence(
        DATA + "sample s <- Normal(0.0, 1.0)\n"
        "sample h[g : G, t : Time] <- Normal(0.8 * h[g, t - 1], 1.0) from Normal(0.0, 2.0)\n"
        "observe x[g : G, t : Time] <- Normal(h[g, t] * s, 1.0)",
        {"s": real(), "h": real(2, 5)}, {"n": N, "x": TABLES}, _walks,
    ),
    "sums run over what is there": Sentence(
        DATA + "data y : G -> Real 1\n" + M
        + "observe y[g : G] <- Normal(m * sum(x[g, t] for t : Time) + mean(x[g, t]^2 for t : Time), 1.0)",
        {"m": real()}, {"n": N, "x": TABLES, "y": TOTAL},
        lambda v: [
            normal(v["m"], 0.0),
            normal(TOTAL, [v["m"] * row.sum() + (row**2).mean() for row in _rows(TABLES)]),
        ],
    ),
    "what is computed of it has the lengths": Sentence(
        DATA + "data y : G -> Real 1\n" + M + "let c[g : G, t : Time] = x[g, t] - m\n"
        "let d[g : G, t : Time] = exp(c[g, t])\n"
        "observe y[g : G] <- Normal(logsumexp(d[g, t] for t : Time), prod(d[g, t] for t : Time if t < 3))",
        {"m": real()}, {"n": N, "x": TABLES, "y": TOTAL},
        lambda v: [
            normal(v["m"], 0.0),
            *(
                normal(y, logsumexp(np.exp(row - v["m"])), np.prod(np.exp(row - v["m"])[:3]))
                for y, row in zip(TOTAL, _rows(TABLES), strict=True)
            ),
        ],
    ),
    "ragged indices look up latents": Sentence(
        "data n : G -> Nat\ndata w : G * Time -> State [lengths=n]\ndata y : G -> Real 1\n"
        "sample b[s : State] <- Normal(0.0, 1.0)\nsample k : Real 1 [low=0.0] <- Flat()\n"
        "observe y[g : G] <- Normal(sum(b[w[g, t]] for t : Time), k)",
        {"b": real(2), "k": positive()}, {"n": N, "w": WORDS, "y": TOTAL},
        lambda v: [
            normal(v["b"], 0.0),
            *(normal(y, v["b"][row].sum(), v["k"]) for y, row in zip(TOTAL, _rows(WORDS), strict=True)),
        ],
    ),
    "flags and weights of each element": Sentence(
        DATA + "data f : G * Time -> Bool [lengths=n]\ndata w : G * Time -> Real 1 [lengths=n]\n" + M
        + "observe x[g : G, t : Time] <- Normal(m, 1.0) [right_censored=f, weight=w]\n"
        "observe y[g : G, t : Time] <- Normal(m, 2.0) [mask=f]",
        {"m": real()}, {"n": N, "x": TABLES, "y": TABLES, "f": FLAGS, "w": WEIGHTS},
        lambda v: [
            normal(v["m"], 0.0),
            (WEIGHTS * np.where(FLAGS == 1, norm.logsf(TABLES, v["m"]), normal(TABLES, v["m"])))[THERE],
            normal(TABLES, v["m"], 2.0)[THERE & (FLAGS == 1)],
        ],
    ),
    "limits of each element": Sentence(
        DATA + "data up : G * Time -> Real 1 [lengths=n]\n" + M
        + "observe x[g : G, t : Time] <- Normal(m, 1.0) [interval=up]\n"
        "observe y[g : G, t : Time] <- Normal(m, 2.0) [truncate_upper=up]",
        {"m": real()}, {"n": N, "x": TABLES, "y": TABLES, "up": TABLES + 1.5},
        lambda v: [
            normal(v["m"], 0.0),
            np.log(norm.cdf(TABLES + 1.5, v["m"]) - norm.cdf(TABLES, v["m"]))[THERE],
            (normal(TABLES, v["m"], 2.0) - norm.logcdf(TABLES + 1.5, v["m"], 2.0))[THERE],
        ],
    ),
    "hidden states along them": Sentence(
        DATA + M + "marginalize z[g : G, t : Time] : State <- Categorical([0.4, 0.6])\n"
        "    observe x[g : G, t : Time] <- Normal(m + 2.0 * z[g, t], 1.0)",
        {"m": real()}, {"n": N, "x": TABLES},
        lambda v: [
            normal(v["m"], 0.0),
            *(
                logsumexp(normal(row[:, None], [v["m"], v["m"] + 2.0]), axis=1, b=[0.4, 0.6])
                for row in _rows(TABLES)
            ),
        ],
    ),
}  # fmt: skip
