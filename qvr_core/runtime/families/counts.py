"""Families of counts, and 0 or 1, elementwise, in their logit forms.  Draws carry no gradient."""

from __future__ import annotations

from dataclasses import replace

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.arrays.engine import functional as F
from qvr_core.runtime.families.cumulative.incomplete import beta_tails, gamma_tails
from qvr_core.runtime.families.cumulative.tails import Tails, from_smaller, upper_first
from qvr_core.runtime.families.densities import inside
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.links import HeadPlan, Params, elementwise
from qvr_core.runtime.families.parameters import COUNT, HIGH, LOW, PROBS, RATE, TRIALS
from qvr_core.runtime.families.parametrisations import Conversion, logarithm
from qvr_core.runtime.families.random_draws import Shape, open_uniforms
from qvr_core.runtime.values.errors import NoDensity
from qvr_core.semantics.language.family import Family, Support


def whole(value: Tensor) -> Tensor:
    """Where a value is a count."""
    return (value >= 0) & (value == value.round())


def bernoulli_draw(shape: Shape, generator: Generator | None, logits: Tensor) -> Tensor:
    return arrays.bernoulli(logits.detach().sigmoid().expand(shape), generator=generator)


def bernoulli_log_prob(value: Tensor, logits: Tensor) -> Tensor:
    y = value.to(logits.dtype)
    # a sum of both would be no number where one of the two is impossible
    return inside((y == 0) | (y == 1), F.logsigmoid(arrays.where(y == 1, logits, -logits)))


BERNOULLI = RuntimeFamily(
    Family("Bernoulli", (PROBS,), Support("finite", 0.0, 1.0), "discrete", "1 with probability probs, else 0"),
    bernoulli_log_prob,
    draw=bernoulli_draw,
    reparameterised=False,
    categories=lambda logits: 2,
    tails=lambda value, logits: (F.logsigmoid(-logits) + 0.0 * value, F.logsigmoid(logits) + 0.0 * value),
    mean=lambda logits: logits.sigmoid(),
)


def binomial_draw(shape: Shape, generator: Generator | None, total: Tensor, logits: Tensor) -> Tensor:
    probs = logits.detach().sigmoid().expand(shape).contiguous()
    return arrays.binomial(total.to(probs.dtype).expand(shape).contiguous(), probs, generator=generator)


def binomial_log_prob(value: Tensor, total: Tensor, logits: Tensor) -> Tensor:
    """log C(n, x) + x log p + (n − x) log(1 − p), from the logit of p."""
    y, n = value.to(logits.dtype), total.to(logits.dtype)
    ok = whole(y) & (y <= n)
    y = arrays.where(ok, y, 0.0)
    choose = arrays.lgamma(n + 1.0) - arrays.lgamma(y + 1.0) - arrays.lgamma(n - y + 1.0)
    # what is counted no times adds nothing, even where its probability is 0
    nothing = logits.new_zeros(())
    successes = arrays.where(y == 0.0, 0.0, y * arrays.minimum(logits, nothing))
    failures = arrays.where(y == n, 0.0, (n - y) * arrays.maximum(logits, nothing))
    return inside(ok, choose + successes - failures + n * F.logsigmoid(logits.abs()))


def binomial_tails(value: Tensor, total: Tensor, logits: Tensor) -> Tails:
    """P(X ≤ k) = I_q(n − k, k + 1), q the probability of a failure."""
    left = (total - value).clamp(min=1.0)
    return beta_tails(left, value + 1.0, F.logsigmoid(-logits), F.logsigmoid(logits))


def _binomial_link(head: HeadPlan, raw: Tensor) -> Params:
    logits = head.pieces(raw)["probs"]
    return arrays.full_like(logits, float(head.trials)), logits


BINOMIAL = RuntimeFamily(
    Family(
        "Binomial",
        (TRIALS, PROBS),
        COUNT,
        "discrete",
        "successes in total trials",
        counts_to="total",
        head_options={"total": 1},
    ),
    binomial_log_prob,
    draw=binomial_draw,
    reparameterised=False,
    link=_binomial_link,
    categories=lambda total, logits: int(total.max()) + 1,
    tails=binomial_tails,
    mean=lambda total, logits: total * logits.sigmoid(),
)


def geometric_draw(shape: Shape, generator: Generator | None, logits: Tensor) -> Tensor:
    log_failure = F.logsigmoid(-logits.detach())
    u = open_uniforms(shape, log_failure, generator)
    return (u.log() / log_failure.clamp(max=-arrays.finfo(u.dtype).tiny)).floor()


def geometric_log_prob(value: Tensor, logits: Tensor) -> Tensor:
    y = value.to(logits.dtype)
    # no failure adds nothing, even where its probability is 0
    return inside(whole(y), F.logsigmoid(logits) + arrays.where(y == 0.0, 0.0, y * F.logsigmoid(-logits)))


GEOMETRIC = RuntimeFamily(
    Family("Geometric", (PROBS,), COUNT, "discrete", "failures before the first success"),
    geometric_log_prob,
    draw=geometric_draw,
    reparameterised=False,
    tails=lambda value, logits: upper_first((value + 1.0) * F.logsigmoid(-logits)),
    quantile=lambda lower, upper, logits: (upper / F.logsigmoid(-logits) - 1.0).ceil().clamp(min=0.0),
    mean=lambda logits: (-logits).exp(),
)


def rate_and_log(rate: Tensor) -> tuple[Tensor, Tensor]:
    """A rate and its logarithm, which has no gradient at 0, where it is −∞."""
    none = rate == 0.0
    return rate, arrays.where(none, -arrays.inf, arrays.where(none, 1.0, rate).log())


# A Poisson has its rate in two forms: the rate underflows where its logarithm counts, and 0 has no logarithm.
BY_LOG_RATE: dict[str, Conversion] = {
    "rate": lambda rate, before: rate_and_log(rate),
    "log_rate": lambda log_rate, before: (log_rate.exp(), log_rate),
    logarithm("rate"): lambda log_rate, before: (log_rate.exp(), log_rate),
}


def poisson_draw(shape: Shape, generator: Generator | None, rate: Tensor, log_rate: Tensor) -> Tensor:
    return poisson_counts(rate.detach().expand(shape), generator)


def poisson_counts(rate: Tensor, generator: Generator | None) -> Tensor:
    """A draw for each rate; 2⁶³ where torch, which counts in 64 bits, would begin again at −2⁶³."""
    most = 2.0**62
    return arrays.where(rate > most, 2.0**63, arrays.poisson(rate.clamp(max=most), generator=generator))


def poisson_log_prob(value: Tensor, rate: Tensor, log_rate: Tensor) -> Tensor:
    """x log λ − λ − log x!, from log λ."""
    y = value.to(rate.dtype)
    ok = whole(y)
    y = arrays.where(ok, y, 0.0)
    # nothing that is counted adds nothing, even where the rate is 0
    return inside(ok, arrays.where(y == 0.0, 0.0, y * log_rate) - rate - arrays.lgamma(y + 1.0))


def poisson_tails(value: Tensor, rate: Tensor, log_rate: Tensor) -> Tails:
    """P(X ≤ k) = Q(k + 1, rate)."""
    lower, upper = gamma_tails(value + 1.0, rate, log_rate)
    return upper, lower


def poisson_link(head: HeadPlan, raw: Tensor) -> Params:
    return rate_and_log(*elementwise(head, raw))


POISSON = RuntimeFamily(
    Family(
        "Poisson",
        (replace(RATE, alternatives=(("log_rate", "real"),)),),
        COUNT,
        "discrete",
        "a count with mean rate",
    ),
    poisson_log_prob,
    draw=poisson_draw,
    reparameterised=False,
    tails=poisson_tails,
    link=poisson_link,
    conversions=BY_LOG_RATE,
    twice="rate",
    mean=lambda rate, log_rate: rate,
)


def discrete_uniform_draw(shape: Shape, generator: Generator | None, low: Tensor, high: Tensor) -> Tensor:
    like = low.to(arrays.promote_types(low.dtype, high.dtype))
    return arrays.minimum((low + (high - low + 1.0) * open_uniforms(shape, like, generator)).floor(), high)


def discrete_uniform_log_prob(value: Tensor, low: Tensor, high: Tensor) -> Tensor:
    y = value.to(low.dtype)
    ok = (y >= low) & (y <= high) & (y == y.round())
    # there is no density between bounds that are no whole numbers
    count = arrays.where((low == low.round()) & (high == high.round()), high - low + 1.0, arrays.nan)
    return inside(ok, -count.log().expand_as(y + low + high))


def discrete_uniform_tails(value: Tensor, low: Tensor, high: Tensor) -> Tails:
    log_count = (high - low + 1.0).log()
    return from_smaller((value - low + 1.0).log() - log_count, (high - value).log() - log_count)


def _from_zero(low: Tensor, high: Tensor) -> int:
    if bool((low < 0).any()):
        raise NoDensity(f"DiscreteUniform from {int(low.min())}: only numbers from 0 can be summed out")
    return int(high.max()) + 1


def discrete_uniform_quantile(lower: Tensor, upper: Tensor, low: Tensor, high: Tensor) -> Tensor:
    many = high - low + 1.0
    return arrays.where(lower < upper, low - 1.0 + (many * lower.exp()).ceil(), high - (many * upper.exp()).floor())


DISCRETE_UNIFORM = RuntimeFamily(
    Family(
        "DiscreteUniform",
        (replace(LOW, constraint="whole"), replace(HIGH, constraint="whole")),
        Support("count"),
        "discrete",
        "whole numbers from low to high, both among them",
        bounded_by=("low", "high"),
        counts_to="high",
        step_only=True,
    ),
    discrete_uniform_log_prob,
    draw=discrete_uniform_draw,
    reparameterised=False,
    categories=_from_zero,
    tails=discrete_uniform_tails,
    quantile=discrete_uniform_quantile,
)
