"""Sentences on priors and supports (section 17), and what a sentence is: a program with its density by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.stats as st
from scipy import linalg

HEAD = """object Row : FinSet 4
object G : FinSet 2
object Time : FinSet 5
object State : FinSet 2
object Animal : {hare, lynx}
"""
Y = np.array([0.4, 1.5, 2.0, 3.5])
GROUP = np.array([0, 1, 0, 1])
SERIES = np.array([0.3, -0.2, 0.9, 1.1, 0.4])
TABLE = np.array([[2.0, 0.3], [0.3, 1.0]])
LOW, HIGH = np.array([1, 3]), np.array([5, 8])

Values = dict[str, Any]
Draw = Callable[[np.random.Generator], Any]


class Sentence(NamedTuple):
    """Lines of a program, with the values of its latents and its density."""

    lines: str
    latents: dict[str, Draw]
    data: Values
    density: Callable[[Values], Any]
    """Of the latents by name, all log densities of the program, to be summed."""
    declared: str = ""
    """What stands above the program."""


def real(*shape: int) -> Draw:
    return lambda random: random.normal(size=shape)


def positive(*shape: int) -> Draw:
    return lambda random: np.exp(random.normal(size=shape))


def unit(*shape: int) -> Draw:
    return lambda random: random.uniform(0.1, 0.9, size=shape)


def ascending(size: int, low: float = 0.0) -> Draw:
    return lambda random: low + np.cumsum(np.exp(random.normal(size=size)))


def summing_to_zero(size: int) -> Draw:
    return lambda random: linalg.null_space(np.ones((1, size))) @ random.normal(size=size - 1)


def _factor(random: np.random.Generator) -> Any:
    """Of a correlation matrix: its rows have length 1."""
    r = random.uniform(-0.9, 0.9)
    return np.array([[1.0, 0.0], [r, np.sqrt(1.0 - r**2)]])


def normal(y: Any, loc: Any, scale: Any = 1.0) -> Any:
    return st.norm.logpdf(y, loc, scale)


def total(*parts: Any) -> float:
    return float(sum(np.sum(part) for part in parts))


def mixed(weights: Any, densities: Any) -> Any:
    """log Σ_k weights_k exp(densities_k) over the last axis."""
    return np.log(np.sum(np.asarray(weights) * np.exp(densities), -1))


M = "sample m <- Normal(0.0, 1.0)\n"
SEEN = "observe y[i : Row] <- "

SUPPORTS = {
    "flat on what is ascribed": Sentence(
        "sample s : Real 1 [low=0.0] <- Flat()\n" + SEEN + "Normal(0.0, s)",
        {"s": positive()}, {"y": Y}, lambda v: [normal(Y, 0.0, v["s"])],
    ),
    "flat ordered, without k!": Sentence(
        "sample s : Ordered 3 <- Flat()\n" + SEEN + "Normal(s[0], 1.0)",
        {"s": ascending(3)}, {"y": Y}, lambda v: [normal(Y, v["s"][0])],
    ),
    "flat between bounds": Sentence(
        "sample s : Real 1 [low=0.0, high=2.0] <- Flat()\n" + SEEN + "Normal(0.0, s)",
        {"s": unit()}, {"y": Y}, lambda v: [normal(Y, 0.0, v["s"])],
    ),
    "flat on Cholesky factors": Sentence(
        "sample L : CholeskyFactor 2 <- Flat()\nsample w : Real 2 <- MultivariateNormal([0.0, 0.0], L)\n"
        + SEEN + "Normal(w[1], 1.0)",
        {"L": _factor, "w": real(2)}, {"y": Y},
        lambda v: [st.multivariate_normal.logpdf(v["w"], [0.0, 0.0], v["L"] @ v["L"].T), normal(Y, v["w"][1])],
    ),
    "flat as the from of a chain": Sentence(
        "sample h[t : Time] <- Normal(h[t - 1], 1.0) from Flat()\nobserve y[t : Time] <- Normal(h[t], 1.0)",
        {"h": real(5)}, {"y": SERIES}, lambda v: [normal(v["h"][1:], v["h"][:-1]), normal(SERIES, v["h"])],
    ),
    "flat on a simplex": Sentence(
        "sample s : Simplex 3 <- Flat()\n" + SEEN + "Normal(s[0] - s[2], 1.0)",
        {"s": lambda random: random.dirichlet([2.0, 1.0, 3.0])}, {"y": Y},
        lambda v: [normal(Y, v["s"][0] - v["s"][2])],
    ),
    "a chain above 0, its first element too": Sentence(
        "sample h[t : Time] : Real 1 [low=0.0] <- Normal(0.5 * h[t - 1], 1.0) from Normal(1.0, 2.0)\n"
        "observe y[t : Time] <- Normal(h[t], 1.0)",
        {"h": positive(5)}, {"y": SERIES},
        lambda v: [
            normal(v["h"][0], 1.0, 2.0) - st.norm.logsf(0.0, 1.0, 2.0),
            normal(v["h"][1:], 0.5 * v["h"][:-1]) - st.norm.logsf(0.0, 0.5 * v["h"][:-1]),
            normal(SERIES, v["h"]),
        ],
    ),
    "censored within the bounds": Sentence(
        M + "observe y[i : Row] : Real 1 [low=0.0, high=9.0] <- Normal(m, 2.0) [right_censored=c]",
        {"m": real()}, {"y": Y, "c": [0, 0, 0, 1]},
        lambda v: [
            normal(v["m"], 0.0), normal(Y[:3], v["m"], 2.0),
            np.log(st.norm.cdf(9.0, v["m"], 2.0) - st.norm.cdf(Y[3], v["m"], 2.0)),
            -4.0 * np.log(st.norm.cdf(9.0, v["m"], 2.0) - st.norm.cdf(0.0, v["m"], 2.0)),
        ],
    ),
    "a mixture above 0": Sentence(
        M + "sample s : Real 1 [low=0.0] <- Mixture([0.3, 0.7], Normal(m, 1.0), Laplace(m, 2.0))\n"
        + SEEN + "Normal(s, 1.0)",
        {"m": real(), "s": positive()}, {"y": Y},
        lambda v: [
            normal(v["m"], 0.0), normal(Y, v["s"]),
            np.log(0.3 * st.norm.pdf(v["s"], v["m"]) + 0.7 * st.laplace.pdf(v["s"], v["m"], 2.0)),
            -np.log(0.3 * st.norm.sf(0.0, v["m"]) + 0.7 * st.laplace.sf(0.0, v["m"], 2.0)),
        ],
    ),
    "a family above 0": Sentence(
        "sample s : Real 1 [low=0.0] <- Normal(1.0, 2.0)\n" + SEEN + "Normal(s, 1.0)",
        {"s": positive()}, {"y": Y},
        lambda v: [normal(v["s"], 1.0, 2.0) - st.norm.logsf(0.0, 1.0, 2.0), normal(Y, v["s"])],
    ),
    "counts from 1": Sentence(
        "sample r <- Exponential(1.0)\nobserve n[i : Row] : Nat [low=1] <- Poisson(r)",
        {"r": positive()}, {"n": [1, 2, 2, 4]},
        lambda v: [-v["r"], st.poisson.logpmf([1, 2, 2, 4], v["r"]) - st.poisson.logsf(0, v["r"])],
    ),
    "counts between real bounds": Sentence(
        "sample r <- Exponential(1.0)\nobserve n[i : Row] : Real 1 [low=1.0, high=4.0] <- Poisson(r)",
        {"r": positive()}, {"n": [1, 2, 2, 4]},
        lambda v: [
            -v["r"], st.poisson.logpmf([1, 2, 2, 4], v["r"]),
            -4.0 * np.log(st.poisson.cdf(4, v["r"]) - st.poisson.cdf(0, v["r"])),
        ],
    ),
    "counts without bounds": Sentence(
        "sample r <- Exponential(1.0)\nobserve n[i : Row] : Nat <- Poisson(r)",
        {"r": positive()}, {"n": [1, 2, 0, 4]}, lambda v: [-v["r"], st.poisson.logpmf([1, 2, 0, 4], v["r"])],
    ),
    "bounds that are computed": Sentence(
        "data a : G\ndata g : Row -> G\nsample r <- Exponential(1.0)\n"
        "observe y[i : Row] : Real 1 [low=a[g[i]] - 1, high=3.0 * exp(r)] <- Normal(r, 1.0)",
        {"r": lambda random: 0.3 + random.uniform()}, {"a": [0.0, 0.1], "g": GROUP, "y": Y},
        lambda v: [
            -v["r"],
            normal(Y, v["r"])
            - np.log(st.norm.cdf(3 * np.exp(v["r"]), v["r"]) - st.norm.cdf(GROUP * 0.1 - 1.0, v["r"])),
        ],
    ),
    "a latent's bound is a latent": Sentence(
        "sample r <- Exponential(1.0)\nsample s[g : G] : Real 1 [low=2 * r + 1] <- Normal(0.0, 1.0)\n"
        + SEEN + "Normal(s[0] + s[1], 1.0)",
        {"r": unit(), "s": ascending(2, 3.0)}, {"y": Y},
        lambda v: [-v["r"], normal(v["s"], 0) - st.norm.logsf(2 * v["r"] + 1), normal(Y, v["s"].sum())],
    ),
    "positive and ascending": Sentence(
        "sample s : Ordered 3 [low=0.0] <- Normal(1.0, 2.0)\n" + SEEN + "Normal(s[1], 1.0)",
        {"s": ascending(3)}, {"y": Y},
        lambda v: [np.log(6.0), normal(v["s"], 1.0, 2.0) - st.norm.logsf(0.0, 1.0, 2.0), normal(Y, v["s"][1])],
    ),
    "arguments by place": Sentence(
        "sample s : Ordered 2 <- Normal([3.0, 10.0], 1.0)\n" + SEEN + "Normal(s[1], 1.0)",
        {"s": ascending(2)}, {"y": Y}, lambda v: [normal(v["s"], [3.0, 10.0]), normal(Y, v["s"][1])],
    ),
    "the same argument for each place": Sentence(
        "sample s : Ordered 2 <- Normal([3.0, 3.0], 1.0)\n" + SEEN + "Normal(s[1], 1.0)",
        {"s": ascending(2)}, {"y": Y}, lambda v: [normal(v["s"], 3.0), normal(Y, v["s"][1])],
    ),
    "an index is no place": Sentence(
        "sample b[g : G] <- Normal(0.0, 1.0)\nsample s[g : G] : Ordered 2 <- Normal(b[g], 1.0)\n"
        + SEEN + "Normal(s[0, 1] - s[1, 0], 1.0)",
        {"b": real(2), "s": lambda random: np.sort(random.normal(size=(2, 2)))}, {"y": Y},
        lambda v: [
            normal(v["b"], 0.0), 2.0 * np.log(2.0), normal(v["s"], v["b"][:, None]),
            normal(Y, v["s"][0, 1] - v["s"][1, 0]),
        ],
    ),
    "summing to zero in each group": Sentence(
        "sample t[g : G] <- HalfNormal(1.0)\n"
        "sample u[g : G, i : Row] <- Normal(0.0, t[g]) [sum_to_zero, noncentred]\n"
        + SEEN + "Normal(u[0, i] - u[1, i], 1.0)",
        {"t": positive(2), "u": lambda random: np.stack([summing_to_zero(4)(random) for _ in range(2)])}, {"y": Y},
        lambda v: [
            st.halfnorm.logpdf(v["t"]), normal(v["u"] @ linalg.null_space(np.ones((1, 4))), 0.0, v["t"][:, None]),
            normal(Y, v["u"][0] - v["u"][1]),
        ],
    ),
    "summing to zero": Sentence(
        "sample t <- HalfNormal(1.0)\nsample u[i : Row] <- Normal(0.0, t) [sum_to_zero]\n" + SEEN + "Normal(u[i], 1.0)",
        {"t": positive(), "u": summing_to_zero(4)}, {"y": Y},
        lambda v: [
            st.halfnorm.logpdf(v["t"]), normal(v["u"] @ linalg.null_space(np.ones((1, 4))), 0.0, v["t"]),
            normal(Y, v["u"]),
        ],
    ),
}  # fmt: skip
