"""Families of counts, and 0 or 1, elementwise, in their logit forms.  Draws carry no gradient."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from qvr_core.runtime.families.cumulative.incomplete import beta_tails, gamma_tails
from qvr_core.runtime.families.cumulative.tails import Tails, upper_first, zero_or
from qvr_core.runtime.families.densities import inside
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.links import HeadPlan, Params
from qvr_core.runtime.families.noise import Shape, open_uniforms, standard_gamma
from qvr_core.runtime.families.parameters import COUNT, PROBS, RATE, positive_parameter
from qvr_core.semantics.language.family import Family, Parameter, Support
from qvr_core.semantics.types.spaces import Finite


def _whole(value: Tensor) -> Tensor:
    return (value >= 0) & (value == value.round())


def bernoulli_draw(shape: Shape, generator: Generator | None, logits: Tensor) -> Tensor:
    return torch.bernoulli(logits.detach().sigmoid().expand(shape), generator=generator)


def bernoulli_log_prob(value: Tensor, logits: Tensor) -> Tensor:
    y = value.to(logits.dtype)
    return inside((y == 0) | (y == 1), y * logits - F.softplus(logits))


BERNOULLI = RuntimeFamily(
    Family("Bernoulli", (PROBS,), Support("finite", 0.0, 1.0), "discrete", "0 or 1"),
    bernoulli_log_prob,
    draw=bernoulli_draw,
    reparameterised=False,
    categories=lambda logits: 2,
    tails=lambda value, logits: (F.logsigmoid(-logits) + 0.0 * value, F.logsigmoid(logits) + 0.0 * value),
)


def binomial_draw(shape: Shape, generator: Generator | None, total: Tensor, logits: Tensor) -> Tensor:
    probs = logits.detach().sigmoid().expand(shape).contiguous()
    return torch.binomial(total.to(probs.dtype).expand(shape).contiguous(), probs, generator=generator)


def binomial_log_prob(value: Tensor, total: Tensor, logits: Tensor) -> Tensor:
    y, n = value.to(logits.dtype), total.to(logits.dtype)
    ok = _whole(y) & (y <= n)
    y = torch.where(ok, y, 0.0)
    choose = torch.lgamma(n + 1.0) - torch.lgamma(y + 1.0) - torch.lgamma(n - y + 1.0)
    return inside(ok, choose + y * logits - n * F.softplus(logits))


def binomial_tails(value: Tensor, total: Tensor, logits: Tensor) -> Tails:
    """P(X ≤ k) = I_q(n − k, k + 1), q the probability of a failure."""
    left = (total - value).clamp(min=1.0)
    return beta_tails(left, value + 1.0, F.logsigmoid(-logits), F.logsigmoid(logits))


def _binomial_link(head: HeadPlan, raw: Tensor) -> Params:
    logits = head.pieces(raw)["probs"]
    total, space = head.options.get("total"), head.codomain
    if not isinstance(total, int):
        total = head.family.head_options["total"]
        if isinstance(space, Finite) and isinstance(space.size, int):
            total = space.size - 1
    return torch.full_like(logits, float(total)), logits


BINOMIAL = RuntimeFamily(
    Family(
        "Binomial",
        (Parameter("total", constraint="natural", aliases=("total_count", "n"), raw="none"), PROBS),
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
)


def geometric_draw(shape: Shape, generator: Generator | None, logits: Tensor) -> Tensor:
    log_failure = -F.softplus(logits.detach())
    u = open_uniforms(shape, log_failure, generator)
    return (u.log() / log_failure.clamp(max=-torch.finfo(u.dtype).tiny)).floor()


def geometric_log_prob(value: Tensor, logits: Tensor) -> Tensor:
    y = value.to(logits.dtype)
    return inside(_whole(y), -F.softplus(-logits) - y * F.softplus(logits))


GEOMETRIC = RuntimeFamily(
    Family("Geometric", (PROBS,), COUNT, "discrete", "failures before the first success"),
    geometric_log_prob,
    draw=geometric_draw,
    reparameterised=False,
    tails=lambda value, logits: upper_first(-(value + 1.0) * F.softplus(logits)),
)


def poisson_draw(shape: Shape, generator: Generator | None, rate: Tensor) -> Tensor:
    return torch.poisson(rate.detach().expand(shape), generator=generator)


def poisson_log_prob(value: Tensor, rate: Tensor) -> Tensor:
    y = value.to(rate.dtype)
    ok = _whole(y)
    y = torch.where(ok, y, 0.0)
    return inside(ok, torch.xlogy(y, rate) - rate - torch.lgamma(y + 1.0))


def poisson_tails(value: Tensor, rate: Tensor) -> Tails:
    """P(X ≤ k) = Q(k + 1, rate)."""
    lower, upper = gamma_tails(value + 1.0, rate)
    return upper, lower


POISSON = RuntimeFamily(
    Family("Poisson", (RATE,), COUNT, "discrete", "a count with mean rate"),
    poisson_log_prob,
    draw=poisson_draw,
    reparameterised=False,
    tails=poisson_tails,
)


def negative_binomial_draw(shape: Shape, generator: Generator | None, total: Tensor, logits: Tensor) -> Tensor:
    rate = standard_gamma(total.detach().to(logits.dtype).expand(shape), generator)
    return torch.poisson(rate * logits.detach().clamp(max=80.0).exp(), generator=generator)


def negative_binomial_log_prob(value: Tensor, total: Tensor, logits: Tensor) -> Tensor:
    """`total` failures stop the count of successes of probability sigmoid(logits), as in torch."""
    y, n = value.to(logits.dtype), total.to(logits.dtype)
    ok = _whole(y)
    y = torch.where(ok, y, 0.0)
    choose = torch.lgamma(n + y) - torch.lgamma(n) - torch.lgamma(y + 1.0)
    return inside(ok, choose + y * F.logsigmoid(logits) + n * F.logsigmoid(-logits))


def negative_binomial_tails(value: Tensor, total: Tensor, logits: Tensor) -> Tails:
    """P(X ≤ k) = I_q(r, k + 1), q the probability of a failure."""
    return beta_tails(total, value + 1.0, F.logsigmoid(-logits), F.logsigmoid(logits))


NEGATIVE_BINOMIAL = RuntimeFamily(
    Family(
        "NegativeBinomial",
        (positive_parameter("total", "total_count", "concentration", "r"), PROBS),
        COUNT,
        "discrete",
        "an overdispersed count",
    ),
    negative_binomial_log_prob,
    draw=negative_binomial_draw,
    reparameterised=False,
    tails=negative_binomial_tails,
)


def zero_inflated_poisson_draw(shape: Shape, generator: Generator | None, gate_logits: Tensor, rate: Tensor) -> Tensor:
    closed = bernoulli_draw(shape, generator, gate_logits)
    return (1.0 - closed) * poisson_draw(shape, generator, rate)


def zero_inflated_poisson_log_prob(value: Tensor, gate_logits: Tensor, rate: Tensor) -> Tensor:
    open_ = F.logsigmoid(-gate_logits) + poisson_log_prob(value, rate)
    return torch.where(value == 0, torch.logaddexp(F.logsigmoid(gate_logits), open_), open_)


def zero_inflated_poisson_tails(value: Tensor, gate_logits: Tensor, rate: Tensor) -> Tails:
    return zero_or(poisson_tails(value, rate), F.logsigmoid(-gate_logits), F.logsigmoid(gate_logits))


ZERO_INFLATED_POISSON = RuntimeFamily(
    Family(
        "ZeroInflatedPoisson",
        (Parameter("gate", constraint="unit", alternatives=(("gate_logits", "real"),)), RATE),
        COUNT,
        "discrete",
        "a Poisson, or zero with probability gate",
    ),
    zero_inflated_poisson_log_prob,
    draw=zero_inflated_poisson_draw,
    reparameterised=False,
    tails=zero_inflated_poisson_tails,
)
