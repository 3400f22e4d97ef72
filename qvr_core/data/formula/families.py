"""What an outcome may be drawn from: the link of its mean, its other parameters with their priors, its draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from qvr_core.data.formula.numbers import short


@dataclass(frozen=True)
class Part:
    """A parameter beside the mean: its link where it has predictors, its prior where it has none."""

    link: str
    prior: Callable[[float, float], str]
    """From the mean and the standard deviation of the outcome."""
    start: Callable[[float, float], float]
    """Where the intercept of its predictors is centred, on the scale of the link."""
    meaning: str


@dataclass(frozen=True)
class Family:
    """A family of outcomes: the link of its mean, how it is drawn, its other parameters."""

    link: str
    draw: str
    parts: Mapping[str, Part] = field(default_factory=dict[str, Part])
    element: str = ""
    """The type of one outcome: `Bool`, `Nat`, bounds; empty for any number, `levels` for a set."""
    declared: str = ""
    """A family of distributions that the program declares."""
    log_scale: bool = False
    """The mean is that of the logarithm."""


def _log_of(value: float) -> float:
    return float(np.log(max(value, 1e-12)))


def _concentration(mean: float, sd: float) -> float:
    return _log_of(max(mean * (1 - mean) / max(sd * sd, 1e-9) - 1, 0.5))


_SIGMA = Part(
    "log",
    lambda mean, sd: f"HalfNormal({short(sd)})",
    lambda mean, sd: _log_of(sd),
    "what the predictors leave, of the size of the outcome's sd or less",
)
_NU = Part("log", lambda mean, sd: "Gamma(2.0, 0.1)", lambda mean, sd: 2.5, "degrees of freedom: small is heavy tails")
_SHAPE = Part(
    "log",
    lambda mean, sd: f"LogNormal({short(2 * _log_of(mean / max(sd, 1e-9)))}, 1.0)",
    lambda mean, sd: 2 * _log_of(mean / max(sd, 1e-9)),
    "1 over the square of sd by mean, about that of the outcome as a whole",
)
_WEIBULL = Part("log", lambda mean, sd: "LogNormal(0.0, 0.5)", lambda mean, sd: 0.0, "above 1 the risk rises with time")
_PHI = Part(
    "log",
    lambda mean, sd: f"LogNormal({short(_concentration(mean, sd))}, 1.0)",
    _concentration,
    "the larger, the nearer shares are to their mean",
)
_OVER = Part(
    "log", lambda mean, sd: "HalfNormal(1.0)", lambda mean, sd: -1.0, "how far the variance is above a Poisson's"
)
_ZI = Part(
    "logit", lambda mean, sd: "Beta(1.0, 1.0)", lambda mean, sd: 0.0, "the share of zeros beyond the counts' own"
)
_HU = Part("logit", lambda mean, sd: "Beta(1.0, 1.0)", lambda mean, sd: 0.0, "the share of zeros")


# A negative binomial is a sum of a Poisson number of logarithmic ones: of those from 1 one such (Kemp 1981), and what
# the rest of the rate brings.
_HURDLE_NEGATIVE = """\
# A zero, or a count from 1: what a negative binomial draws where it draws no zero.
family HurdleNegativeBinomial(
    gate : Real 1 [low=0.0, high=1.0], mean : Real 1 [low=0.0], dispersion : Real 1 [low=0.0]
) : Nat
    let r = 1 / dispersion
    let log_none = -r * log1p(mean * dispersion)
    density(x) = where(x == 0, log(gate), log1p(-gate) + lgamma(x + r) - lgamma(r) - lgamma(x + 1) + log_none
        + x * (log(mean) - log(mean + r)) - log1p(-exp(log_none)))
    draw = (1 - Bernoulli(gate)) * (
        floor(1 + log(Uniform(0.0, 1.0)) / log(-expm1(Uniform(0.0, 1.0) * log_none * dispersion)))
        + NegativeBinomial(r * (1 - log1p(Uniform(0.0, 1.0) * expm1(log_none)) / log_none), mean / (mean + r)))
"""
_HURDLE_GAMMA = """\
# A zero, or a Gamma.
family HurdleGamma(
    gate : Real 1 [low=0.0, high=1.0], shape : Real 1 [low=0.0], rate : Real 1 [low=0.0]
) : Real 1 [low=0.0]
    density(x) = where(x > 0, log1p(-gate) + shape * log(rate) - lgamma(shape)
        + (shape - 1) * log(where(x > 0, x, 1.0)) - rate * x, log(gate))
    draw = (1 - Bernoulli(gate)) * Gamma(shape, rate)
"""
_HURDLE_LOGNORMAL = """\
# A zero, or a LogNormal.
family HurdleLogNormal(gate : Real 1 [low=0.0, high=1.0], loc, scale : Real 1 [low=0.0]) : Real 1 [low=0.0]
    let constant = log(scale) + 0.9189385332046727
    density(x) = where(x > 0, log1p(-gate) - constant - log(where(x > 0, x, 1.0))
        - 0.5 * ((log(where(x > 0, x, 1.0)) - loc) / scale)^2, log(gate))
    draw = (1 - Bernoulli(gate)) * LogNormal(loc, scale)
"""
_POSITIVE = "Real 1 [low=0.0]"

FAMILIES: dict[str, Family] = {
    "normal": Family("identity", "Normal({mean}, {sigma})", {"sigma": _SIGMA}),
    "student": Family("identity", "StudentT({nu}, {mean}, {sigma})", {"sigma": _SIGMA, "nu": _NU}),
    "lognormal": Family("identity", "LogNormal({mean}, {sigma})", {"sigma": _SIGMA}, _POSITIVE, log_scale=True),
    "gamma": Family("log", "Gamma({shape}, {shape} * exp(-{mean}))", {"shape": _SHAPE}, _POSITIVE),
    "exponential": Family("log", "Exponential(exp(-{mean}))", element=_POSITIVE),
    "weibull": Family("log", "Weibull(exp({mean}), {shape})", {"shape": _WEIBULL}, _POSITIVE),
    "beta": Family(
        "logit", "Beta(sigmoid({mean}) * {phi}, sigmoid(-{mean}) * {phi})", {"phi": _PHI}, "Real 1 [low=0.0, high=1.0]"
    ),
    "bernoulli": Family("logit", "Bernoulli(logits={mean})", element="Bool"),
    "binomial": Family("logit", "Binomial(total={trials}, logits={mean})", element="Nat"),
    "poisson": Family("log", "Poisson(log_rate={mean})", element="Nat"),
    "negbinomial": Family(
        "log", "NegativeBinomial(mean=exp({mean}), dispersion={dispersion})", {"dispersion": _OVER}, "Nat"
    ),
    "zero_inflated_poisson": Family("log", "ZeroInflatedPoisson({zi}, exp({mean}))", {"zi": _ZI}, "Nat"),
    "zero_inflated_negbinomial": Family(
        "log",
        "ZeroInflatedNegativeBinomial({zi}, mean=exp({mean}), dispersion={dispersion})",
        {"zi": _ZI, "dispersion": _OVER},
        "Nat",
    ),
    "hurdle_poisson": Family("log", "HurdlePoisson({hu}, exp({mean}))", {"hu": _HU}, "Nat"),
    "hurdle_negbinomial": Family(
        "log",
        "HurdleNegativeBinomial({hu}, exp({mean}), {dispersion})",
        {"hu": _HU, "dispersion": _OVER},
        "Nat",
        _HURDLE_NEGATIVE,
    ),
    "hurdle_gamma": Family(
        "log",
        "HurdleGamma({hu}, {shape}, {shape} * exp(-{mean}))",
        {"hu": _HU, "shape": _SHAPE},
        _POSITIVE,
        _HURDLE_GAMMA,
    ),
    "hurdle_lognormal": Family(
        "identity",
        "HurdleLogNormal({hu}, {mean}, {sigma})",
        {"hu": _HU, "sigma": _SIGMA},
        _POSITIVE,
        _HURDLE_LOGNORMAL,
        log_scale=True,
    ),
    "cumulative": Family("ordered", "OrderedLogistic({mean}, cuts)", element="levels"),
    "categorical": Family("logit", "Categorical(logits=logits[i])", element="levels"),
}
ALIASES = {
    "gaussian": "normal",
    "t": "student",
    "studentt": "student",
    "student_t": "student",
    "negativebinomial": "negbinomial",
    "negative_binomial": "negbinomial",
    "negbin": "negbinomial",
    "nbinom": "negbinomial",
    "ordinal": "cumulative",
    "cumulative_logit": "cumulative",
    "multinomial_logit": "categorical",
    "hurdle_negativebinomial": "hurdle_negbinomial",
    "zero_inflated_negativebinomial": "zero_inflated_negbinomial",
}


def moments(values: NDArray[np.float64]) -> tuple[float, float]:
    """The mean and the standard deviation of what is known."""
    known = values[~np.isnan(values)]
    if not len(known):
        return 0.0, 1.0
    sd = float(known.std(ddof=1)) if len(known) > 1 else 1.0
    return float(known.mean()), sd or 1.0
