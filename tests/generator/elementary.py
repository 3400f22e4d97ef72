"""Functions of numbers that families and expressions are written with; they go to the end of what numbers can say."""

from __future__ import annotations

import math
from collections.abc import Sequence

INF = math.inf
Numbers = Sequence[float]


def log(x: float) -> float:
    """The logarithm, −∞ of 0 and NaN of a negative number."""
    return x.log if isinstance(x, Power | Chance) else math.log(x) if x > 0.0 else -INF if x == 0.0 else math.nan


def exp(x: float) -> float:
    """The exponential, ∞ where it overflows."""
    return math.exp(x) if x < 709.0 else math.nan if math.isnan(x) else INF


def sigmoid(x: float) -> float:
    """The logistic function."""
    return 1.0 / (1.0 + exp(-x))


class Chance(float):
    """A probability with what is left of 1, and their logarithms: they have all their digits where it is written
    `sigmoid(x)`."""

    rest: float
    log: float
    log_rest: float

    def __new__(cls, logit: float) -> Chance:
        made = float.__new__(cls, sigmoid(logit))
        made.rest = sigmoid(-logit)
        made.log = -softplus(-logit)
        made.log_rest = -softplus(logit)
        return made


def rest(p: float) -> float:
    """1 − p."""
    return p.rest if isinstance(p, Chance) else 1.0 - p


def log_rest(p: float) -> float:
    """log(1 − p)."""
    return p.log_rest if isinstance(p, Chance) else math.log1p(-p) if p < 1.0 else -INF


class Power(float):
    """A positive number that is written `exp(x)`, with its logarithm, which has all its digits where it has none."""

    log: float

    def __new__(cls, x: float) -> Power:
        made = float.__new__(cls, exp(x))
        made.log = x
        return made


def softplus(x: float) -> float:
    """log(1 + exp(x))."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def logsumexp(terms: Numbers) -> float:
    """The logarithm of a sum of exponentials."""
    top = max(terms, default=-INF)
    if math.isinf(top) or math.isnan(top):
        return top
    return top + math.log(math.fsum(math.exp(term - top) for term in terms))


def log_complement(x: float) -> float:
    """log(1 − exp(x)) of x below 0."""
    return log(-math.expm1(x)) if x > -0.7 else math.log1p(-math.exp(x))


def times_log(a: float, b: float) -> float:
    """a log b, 0 where a is."""
    return 0.0 if a == 0.0 else a * log(b)


def log_choose(n: float, k: float) -> float:
    """The logarithm of a binomial coefficient."""
    return math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)


def log_beta(a: float, b: float) -> float:
    """The logarithm of the beta function."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
