"""Mixtures of Binomials and of Poissons, and counts with more zeros.  Draws carry no gradient."""

from __future__ import annotations

from dataclasses import replace

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.arrays.engine import functional as F
from qvr_core.runtime.families.bounded import beta_draw
from qvr_core.runtime.families.counts import (
    BY_LOG_RATE,
    POISSON,
    bernoulli_draw,
    poisson_counts,
    poisson_draw,
    poisson_log_prob,
    poisson_tails,
    rate_and_log,
    whole,
)
from qvr_core.runtime.families.cumulative.incomplete import beta_tails
from qvr_core.runtime.families.cumulative.tails import Tails, from_smaller, zero_or
from qvr_core.runtime.families.densities import inside
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.links import HeadPlan, Params, elementwise, positive
from qvr_core.runtime.families.parameters import COUNT, PROBS, RATE, TRIALS, positive_parameter
from qvr_core.runtime.families.parametrisations import Conversion, logarithm
from qvr_core.runtime.families.random_draws import Shape, standard_gamma
from qvr_core.semantics.language.family import Family, Parameter

TOTAL = replace(
    positive_parameter("total", "total_count", "concentration", "r"), alternatives=(("dispersion", "positive"),)
)
SUCCESS = replace(PROBS, alternatives=(*PROBS.alternatives, ("mean", "positive")))
GATE = Parameter("gate", constraint="unit", alternatives=(("gate_logits", "real"),))

# The odds of a success are mean / total, and total = 1 / dispersion.
BY_MEAN: dict[str, Conversion] = {
    "dispersion": lambda dispersion, before: dispersion.reciprocal(),
    "mean": lambda mean, before: mean.log() - before[-1].log(),
    logarithm("mean"): lambda log_mean, before: log_mean - before[-1].log(),
}


def beta_binomial_draw(shape: Shape, generator: Generator | None, total: Tensor, a: Tensor, b: Tensor) -> Tensor:
    probs = beta_draw(shape, generator, a.detach(), b.detach()).contiguous()
    return arrays.binomial(total.to(probs.dtype).expand(shape).contiguous(), probs, generator=generator)


def _log_beta(a: Tensor, b: Tensor) -> Tensor:
    return arrays.lgamma(a) + arrays.lgamma(b) - arrays.lgamma(a + b)


_LARGE = 1e4
"""From here on the series of Stirling has all digits behind its first term."""


def _log_rising(n: Tensor, y: Tensor) -> Tensor:
    """log Γ(n + y) − log Γ(n) for y from 0; of a large n not as a difference of two large numbers."""
    large = n > _LARGE
    few, many = arrays.where(large, _LARGE, n), arrays.where(large, n, _LARGE)
    series = (many + y - 0.5) * arrays.log1p(y / many) + y * (many.log() - 1.0) - y / (12.0 * many * (many + y))
    return arrays.where(large, series, arrays.lgamma(few + y) - arrays.lgamma(few))


def beta_binomial_log_prob(value: Tensor, total: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """log C(n, x) + log B(x + a, n − x + b) − log B(a, b)."""
    y, n = value.to(a.dtype), total.to(a.dtype)
    ok = whole(y) & (y <= n)
    y = arrays.where(ok, y, 0.0)
    choose = -_log_beta(y + 1.0, n - y + 1.0) - (n + 1.0).log()
    return inside(ok, choose + _log_rising(a, y) + _log_rising(b, n - y) - _log_rising(a + b, n))


def beta_binomial_tails(value: Tensor, total: Tensor, a: Tensor, b: Tensor) -> Tails:
    """By the sum over all counts."""
    counts = arrays.arange(int(total.max()) + 1, dtype=a.dtype, device=a.device)
    each = beta_binomial_log_prob(counts, *(parameter.unsqueeze(-1) for parameter in (total, a, b)))
    below = counts <= value.unsqueeze(-1)
    lower, upper = (arrays.logsumexp(arrays.where(part, each, -arrays.inf), -1) for part in (below, ~below))
    return from_smaller(lower, upper)


def _beta_binomial_link(head: HeadPlan, raw: Tensor) -> Params:
    pieces = head.pieces(raw)
    a, b = positive(pieces["a"]), positive(pieces["b"])
    return arrays.full_like(a, float(head.trials)), a, b


BETA_BINOMIAL = RuntimeFamily(
    Family(
        "BetaBinomial",
        (TRIALS, positive_parameter("a", "alpha", "concentration1"), positive_parameter("b", "beta", "concentration0")),
        COUNT,
        "discrete",
        "successes in total trials whose probability is a Beta(a, b)",
        counts_to="total",
        head_options={"total": 1},
    ),
    beta_binomial_log_prob,
    draw=beta_binomial_draw,
    reparameterised=False,
    link=_beta_binomial_link,
    categories=lambda total, a, b: int(total.max()) + 1,
    tails=beta_binomial_tails,
)


def negative_binomial_draw(shape: Shape, generator: Generator | None, total: Tensor, logits: Tensor) -> Tensor:
    rate = standard_gamma(total.detach().to(logits.dtype).expand(shape), generator)
    return poisson_counts(rate * logits.detach().clamp(max=80.0).exp(), generator)


def negative_binomial_log_prob(value: Tensor, total: Tensor, logits: Tensor) -> Tensor:
    """`total` failures stop the count of successes of probability sigmoid(logits), as in torch."""
    y, n = value.to(logits.dtype), total.to(logits.dtype)
    ok = whole(y)
    y = arrays.where(ok, y, 0.0)
    choose = _log_rising(n, y) - arrays.lgamma(y + 1.0)
    # no success adds nothing, even where its probability is 0
    return inside(ok, choose + arrays.where(y == 0.0, 0.0, y * F.logsigmoid(logits)) + n * F.logsigmoid(-logits))


def negative_binomial_tails(value: Tensor, total: Tensor, logits: Tensor) -> Tails:
    """P(X ≤ k) = I_q(r, k + 1), q the probability of a failure."""
    return beta_tails(total, value + 1.0, F.logsigmoid(-logits), F.logsigmoid(logits))


NEGATIVE_BINOMIAL = RuntimeFamily(
    Family(
        "NegativeBinomial",
        (TOTAL, SUCCESS),
        COUNT,
        "discrete",
        "a count of mean total · probs / (1 − probs) that varies more than a Poisson: its variance is mean + mean² / "
        "total",
    ),
    negative_binomial_log_prob,
    draw=negative_binomial_draw,
    reparameterised=False,
    tails=negative_binomial_tails,
    conversions=BY_MEAN,
    mean=lambda total, logits: total * logits.exp(),
)


def _gated(closed: Tensor, value: Tensor) -> Tensor:
    return arrays.where(closed > 0, 0.0, value)


def _zero_inflated(value: Tensor, gate_logits: Tensor, density: Tensor) -> Tensor:
    """The log density of what is 0 with probability σ(gate_logits), else has `density`."""
    open_ = F.logsigmoid(-gate_logits) + density
    return arrays.where(value == 0, arrays.logaddexp(F.logsigmoid(gate_logits), open_), open_)


def zero_inflated_poisson_draw(
    shape: Shape, generator: Generator | None, gate_logits: Tensor, rate: Tensor, log_rate: Tensor
) -> Tensor:
    return _gated(bernoulli_draw(shape, generator, gate_logits), poisson_draw(shape, generator, rate, log_rate))


def zero_inflated_poisson_log_prob(value: Tensor, gate_logits: Tensor, rate: Tensor, log_rate: Tensor) -> Tensor:
    return _zero_inflated(value, gate_logits, poisson_log_prob(value, rate, log_rate))


def zero_inflated_poisson_tails(value: Tensor, gate_logits: Tensor, rate: Tensor, log_rate: Tensor) -> Tails:
    return zero_or(poisson_tails(value, rate, log_rate), F.logsigmoid(-gate_logits), F.logsigmoid(gate_logits))


def _zero_inflated_between(lower: Tensor, upper: Tensor, gate_logits: Tensor, counted: Tensor) -> Tensor:
    """log P(lower < X ≤ upper) of what is 0 with probability σ(gate_logits), else lies there with e^`counted`."""
    open_ = F.logsigmoid(-gate_logits) + counted
    zero = (lower < 0.0) & (upper >= 0.0)
    both = arrays.logaddexp(F.logsigmoid(gate_logits), arrays.where(zero, open_, 0.0))
    return arrays.where(zero, both, open_)


def zero_inflated_poisson_between(
    lower: Tensor, upper: Tensor, gate_logits: Tensor, rate: Tensor, log_rate: Tensor
) -> Tensor:
    return _zero_inflated_between(lower, upper, gate_logits, POISSON.log_between(lower, upper, rate, log_rate))


def _zero_inflated_poisson_link(head: HeadPlan, raw: Tensor) -> Params:
    gate_logits, rate = elementwise(head, raw)
    return gate_logits, *rate_and_log(rate)


ZERO_INFLATED_POISSON = RuntimeFamily(
    Family(
        "ZeroInflatedPoisson",
        (GATE, RATE),
        COUNT,
        "discrete",
        "a Poisson, or zero with probability gate",
    ),
    zero_inflated_poisson_log_prob,
    draw=zero_inflated_poisson_draw,
    reparameterised=False,
    link=_zero_inflated_poisson_link,
    conversions=BY_LOG_RATE,
    twice="rate",
    tails=zero_inflated_poisson_tails,
    between=zero_inflated_poisson_between,
)


def zero_inflated_negative_binomial_draw(
    shape: Shape, generator: Generator | None, gate_logits: Tensor, total: Tensor, logits: Tensor
) -> Tensor:
    closed = bernoulli_draw(shape, generator, gate_logits)
    return _gated(closed, negative_binomial_draw(shape, generator, total, logits))


def zero_inflated_negative_binomial_log_prob(
    value: Tensor, gate_logits: Tensor, total: Tensor, logits: Tensor
) -> Tensor:
    return _zero_inflated(value, gate_logits, negative_binomial_log_prob(value, total, logits))


def zero_inflated_negative_binomial_tails(value: Tensor, gate_logits: Tensor, total: Tensor, logits: Tensor) -> Tails:
    tails = negative_binomial_tails(value, total, logits)
    return zero_or(tails, F.logsigmoid(-gate_logits), F.logsigmoid(gate_logits))


def zero_inflated_negative_binomial_between(
    lower: Tensor, upper: Tensor, gate_logits: Tensor, total: Tensor, logits: Tensor
) -> Tensor:
    counted = NEGATIVE_BINOMIAL.log_between(lower, upper, total, logits)
    return _zero_inflated_between(lower, upper, gate_logits, counted)


ZERO_INFLATED_NEGATIVE_BINOMIAL = RuntimeFamily(
    Family(
        "ZeroInflatedNegativeBinomial",
        (GATE, TOTAL, SUCCESS),
        COUNT,
        "discrete",
        "a NegativeBinomial, or zero with probability gate",
    ),
    zero_inflated_negative_binomial_log_prob,
    draw=zero_inflated_negative_binomial_draw,
    reparameterised=False,
    tails=zero_inflated_negative_binomial_tails,
    between=zero_inflated_negative_binomial_between,
    conversions=BY_MEAN,
)
