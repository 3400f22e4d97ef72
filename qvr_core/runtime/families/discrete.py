"""Discrete families, elementwise, in their logit forms.  Draws carry no gradient."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from qvr_core.runtime.families.continuous import inside
from qvr_core.runtime.families.standardless import open_uniforms, standard_gamma

Shape = tuple[int, ...]


def _whole(value: Tensor) -> Tensor:
    return (value >= 0) & (value == value.round())


def bernoulli_draw(shape: Shape, generator: Generator | None, logits: Tensor) -> Tensor:
    return torch.bernoulli(logits.detach().sigmoid().expand(shape), generator=generator)


def bernoulli_log_prob(value: Tensor, logits: Tensor) -> Tensor:
    y = value.to(logits.dtype)
    return inside((y == 0) | (y == 1), y * logits - F.softplus(logits))


def binomial_draw(shape: Shape, generator: Generator | None, total: Tensor, logits: Tensor) -> Tensor:
    probs = logits.detach().sigmoid().expand(shape).contiguous()
    return torch.binomial(total.to(probs.dtype).expand(shape).contiguous(), probs, generator=generator)


def binomial_log_prob(value: Tensor, total: Tensor, logits: Tensor) -> Tensor:
    y, n = value.to(logits.dtype), total.to(logits.dtype)
    ok = _whole(y) & (y <= n)
    y = torch.where(ok, y, 0.0)
    choose = torch.lgamma(n + 1.0) - torch.lgamma(y + 1.0) - torch.lgamma(n - y + 1.0)
    return inside(ok, choose + y * logits - n * F.softplus(logits))


def categorical_draw(shape: Shape, generator: Generator | None, logits: Tensor) -> Tensor:
    """Inverse cdf, one uniform per draw.  `shape` is without the class axis."""
    cdf = logits.detach().softmax(-1).cumsum(-1)
    u = open_uniforms((*shape, 1), cdf, generator) * cdf[..., -1:]
    return (u > cdf).sum(-1).clamp_(max=logits.shape[-1] - 1)


def categorical_log_prob(value: Tensor, logits: Tensor) -> Tensor:
    """`logits` (…, K) need not be normalised."""
    count = logits.shape[-1]
    if value.shape == logits.shape[:-1]:
        flat = F.cross_entropy(logits.reshape(-1, count), value.reshape(-1).long(), reduction="none")
        return -flat.view(value.shape)
    normalised = torch.log_softmax(logits, -1)
    lead = torch.broadcast_shapes(value.shape, logits.shape[:-1])
    index = value.long().expand(lead).unsqueeze(-1)
    return normalised.expand(*lead, count).gather(-1, index).squeeze(-1)


def geometric_draw(shape: Shape, generator: Generator | None, logits: Tensor) -> Tensor:
    log_failure = -F.softplus(logits.detach())
    u = open_uniforms(shape, log_failure, generator)
    return (u.log() / log_failure.clamp(max=-torch.finfo(u.dtype).tiny)).floor()


def geometric_log_prob(value: Tensor, logits: Tensor) -> Tensor:
    y = value.to(logits.dtype)
    return inside(_whole(y), -F.softplus(-logits) - y * F.softplus(logits))


def poisson_draw(shape: Shape, generator: Generator | None, rate: Tensor) -> Tensor:
    return torch.poisson(rate.detach().expand(shape), generator=generator)


def poisson_log_prob(value: Tensor, rate: Tensor) -> Tensor:
    y = value.to(rate.dtype)
    ok = _whole(y)
    y = torch.where(ok, y, 0.0)
    return inside(ok, torch.xlogy(y, rate) - rate - torch.lgamma(y + 1.0))


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


def zero_inflated_poisson_draw(shape: Shape, generator: Generator | None, gate_logits: Tensor, rate: Tensor) -> Tensor:
    closed = bernoulli_draw(shape, generator, gate_logits)
    return (1.0 - closed) * poisson_draw(shape, generator, rate)


def zero_inflated_poisson_log_prob(value: Tensor, gate_logits: Tensor, rate: Tensor) -> Tensor:
    open_ = F.logsigmoid(-gate_logits) + poisson_log_prob(value, rate)
    return torch.where(value == 0, torch.logaddexp(F.logsigmoid(gate_logits), open_), open_)


def ordered_logistic_logits(predictor: Tensor, cutpoints: Tensor) -> Tensor:
    """Log-probabilities (…, K) of the categories: log(σ(c_k − η) − σ(c_{k−1} − η)), exact in both tails."""
    z = cutpoints - predictor.unsqueeze(-1)
    first, last = F.logsigmoid(z[..., :1]), F.logsigmoid(-z[..., -1:])
    upper, lower = z[..., 1:], z[..., :-1]
    # σ(u) − σ(l) = σ(u) σ(−l) (1 − e^{l−u})
    gap = (lower - upper).clamp(max=-torch.finfo(z.dtype).eps)
    middle = F.logsigmoid(upper) + F.logsigmoid(-lower) + torch.log(-torch.expm1(gap))
    return torch.cat([first, middle, last], dim=-1)


def ordered_logistic_draw(shape: Shape, generator: Generator | None, predictor: Tensor, cutpoints: Tensor) -> Tensor:
    return categorical_draw(shape, generator, ordered_logistic_logits(predictor, cutpoints))


def ordered_logistic_log_prob(value: Tensor, predictor: Tensor, cutpoints: Tensor) -> Tensor:
    return categorical_log_prob(value, ordered_logistic_logits(predictor, cutpoints))
