"""Sentences on differential equations and bases (section 19), and on families and functions as text (section 20)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats as st
from scipy import linalg

from tests.runtime.densities.supports import (
    GROUP,
    SEEN,
    SERIES,
    TABLE,
    M,
    Sentence,
    Values,
    Y,
    normal,
    positive,
    real,
    unit,
)

WHEN = np.array([0.5, 1.0, 1.0, 2.0, 3.5])
TIMES = np.array([WHEN, 2.0 * WHEN])
PAIRS = np.stack([SERIES, SERIES + 0.4])


def _runge_kutta(f: Callable[[float, Any], Any], z: Any, start: float, times: Any, steps: int) -> Any:
    """The classical method in so many steps between two times, one after the other."""
    found, t = [], start
    for end in times:
        h = (end - t) / steps
        for _ in range(steps):
            k1 = f(t, z)
            k2 = f(t + h / 2, z + h / 2 * k1)
            k3 = f(t + h / 2, z + h / 2 * k2)
            k4 = f(t + h, z + h * k3)
            z, t = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), t + h
        found.append(z)
    return np.array(found)


def _grown(r: float, start: float, times: Any, z: float = 0.3) -> Any:
    return _runge_kutta(lambda t, z: r * z * (1 - z) + 0.1 * t, z, start, times, 3)


def _passed(k: float) -> Any:
    """Two pools, of which the first empties into the second: its eigenvectors by hand."""
    first = 2.0 * np.exp(-k * WHEN)
    second = 2.0 * k / (0.5 - k) * (np.exp(-k * WHEN) - np.exp(-0.5 * WHEN)) + np.exp(-0.5 * WHEN)
    return np.stack([first, second], 1)


GROWTH = "def growth(t, z, r) = r * z * (1 - z) + 0.1 * t\n"
POOLS = 'def pools(t, z, k) = [-k * z[hare], k * z["hare"] - 0.5 * z[lynx]]\n'


def _pools(method: str, off: str) -> Sentence:
    return Sentence(
        "data when : Time\nsample k <- LogNormal(0.3, 0.2)\n"
        f"let z[t : Time, a : Animal] = solve(pools, [2.0, 1.0], k, start=0.0, at=when, method={method}, "
        f"rtol={off}, atol={off})\nobserve y[t : Time, a : Animal] <- Normal(z[t, a], 0.5)",
        {"k": lambda random: np.exp(0.3 + 0.2 * random.normal())}, {"when": WHEN, "y": PAIRS.T},
        lambda v: [st.lognorm.logpdf(v["k"], 0.2, 0, np.exp(0.3)), normal(PAIRS.T, _passed(v["k"]), 0.5)],
        POOLS,
    )  # fmt: skip


def _waves(rho: float) -> Any:
    """Sines around the middle of the data, on 1.5 times their range, with the spectral density of the kernel."""
    middle = (Y.max() + Y.min()) / 2
    edge = 1.5 * (Y.max() - Y.min()) / 2
    omega = np.arange(1, 5) * np.pi / (2 * edge)
    basis = np.sin(omega * (Y[:, None] - middle + edge)) / np.sqrt(edge)
    return basis * np.exp(-0.25 * (rho * omega) ** 2)


EQUATIONS = {
    "one number in fixed steps": Sentence(
        "data when : Time\nsample r <- Exponential(1.0)\n"
        "let z[t : Time] = solve(growth, 0.3, r, start=0.0, at=when, method=rk4, steps=3)\n"
        "observe y[t : Time] <- Normal(z[t], 0.5)",
        {"r": positive()}, {"when": WHEN, "y": SERIES},
        lambda v: [-v["r"], normal(SERIES, _grown(v["r"], 0.0, WHEN), 0.5)], GROWTH,
    ),
    "an equation for each group, from a latent start": Sentence(
        "data when : G * Time\nsample r[g : G] <- Exponential(1.0)\nsample s <- Beta(2.0, 3.0)\ndata z0 : G\n"
        "let z[g : G, t : Time] = solve(growth, z0[g], r[g], start=s - 1, at=when[g, t], method=rk4, steps=3)\n"
        "observe y[g : G, t : Time] <- Normal(z[g, t], 0.5)",
        {"r": positive(2), "s": unit()}, {"when": TIMES, "y": PAIRS, "z0": [0.3, 0.6]},
        lambda v: [
            -v["r"], st.beta.logpdf(v["s"], 2.0, 3.0),
            *(normal(PAIRS[g], _grown(v["r"][g], v["s"] - 1, TIMES[g], z), 0.5) for g, z in ((0, 0.3), (1, 0.6))),
        ],
        GROWTH,
    ),
    "labels in an equation": _pools("rk45", "1e-10"),
    "a stiff method": _pools("stiff", "1e-8"),
    "sines of a Gaussian process": Sentence(
        "data x : Row\nsample rho <- LogNormal(0.0, 0.5)\nsample w : Real 4 <- Normal(0.0, 1.0)\n"
        "let (phi, omega) = hsgp(x, m=4, c=1.5)\n"
        "let f = sum(phi * (w * exp(-0.25 * (rho * omega)^2)), -1)\n" + SEEN + "Normal(f[i], 1.0)",
        {"rho": positive(), "w": real(4)}, {"x": Y, "y": Y},
        lambda v: [
            st.lognorm.logpdf(v["rho"], 0.5), normal(v["w"], 0.0), normal(Y, _waves(v["rho"]) @ v["w"]),
        ],
    ),
    "a square function keeps its set twice": Sentence(
        "data A : G * G\n" + M + "let L = cholesky(A * exp(m))\n" + SEEN
        + "Normal(sum(L[g, h] for g : G, h : G), 1.0)",
        {"m": real()}, {"y": Y, "A": TABLE},
        lambda v: [normal(v["m"], 0), normal(Y, linalg.cholesky(TABLE * np.exp(v["m"]), lower=True).sum())],
    ),
}  # fmt: skip

BELL = """family Bell(loc, scale : Real 1 [low=0.0] = 1.0) : Real 1
    density(x) = -0.5 * ((x - loc) / scale)^2 - log(scale) - 0.9189385332046727
    cdf(x) = exp(log_ndtr((x - loc) / scale))
    standard(z) = loc + scale * z
"""
WAITS = """family Waits(rate : Real k [low=0.0]) : Real k [low=0.0]
    density(x) = sum(log(rate) - rate * x)
"""
LIBRARY = 'from "std/families.qvr" import Logistic, SkewNormal, ExGaussian, Wald, AsymmetricLaplace, Frechet\n'
SCALED = """def scaled(x, k = 2.0)
    let top = max(x)
    let out = k * x / top
    return out
def twice(x) = scaled(scaled(x), k=3.0)
"""


def _binomial(n: Any, mean: float) -> Any:
    """Of variance mean + 1.5 mean²."""
    return st.nbinom.logpmf(n, 1 / 1.5, 1 / (1 + 1.5 * mean))


FAMILIES = {
    "families of the library": Sentence(
        M + "sample s <- HalfNormal(1.0)\n"
        "observe a[i : Row] <- Logistic(m, s)\nobserve b[i : Row] <- SkewNormal(m, s, 2.0)\n"
        "observe c[i : Row] <- ExGaussian(m, s, 0.7)\nobserve d[i : Row] <- Wald(s, 2.0)\n"
        "observe e[i : Row] <- AsymmetricLaplace(m, s, 0.3)\nobserve f[i : Row] <- Frechet(2.0, s)",
        {"m": real(), "s": positive()}, dict.fromkeys("abcdef", Y),
        lambda v: [
            normal(v["m"], 0), st.halfnorm.logpdf(v["s"]), st.logistic.logpdf(Y, v["m"], v["s"]),
            st.skewnorm.logpdf(Y, 2.0, v["m"], v["s"]), st.exponnorm.logpdf(Y, 1 / (0.7 * v["s"]), v["m"], v["s"]),
            st.invgauss.logpdf(Y, v["s"] / 2.0, 0, 2.0), _laplace(v), st.invweibull.logpdf(Y, 2.0, 0, v["s"]),
        ],
        LIBRARY,
    ),
    "counts behind a gate": Sentence(
        "sample p <- Beta(2.0, 2.0)\nsample r <- Exponential(1.0)\n"
        "observe n[i : Row] <- ZeroInflated(p, Poisson(r))\n"
        "observe k[i : Row] <- Hurdle(p, NegativeBinomial(mean=r, dispersion=1.5))",
        {"p": unit(), "r": positive()}, {"n": [0, 2, 0, 3], "k": [0, 1, 4, 0]},
        lambda v: [
            st.beta.logpdf(v["p"], 2.0, 2.0), -v["r"], 2 * np.log(v["p"] + (1 - v["p"]) * np.exp(-v["r"])),
            np.log(1 - v["p"]) + st.poisson.logpmf([2, 3], v["r"]), 2 * np.log(v["p"]),
            np.log(1 - v["p"]) + _binomial([1, 4], v["r"]) - np.log(-np.expm1(_binomial(0, v["r"]))),
        ],
    ),
    "a family of the file, moved by its standard": Sentence(
        M + "sample s <- HalfNormal(1.0)\nsample b[g : G] <- Bell(m, s) [noncentred]\n" + SEEN + "Bell(b[g[i]])",
        {"m": real(), "s": positive(), "b": real(2)}, {"y": Y, "g": GROUP},
        lambda v: [
            normal(v["m"], 0), st.halfnorm.logpdf(v["s"]), normal(v["b"], v["m"], v["s"]),
            normal(Y, np.asarray(v["b"])[GROUP]),
        ],
        BELL,
    ),
    "a family of the file in a mixture": Sentence(
        M + SEEN + "Mixture([0.3, 0.7], Bell(m, scale=2.0), Laplace(0.0, 1.0))",
        {"m": real()}, {"y": Y},
        lambda v: [
            normal(v["m"], 0), np.log(0.3 * st.norm.pdf(Y, v["m"], 2.0) + 0.7 * st.laplace.pdf(Y)),
        ],
        BELL,
    ),
    "a family of the file, truncated": Sentence(
        M + "observe y[i : Row] : Real 1 [low=0.1] <- Bell(m, 2.0)",
        {"m": real()}, {"y": Y},
        lambda v: [normal(v["m"], 0), normal(Y, v["m"], 2.0) - st.norm.logsf(0.1, v["m"], 2.0)], BELL,
    ),
    "a family of the file in a chain": Sentence(
        "sample h[t : Time] <- Bell(0.5 * h[t - 1], 2.0) from Bell(0.0, 3.0)\nobserve y[t : Time] <- Bell(h[t])",
        {"h": real(5)}, {"y": SERIES},
        lambda v: [normal(v["h"][0], 0, 3.0), normal(v["h"][1:], 0.5 * v["h"][:-1], 2.0), normal(SERIES, v["h"])],
        BELL,
    ),
    "a family that is the same everywhere": Sentence(
        "sample m <- HalfNormal(1.0)\n" + SEEN + "Even(-1.0, m + 4.0)",
        {"m": positive()}, {"y": Y}, lambda v: [st.halfnorm.logpdf(v["m"]), st.uniform.logpdf(Y, -1.0, v["m"] + 5.0)],
        "family Even(low, high) : Real 1\n    density(x) = -log(high - low)\n",
    ),
    "a family of vectors": Sentence(
        "sample w : Real 2 <- Waits([2.0, 0.5])\n" + SEEN + "Normal(w[0] - w[1], 1.0)",
        {"w": positive(2)}, {"y": Y}, lambda v: [-2.0 * v["w"][0] - 0.5 * v["w"][1], normal(Y, v["w"][0] - v["w"][1])],
        WAITS,
    ),
    "a function for what it is given": Sentence(
        "data x : Row\nsample w : Real 3 <- Exponential(1.0)\n"
        "let a = twice(x)\nlet b = twice(w)\n" + SEEN + "Normal(a[i] * b[1], 1.0)",
        {"w": positive(3)}, {"y": Y, "x": Y},
        lambda v: [-v["w"], normal(Y, 3.0 * Y / Y.max() * 3.0 * v["w"][1] / v["w"].max())], SCALED,
    ),
}  # fmt: skip


def _laplace(v: Values) -> Any:
    """By its quantile: scipy's `kappa` is the root of the odds."""
    kappa = np.sqrt(0.3 / 0.7)
    return st.laplace_asymmetric.logpdf(Y, kappa, v["m"], v["s"] / np.sqrt(0.3 * 0.7))
