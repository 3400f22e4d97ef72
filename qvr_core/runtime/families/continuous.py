"""Scalar continuous families whose draws are a function of parameter-free noise: location-scale and inverse cdf.

Every function is elementwise: `log_prob(value, *parameters)` and `transform(noise, *parameters)`, parameters in the
order of `qvr_core.semantics.language.families`.  Uniform noise lies strictly between 0 and 1.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
LOG_PI = math.log(math.pi)
LOG_2 = math.log(2.0)


def inside(ok: Tensor, density: Tensor) -> Tensor:
    """`density` on the support, −∞ off it."""
    return torch.where(ok, density, -math.inf)


def _unit(value: Tensor) -> tuple[Tensor, Tensor]:
    """A value clamped inside (0, 1), and where it was in [0, 1] to begin with."""
    eps = torch.finfo(value.dtype).eps
    return value.clamp(eps, 1.0 - eps), (value >= 0.0) & (value <= 1.0)


# ---------------------------------------------------------------- from standard normal noise


def normal_transform(noise: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    return loc + scale * noise


def normal_log_prob(value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    return -0.5 * ((value - loc) / scale).square() - scale.log() - LOG_SQRT_2PI


def log_normal_transform(noise: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    return (loc + scale * noise).exp()


def log_normal_log_prob(value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    ok = value > 0.0
    log = torch.where(ok, value, 1.0).log()
    return inside(ok, normal_log_prob(log, loc, scale) - log)


def logit_normal_transform(noise: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    return (loc + scale * noise).sigmoid()


def logit_normal_log_prob(value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    y, ok = _unit(value)
    log_y, log_1y = y.log(), torch.log1p(-y)
    return inside(ok, normal_log_prob(log_y - log_1y, loc, scale) - log_y - log_1y)


# ---------------------------------------------------------------- from uniform noise


def half_normal_transform(noise: Tensor, scale: Tensor) -> Tensor:
    # (1 - u) / 2 keeps its precision in the upper tail, (1 + u) / 2 does not
    return -scale * torch.special.ndtri(0.5 * (1.0 - noise))


def half_normal_log_prob(value: Tensor, scale: Tensor) -> Tensor:
    return inside(value >= 0.0, LOG_2 - LOG_SQRT_2PI - scale.log() - 0.5 * (value / scale).square())


def half_cauchy_transform(noise: Tensor, scale: Tensor) -> Tensor:
    return scale / torch.tan(0.5 * math.pi * (1.0 - noise))


def half_cauchy_log_prob(value: Tensor, scale: Tensor) -> Tensor:
    return inside(value >= 0.0, LOG_2 - LOG_PI - scale.log() - torch.log1p((value / scale).square()))


def cauchy_transform(noise: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    tail = torch.minimum(noise, 1.0 - noise)
    return loc + scale * torch.sign(noise - 0.5) / torch.tan(math.pi * tail)


def cauchy_log_prob(value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    return -LOG_PI - scale.log() - torch.log1p(((value - loc) / scale).square())


def laplace_transform(noise: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    tail = torch.minimum(noise, 1.0 - noise)
    return loc - scale * torch.sign(noise - 0.5) * (2.0 * tail).log()


def laplace_log_prob(value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    return -(value - loc).abs() / scale - scale.log() - LOG_2


def gumbel_transform(noise: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    return loc - scale * (-noise.log()).log()


def gumbel_log_prob(value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    z = (value - loc) / scale
    return -z - (-z).exp() - scale.log()


def uniform_transform(noise: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return low + (high - low) * noise


def uniform_log_prob(value: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return inside((value >= low) & (value <= high), -(high - low).log().expand_as(value + low))


def exponential_transform(noise: Tensor, rate: Tensor) -> Tensor:
    return -torch.log1p(-noise) / rate


def exponential_log_prob(value: Tensor, rate: Tensor) -> Tensor:
    return inside(value >= 0.0, rate.log() - rate * value)


def kumaraswamy_transform(noise: Tensor, a: Tensor, b: Tensor) -> Tensor:
    # 1 - (1 - u)^(1/b), then the a-th root, in logarithms
    log_inner = torch.log(-torch.expm1(torch.log1p(-noise) / b).clamp(max=-torch.finfo(noise.dtype).tiny))
    return _unit((log_inner / a).exp())[0]


def kumaraswamy_log_prob(value: Tensor, a: Tensor, b: Tensor) -> Tensor:
    y, ok = _unit(value)
    log_y = y.log()
    log_rest = torch.log(-torch.expm1(a * log_y).clamp(max=-torch.finfo(y.dtype).tiny))
    return inside(ok, a.log() + b.log() + (a - 1.0) * log_y + (b - 1.0) * log_rest)


def weibull_transform(noise: Tensor, scale: Tensor, concentration: Tensor) -> Tensor:
    return scale * ((-torch.log1p(-noise)).log() / concentration).exp()


def weibull_log_prob(value: Tensor, scale: Tensor, concentration: Tensor) -> Tensor:
    ok = value > 0.0
    log_z = torch.where(ok, value, 1.0).log() - scale.log()
    density = concentration.log() - scale.log() + (concentration - 1.0) * log_z - (concentration * log_z).exp()
    return inside(ok, density)


def pareto_transform(noise: Tensor, scale: Tensor, alpha: Tensor) -> Tensor:
    return scale * (-torch.log1p(-noise) / alpha).exp()


def pareto_log_prob(value: Tensor, scale: Tensor, alpha: Tensor) -> Tensor:
    ok = value >= scale
    safe = torch.where(ok, value, scale)
    return inside(ok, alpha.log() + alpha * scale.log() - (alpha + 1.0) * safe.log())


_FAR = 40.0
"""Standard deviations beyond the other bound at which an infinite bound is put: its mass is zero in any precision."""


def _standard_bounds(loc: Tensor, scale: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """The bounds in standard deviations from loc, finite, so that an infinite bound has no gradient."""
    open_low, open_high = torch.isinf(low), torch.isinf(high)
    a = (torch.where(open_low, 0.0, low) - loc) / scale
    b = (torch.where(open_high, 0.0, high) - loc) / scale
    top = torch.where(open_high, 0.0, b).detach().clamp(max=0.0)
    bottom = torch.where(open_low, 0.0, a).detach().clamp(min=0.0)
    return torch.where(open_low, top - _FAR, a), torch.where(open_high, bottom + _FAR, b)


def _mirrored(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The bounds turned to the left tail, where Φ keeps its digits, and where they were turned."""
    flip = a > 0.0
    return torch.where(flip, -b, a), torch.where(flip, -a, b), flip


def truncated_normal_transform(noise: Tensor, loc: Tensor, scale: Tensor, low: Tensor, high: Tensor) -> Tensor:
    left, right, flip = _mirrored(*_standard_bounds(loc, scale, low, high))
    u = torch.where(flip, 1.0 - noise, noise)
    # p = Φ(left) + u (Φ(right) − Φ(left)) relative to Φ(right), which may underflow
    log_right = torch.special.log_ndtr(right)
    ratio = (torch.special.log_ndtr(left) - log_right).exp()
    z = _log_ndtri(log_right + torch.log(ratio + u * (1.0 - ratio)))
    value = loc + scale * torch.where(flip, -z, z)
    return torch.minimum(torch.maximum(value, low), high)


def _log_ndtri(log_p: Tensor) -> Tensor:
    """Φ⁻¹(exp(log_p)): in the far tail by Newton's method on log Φ, elsewhere directly."""
    far = log_p < -15.0
    near = torch.special.ndtri(torch.where(far, -15.0, log_p).exp().clamp(max=1.0 - torch.finfo(log_p.dtype).eps))
    target = torch.where(far, log_p, -15.0)
    z = -(-2.0 * target).sqrt()
    for _ in range(6):
        log_cdf = torch.special.log_ndtr(z)
        # d log Φ / dz = φ / Φ
        slope = (-0.5 * z.square() - LOG_SQRT_2PI - log_cdf).exp()
        z = z - (log_cdf - target) / slope
    return torch.where(far, z, near)


def truncated_normal_log_prob(value: Tensor, loc: Tensor, scale: Tensor, low: Tensor, high: Tensor) -> Tensor:
    left, right, _ = _mirrored(*_standard_bounds(loc, scale, low, high))
    log_left, log_right = torch.special.log_ndtr(left), torch.special.log_ndtr(right)
    gap = (log_left - log_right).clamp(max=-torch.finfo(log_right.dtype).eps)
    mass = log_right + torch.log1p(-gap.exp())
    return inside((value >= low) & (value <= high), normal_log_prob(value, loc, scale) - mass)


_FLAT = 1e-2
"""Below this logit a continuous Bernoulli is computed by its series, which is exact to float32 there."""


def continuous_bernoulli_transform(noise: Tensor, logits: Tensor) -> Tensor:
    flat = logits.abs() < _FLAT
    size = torch.where(flat, 1.0, logits.abs())
    # for a positive logit the mirrored draw: 1 − x has logit −λ
    u = torch.where(logits > 0.0, 1.0 - noise, noise)
    x = -torch.log1p(u * torch.expm1(-size)) / size
    steep = torch.where(logits > 0.0, 1.0 - x, x)
    return torch.where(flat, noise + 0.5 * logits * noise * (1.0 - noise), steep).clamp(0.0, 1.0)


def continuous_bernoulli_log_prob(value: Tensor, logits: Tensor) -> Tensor:
    flat = logits.abs() < _FLAT
    size = torch.where(flat, 1.0, logits.abs())
    steep = F.relu(logits) + torch.log(-torch.expm1(-size)) - size.log()
    log_normaliser = torch.where(flat, 0.5 * logits + logits.square() / 24.0, steep)
    return inside((value >= 0.0) & (value <= 1.0), logits * value - log_normaliser)
