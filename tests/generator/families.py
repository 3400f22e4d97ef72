"""The densities of the referee: one number at a time, from the textbook, with the functions of `math` and scipy.

Nothing here comes from the product.  `test_generator.py` compares the table with `scipy.stats`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scipy import special

from tests.generator.elementary import (
    INF,
    Chance,
    Numbers,
    Power,
    exp,
    log,
    log_beta,
    log_choose,
    log_complement,
    log_rest,
    logsumexp,
    rest,
    sigmoid,
    softplus,
    times_log,
)

LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Family:
    """A family under one parametrisation.

    `parameters` are pairs of keyword and kind (real, positive, unit, total, simplex, logits, ordered); where
    `placed` they may be given by position.  `support` is real, positive, unit, count, bool, whole (0 … a total),
    member (a category), or a vector's.  `lower` and `upper` are P(X ≤ x) and P(X > x).
    """

    name: str
    parameters: tuple[tuple[str, str], ...]
    support: str
    log_density: Callable[..., float]
    lower: Callable[..., float] | None = None
    upper: Callable[..., float] | None = None
    placed: bool = True
    discrete: bool = False
    noncentred: bool = False

    @property
    def key(self) -> str:
        """Its name in the table: with the parameters where they are not the first ones."""
        return self.name if self.placed else f"{self.name}/{self.parameters[-1][0]}"


def _on(inside: Callable[[float], bool], middle: float, density: Callable[..., float]) -> Callable[..., float]:
    """−∞ elsewhere; of parameters that have no density anywhere an error all the same."""
    return lambda x, *p: density(x, *p) if inside(x) else -INF if density(middle, *p) < INF else math.nan


def _positive(density: Callable[..., float]) -> Callable[..., float]:
    return _on(lambda x: x > 0.0, 1.0, density)


def _unit(density: Callable[..., float]) -> Callable[..., float]:
    return _on(lambda x: 0.0 < x < 1.0, 0.5, density)


def _count(density: Callable[..., float]) -> Callable[..., float]:
    return _on(lambda x: x >= 0.0 and x == math.floor(x), 0.0, density)


# ------------------------------------------------------------------ numbers


def normal(x: float, m: float, s: float) -> float:
    """The log density of a Normal."""
    return -0.5 * ((x - m) / s) ** 2 - math.log(s) - 0.5 * LOG_2PI


def student_t(x: float, df: float, m: float, s: float) -> float:
    """The log density of a StudentT."""
    z = (x - m) / s
    constant = math.lgamma(0.5 * (df + 1.0)) - math.lgamma(0.5 * df) - 0.5 * math.log(df * math.pi) - math.log(s)
    return constant - 0.5 * (df + 1.0) * math.log1p(z * z / df)


def gamma(x: float, a: float, b: float) -> float:
    """The log density of a Gamma."""
    return a * math.log(b) - math.lgamma(a) + (a - 1.0) * math.log(x) - b * x


def _t_lower(z: float, df: float) -> float:
    tail = float(special.stdtr(df, -abs(z)))  # the incomplete beta function loses digits at hundreds of degrees
    return tail if z <= 0.0 else 1.0 - tail


def _gumbel(x: float, m: float, s: float) -> float:
    z = (x - m) / s
    return -z - exp(-z) - math.log(s)


def _continuous_bernoulli(x: float, p: float) -> float:
    off = rest(p) - p
    twice = 2.0 * math.atanh(off) if abs(off) < 0.5 else log_rest(p) - log(p)
    normaliser = math.log(2.0) if p == 0.5 else math.log(twice / off)
    return x * log(p) + (1.0 - x) * log_rest(p) + normaliser


def _truncated_normal(x: float, m: float, s: float, low: float, high: float) -> float:
    if not low <= x <= high:
        return -INF
    return normal(x, m, s) - _log_between((low - m) / s, (high - m) / s)


def _log_between(a: float, b: float) -> float:
    """log P(a ≤ Z ≤ b), from the side where the digits are."""
    if a > 0.0:
        a, b = -b, -a
    low, high = float(special.log_ndtr(a)), float(special.log_ndtr(b))
    return high + math.log1p(-math.exp(low - high))


# ------------------------------------------------------------------ counts


def _binomial(x: float, n: float, p: float) -> float:
    if not 0 <= x <= n:
        return -INF
    return log_choose(n, x) + times_log(x, p) + (0.0 if x == n else (n - x) * log_rest(p))


def _negative_binomial(x: float, r: float, p: float) -> float:
    rising = math.fsum(math.log(r + k) for k in range(int(x)))
    return rising - math.lgamma(x + 1.0) + times_log(x, p) + r * log_rest(p)


def _by_mean(mean: float, dispersion: float) -> tuple[float, float]:
    """Total and probs of a NegativeBinomial."""
    total = 1.0 / dispersion
    return total, Chance(log(mean) - math.log(total))


def _poisson(x: float, rate: float) -> float:
    return times_log(x, rate) - rate - math.lgamma(x + 1.0)


def _inflated(density: Callable[..., float]) -> Callable[..., float]:
    def inflated(x: float, gate: float, *p: float) -> float:
        each = log_rest(gate) + density(x, *p)
        return logsumexp([log(gate), each]) if x == 0 else each

    return inflated


def _inflated_tail(tail: Callable[..., float], below: bool) -> Callable[..., float]:
    def inflated(x: float, gate: float, *p: float) -> float:
        return (gate if below and x >= 0 else 0.0 if below or x >= 0 else gate) + rest(gate) * tail(x, *p)

    return inflated


def _beta_binomial(x: float, n: float, a: float, b: float) -> float:
    if not 0 <= x <= n:
        return -INF
    won = math.fsum(math.log(a + k) for k in range(int(x)))
    lost = math.fsum(math.log(b + k) for k in range(int(n - x)))
    return log_choose(n, x) + won + lost - math.fsum(math.log(a + b + k) for k in range(int(n)))


def _categorical(x: float, probs: Numbers) -> float:
    if not 0 <= x < len(probs):
        return -INF
    # what has underflowed says nothing
    return log(probs[int(x)]) - log(math.fsum(probs)) if probs[int(x)] > 1e-290 else math.nan


def _logits(x: float, logits: Numbers) -> float:
    return logits[int(x)] - logsumexp(logits) if 0 <= x < len(logits) else -INF


def _ordered_logistic(x: float, predictor: float, cuts: Numbers) -> float:
    above = [1.0, *(sigmoid(predictor - cut) for cut in cuts), 0.0]
    if not 0 <= x <= len(cuts):
        return -INF
    if above[int(x) + 1] > 0.5:
        # from the lower tail, where the digits are
        below = [0.0, *(sigmoid(cut - predictor) for cut in cuts), 1.0]
        return log(below[int(x) + 1] - below[int(x)])
    return log(above[int(x)] - above[int(x) + 1])


def _counted(tail: Callable[..., float], outside: float) -> Callable[..., float]:
    """A tail of a count, at the whole number below x."""
    return lambda x, *p: outside if x < 0.0 else tail(math.floor(x), *p)


def _bounded_count(tail: Callable[..., float], outside: float, beyond: float) -> Callable[..., float]:
    """Likewise of a count up to a total."""
    return lambda x, n, *p: outside if x < 0.0 else beyond if x >= n else tail(math.floor(x), n, *p)


def _above(x: float, n: float, a: float, b: float) -> float:
    return math.fsum(math.exp(_beta_binomial(k, n, a, b)) for k in range(int(x) + 1, int(n) + 1))


def _below(x: float, n: float, a: float, b: float) -> float:
    return math.fsum(math.exp(_beta_binomial(k, n, a, b)) for k in range(int(x) + 1))


# ------------------------------------------------------------------ vectors


def _simplex(density: Callable[..., float]) -> Callable[..., float]:
    return lambda x, *p: density(x, *p) if min(x) > 0.0 else -INF


def _dirichlet(x: Numbers, a: Numbers) -> float:
    constant = math.lgamma(math.fsum(a)) - math.fsum(map(math.lgamma, a))
    return constant + math.fsum((c - 1.0) * math.log(each) for each, c in zip(x, a, strict=True))


def solve_lower(rows: Sequence[Numbers], b: Numbers) -> list[float]:
    """x of L x = b, by substitution."""
    x: list[float] = []
    for row, right in zip(rows, b, strict=True):
        x.append((right - math.fsum(c * each for c, each in zip(row, x, strict=False))) / row[len(x)])
    return x


def _multivariate_normal(x: Numbers, m: Numbers, tril: Sequence[Numbers]) -> float:
    z = solve_lower(tril, [each - c for each, c in zip(x, m, strict=True)])
    scale = math.fsum(math.log(row[i]) for i, row in enumerate(tril))
    return -0.5 * math.fsum(each * each for each in z) - scale - 0.5 * len(x) * LOG_2PI


def _random_walk(x: Numbers, scale: float, drift: float = 0.0, start: float = 0.0) -> float:
    steps = [normal(b, a + drift, scale) for a, b in itertools.pairwise(x)]
    return math.fsum([normal(x[0], start, scale), *steps])


def _multinomial(x: Numbers, n: float, probs: Numbers) -> float:
    if math.fsum(x) != n:
        return -INF
    whole = math.fsum(probs)
    return math.lgamma(n + 1.0) + math.fsum(
        times_log(k, p / whole) - math.lgamma(k + 1.0) for k, p in zip(x, probs, strict=True)
    )


def _mixture_normal(x: float, w: Numbers, m: Numbers, s: Numbers) -> float:
    whole = math.log(math.fsum(w))
    return logsumexp([log(p) + normal(x, *q) - whole for p, *q in zip(w, m, s, strict=True)])


LOC_SCALE = (("loc", "real"), ("scale", "positive"))


def _table() -> list[Family]:
    ndtr, gammainc, gammaincc = special.ndtr, special.gammainc, special.gammaincc
    betainc, betaincc = special.betainc, special.betaincc

    def family(name: str, parameters: tuple[tuple[str, str], ...], support: str, *rest: Any, **more: Any) -> Family:
        return Family(name, parameters, support, *rest, **more)

    def poisson_lower(x: float, r: float) -> float:
        return float(gammaincc(x + 1.0, r))

    def poisson_upper(x: float, r: float) -> float:
        return float(gammainc(x + 1.0, r))

    def negative_lower(x: float, r: float, p: float) -> float:
        return float(betainc(r, x + 1.0, rest(p)))

    def negative_upper(x: float, r: float, p: float) -> float:
        return float(betainc(x + 1.0, r, p) if p < 0.5 else betaincc(r, x + 1.0, rest(p)))

    def binomial_lower(x: float, n: float, p: float) -> float:
        return float(betainc(n - x, x + 1.0, rest(p)))

    def binomial_upper(x: float, n: float, p: float) -> float:
        return float(betainc(x + 1.0, n - x, p) if p < 0.5 else betaincc(n - x, x + 1.0, rest(p)))

    half = (("scale", "positive"),)
    rows = [
        family("Normal", LOC_SCALE, "real", normal,
               lambda x, m, s: float(ndtr((x - m) / s)), lambda x, m, s: float(ndtr((m - x) / s)), noncentred=True),
        family("LogNormal", LOC_SCALE, "positive", _positive(lambda x, m, s: normal(math.log(x), m, s) - math.log(x)),
               lambda x, m, s: float(ndtr((log(x) - m) / s)) if x > 0 else 0.0,
               lambda x, m, s: float(ndtr((m - log(x)) / s)) if x > 0 else 1.0, noncentred=True),
        family("LogitNormal", LOC_SCALE, "unit",
               _unit(lambda x, m, s: normal(math.log(x) - math.log1p(-x), m, s) - math.log(x) - math.log1p(-x)),
               lambda x, m, s: 0.0 if x <= 0 else 1.0 if x >= 1 else float(ndtr((special.logit(x) - m) / s)),
               lambda x, m, s: 1.0 if x <= 0 else 0.0 if x >= 1 else float(ndtr((m - special.logit(x)) / s))),
        family("HalfNormal", half, "positive", _positive(lambda x, s: normal(x, 0.0, s) + math.log(2.0)),
               lambda x, s: float(special.erf(max(x, 0.0) / s / math.sqrt(2.0))),
               lambda x, s: float(special.erfc(max(x, 0.0) / s / math.sqrt(2.0))), noncentred=True),
        family("HalfCauchy", half, "positive",
               _positive(lambda x, s: math.log(2.0 / math.pi / s) - math.log1p((x / s) ** 2)),
               lambda x, s: math.atan(max(x, 0.0) / s) * 2.0 / math.pi,
               lambda x, s: math.atan2(s, max(x, 0.0)) * 2.0 / math.pi, noncentred=True),
        family("HalfStudentT", (("df", "positive"), ("scale", "positive")), "positive",
               _positive(lambda x, df, s: student_t(x, df, 0.0, s) + math.log(2.0)),
               lambda x, df, s: 1.0 - 2.0 * _t_lower(-max(x, 0.0) / s, df),
               lambda x, df, s: 2.0 * _t_lower(-max(x, 0.0) / s, df), noncentred=True),
        family("Cauchy", LOC_SCALE, "real", lambda x, m, s: -math.log(math.pi * s) - math.log1p(((x - m) / s) ** 2),
               lambda x, m, s: math.atan2(1.0, (m - x) / s) / math.pi,
               lambda x, m, s: math.atan2(1.0, (x - m) / s) / math.pi, noncentred=True),
        family("StudentT", (("df", "positive"), *LOC_SCALE), "real", student_t,
               lambda x, df, m, s: _t_lower((x - m) / s, df), lambda x, df, m, s: _t_lower((m - x) / s, df),
               noncentred=True),
        family("Laplace", LOC_SCALE, "real", lambda x, m, s: -abs(x - m) / s - math.log(2.0 * s),
               lambda x, m, s: 0.5 * math.exp((x - m) / s) if x < m else 1.0 - 0.5 * math.exp((m - x) / s),
               lambda x, m, s: 0.5 * math.exp((m - x) / s) if x > m else 1.0 - 0.5 * math.exp((x - m) / s),
               noncentred=True),
        family("Gumbel", LOC_SCALE, "real", _gumbel, lambda x, m, s: math.exp(-exp((m - x) / s)),
               lambda x, m, s: -math.expm1(-exp((m - x) / s)), noncentred=True),
        family("VonMises", (("loc", "real"), ("concentration", "positive")), "angle",
               lambda x, m, k: k * math.cos(x - m) - math.log(2.0 * math.pi * float(special.i0e(k))) - k),
        family("Exponential", (("rate", "positive"),), "positive", _positive(lambda x, r: math.log(r) - r * x),
               lambda x, r: -math.expm1(-r * max(x, 0.0)), lambda x, r: math.exp(-r * max(x, 0.0)), noncentred=True),
        family("Gamma", (("concentration", "positive"), ("rate", "positive")), "positive", _positive(gamma),
               lambda x, a, b: float(gammainc(a, b * max(x, 0.0))),
               lambda x, a, b: float(gammaincc(a, b * max(x, 0.0)))),
        family("InverseGamma", (("concentration", "positive"), ("rate", "positive")), "positive",
               _positive(lambda x, a, b: gamma(1.0 / x, a, b) - 2.0 * math.log(x)),
               lambda x, a, b: float(gammaincc(a, b / x)) if x > 0 else 0.0,
               lambda x, a, b: float(gammainc(a, b / x)) if x > 0 else 1.0),
        family("Chi2", (("df", "positive"),), "positive", _positive(lambda x, df: gamma(x, 0.5 * df, 0.5)),
               lambda x, df: float(gammainc(0.5 * df, 0.5 * max(x, 0.0))),
               lambda x, df: float(gammaincc(0.5 * df, 0.5 * max(x, 0.0)))),
        family("Weibull", (("scale", "positive"), ("concentration", "positive")), "positive",
               _positive(lambda x, s, k: math.log(k / s) + (k - 1.0) * math.log(x / s) - (x / s) ** k),
               lambda x, s, k: -math.expm1(-((max(x, 0.0) / s) ** k)), lambda x, s, k: exp(-((max(x, 0.0) / s) ** k))),
        family("Beta", (("a", "positive"), ("b", "positive")), "unit",
               _unit(lambda x, a, b: (a - 1.0) * math.log(x) + (b - 1.0) * math.log1p(-x) - log_beta(a, b)),
               lambda x, a, b: float(betainc(a, b, min(max(x, 0.0), 1.0))),
               lambda x, a, b: float(betaincc(a, b, min(max(x, 0.0), 1.0)))),
        family("Kumaraswamy", (("a", "positive"), ("b", "positive")), "unit",
               _unit(lambda x, a, b: math.log(a * b) + (a - 1.0) * math.log(x)
                     + (b - 1.0) * log_complement(a * math.log(x))),
               lambda x, a, b: -math.expm1(b * log_complement(a * log(min(max(x, 0.0), 1.0)))),
               lambda x, a, b: math.exp(b * log_complement(a * log(min(max(x, 0.0), 1.0))))),
        family("ContinuousBernoulli", (("probs", "unit"),), "unit", _unit(_continuous_bernoulli)),
        family("TruncatedNormal", (*LOC_SCALE, ("low", "low"), ("high", "high")), "interval", _truncated_normal),
        family("Uniform", (("low", "low"), ("high", "high")), "interval",
               lambda x, a, b: -math.log(b - a) if a <= x <= b else -INF),
        family("Bernoulli", (("probs", "unit"),), "bool", lambda x, p: _binomial(x, 1.0, p), discrete=True),
        family("Bernoulli", (("logits", "real"),), "bool", lambda x, e: -softplus(-e if x else e), placed=False,
               discrete=True),
        family("Binomial", (("total", "total"), ("probs", "unit")), "whole", _count(_binomial),
               _bounded_count(binomial_lower, 0.0, 1.0), _bounded_count(binomial_upper, 1.0, 0.0), discrete=True),
        family("Binomial", (("total", "total"), ("logits", "real")), "whole",
               _count(lambda x, n, e: log_choose(n, x) - x * softplus(-e) - (n - x) * softplus(e) if x <= n else -INF),
               placed=False, discrete=True),
        family("BetaBinomial", (("total", "total"), ("a", "positive"), ("b", "positive")), "whole",
               _count(_beta_binomial), _bounded_count(_below, 0.0, 1.0), _bounded_count(_above, 1.0, 0.0),
               discrete=True),
        family("Geometric", (("probs", "unit"),), "count", _count(lambda x, p: log(p) + (x and x * log_rest(p))),
               _counted(lambda x, p: -math.expm1((x + 1.0) * log_rest(p)), 0.0),
               _counted(lambda x, p: math.exp((x + 1.0) * log_rest(p)), 1.0), discrete=True),
        family("Poisson", (("rate", "positive"),), "count", _count(_poisson),
               _counted(poisson_lower, 0.0), _counted(poisson_upper, 1.0), discrete=True),
        family("Poisson", (("log_rate", "real"),), "count",
               _count(lambda x, e: _poisson(x, Power(e))), _counted(lambda x, e: poisson_lower(x, exp(e)), 0.0),
               _counted(lambda x, e: poisson_upper(x, exp(e)), 1.0), placed=False, discrete=True),
        family("NegativeBinomial", (("total", "positive"), ("probs", "unit")), "count", _count(_negative_binomial),
               _counted(negative_lower, 0.0), _counted(negative_upper, 1.0), discrete=True),
        family("NegativeBinomial", (("mean", "positive"), ("dispersion", "positive")), "count",
               _count(lambda x, m, d: _negative_binomial(x, *_by_mean(m, d))),
               _counted(lambda x, m, d: negative_lower(x, *_by_mean(m, d)), 0.0),
               _counted(lambda x, m, d: negative_upper(x, *_by_mean(m, d)), 1.0), placed=False, discrete=True),
        family("ZeroInflatedPoisson", (("gate", "unit"), ("rate", "positive")), "count", _count(_inflated(_poisson)),
               _inflated_tail(_counted(poisson_lower, 0.0), True), _inflated_tail(_counted(poisson_upper, 1.0), False),
               discrete=True),
        family("ZeroInflatedNegativeBinomial", (("gate", "unit"), ("total", "positive"), ("probs", "unit")), "count",
               _count(_inflated(_negative_binomial)), discrete=True),
        family("DiscreteUniform", (("low", "zero"), ("high", "total")), "whole",
               lambda x, a, b: -math.log(b - a + 1.0) if a <= x <= b and x == math.floor(x) else -INF, discrete=True),
        family("Categorical", (("probs", "simplex"),), "member", _categorical, discrete=True),
        family("Categorical", (("logits", "logits"),), "member", _logits, placed=False, discrete=True),
        family("OrderedLogistic", (("predictor", "real"), ("cutpoints", "ordered")), "member", _ordered_logistic,
               discrete=True),
        family("MixtureNormal", (("weights", "simplex"), ("locs", "logits"), ("scales", "positives")), "real",
               _mixture_normal,
               lambda x, w, m, s: math.fsum(p * float(ndtr((x - a) / b)) for p, a, b in zip(w, m, s, strict=True)),
               lambda x, w, m, s: math.fsum(p * float(ndtr((a - x) / b)) for p, a, b in zip(w, m, s, strict=True))),
        family("Dirichlet", (("concentration", "positives"),), "simplex", _simplex(_dirichlet)),
        family("MultivariateNormal", (("loc", "logits"), ("scale_tril", "tril")), "vector", _multivariate_normal,
               noncentred=True),
        family("GaussianRandomWalk", (("scale", "positive"), ("drift", "real"), ("start", "real")), "vector",
               _random_walk, noncentred=True),
        family("Multinomial", (("total", "total"), ("probs", "simplex")), "counts", _multinomial, discrete=True),
        family("Flat", (), "real", lambda x: 0.0),
    ]  # fmt: skip
    return rows


FAMILIES = {row.key: row for row in _table()}
