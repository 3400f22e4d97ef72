"""Scalar continuous families without parameter-free noise: the innovation is the value itself.

Draws are reparameterised by torch's implicit gradients of the Gamma sampler, but for `VonMises` (rejection) and
`MixtureNormal` (a component is chosen), whose gradients are the score function's.
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

from qvr_core.runtime.families.continuous import LOG_2, LOG_PI, LOG_SQRT_2PI, inside, normal_log_prob

Shape = tuple[int, ...]


def _normals(shape: Shape, like: Tensor, generator: Generator | None) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)


def open_uniforms(shape: Shape, like: Tensor, generator: Generator | None) -> Tensor:
    """Uniform noise strictly between 0 and 1."""
    u = torch.rand(shape, generator=generator, dtype=like.dtype, device=like.device)
    return u.clamp_(torch.finfo(u.dtype).tiny, 1.0 - 0.5 * torch.finfo(u.dtype).eps)


def standard_gamma(concentration: Tensor, generator: Generator | None) -> Tensor:
    """A Gamma(concentration, 1) draw with implicit gradients: what torch.distributions calls, with a generator."""
    return torch._standard_gamma(concentration, generator=generator)  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]


def log_gamma_draw(shape: Shape, concentration: Tensor, generator: Generator | None) -> Tensor:
    """log of a standard Gamma draw; by Γ(c) = Γ(c + 1) · u^(1/c) it neither under- nor overflows for small c."""
    c = concentration.expand(shape)
    boosted = standard_gamma(c + 1.0, generator)
    return boosted.log() + open_uniforms(shape, c, generator).log() / c


def _gamma(shape: Shape, concentration: Tensor, generator: Generator | None) -> Tensor:
    draw = standard_gamma(concentration.expand(shape), generator)
    return draw.clamp(min=torch.finfo(draw.dtype).tiny)


# ---------------------------------------------------------------- Gamma and its kin


def gamma_draw(shape: Shape, generator: Generator | None, concentration: Tensor, rate: Tensor) -> Tensor:
    return _gamma(shape, concentration, generator) / rate


def gamma_log_prob(value: Tensor, concentration: Tensor, rate: Tensor) -> Tensor:
    ok = value > 0.0
    y = torch.where(ok, value, 1.0)
    density = concentration * rate.log() + (concentration - 1.0) * y.log() - rate * y - torch.lgamma(concentration)
    return inside(ok, density)


def inverse_gamma_draw(shape: Shape, generator: Generator | None, concentration: Tensor, rate: Tensor) -> Tensor:
    return rate * (-log_gamma_draw(shape, concentration, generator)).clamp(max=80.0).exp()


def inverse_gamma_log_prob(value: Tensor, concentration: Tensor, rate: Tensor) -> Tensor:
    ok = value > 0.0
    y = torch.where(ok, value, 1.0)
    density = concentration * rate.log() - (concentration + 1.0) * y.log() - rate / y - torch.lgamma(concentration)
    return inside(ok, density)


def chi2_draw(shape: Shape, generator: Generator | None, df: Tensor) -> Tensor:
    return 2.0 * _gamma(shape, 0.5 * df, generator)


def chi2_log_prob(value: Tensor, df: Tensor) -> Tensor:
    return gamma_log_prob(value, 0.5 * df, torch.full_like(df, 0.5))


def beta_draw(shape: Shape, generator: Generator | None, a: Tensor, b: Tensor) -> Tensor:
    logit = log_gamma_draw(shape, a, generator) - log_gamma_draw(shape, b, generator)
    eps = torch.finfo(logit.dtype).eps
    return logit.sigmoid().clamp(torch.finfo(logit.dtype).tiny, 1.0 - eps)


def beta_log_prob(value: Tensor, a: Tensor, b: Tensor) -> Tensor:
    ok = (value >= 0.0) & (value <= 1.0)
    y = value.clamp(torch.finfo(value.dtype).tiny, 1.0 - 0.5 * torch.finfo(value.dtype).eps)
    normaliser = torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)
    return inside(ok, (a - 1.0) * y.log() + (b - 1.0) * torch.log1p(-y) - normaliser)


# ---------------------------------------------------------------- Student's t


def student_t_draw(shape: Shape, generator: Generator | None, df: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    log_precision = log_gamma_draw(shape, 0.5 * df, generator) - (0.5 * df).log()
    return loc + scale * _normals(shape, log_precision, generator) * (-0.5 * log_precision).clamp(max=80.0).exp()


def student_t_log_prob(value: Tensor, df: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    z = (value - loc) / scale
    normaliser = scale.log() + 0.5 * (df.log() + LOG_PI) + torch.lgamma(0.5 * df) - torch.lgamma(0.5 * (df + 1.0))
    return -0.5 * (df + 1.0) * torch.log1p(z.square() / df) - normaliser


def half_student_t_draw(shape: Shape, generator: Generator | None, df: Tensor, scale: Tensor) -> Tensor:
    return student_t_draw(shape, generator, df, torch.zeros_like(scale), scale).abs()


def half_student_t_log_prob(value: Tensor, df: Tensor, scale: Tensor) -> Tensor:
    return inside(value >= 0.0, LOG_2 + student_t_log_prob(value, df, torch.zeros_like(scale), scale))


# ---------------------------------------------------------------- von Mises


def von_mises_draw(shape: Shape, generator: Generator | None, loc: Tensor, concentration: Tensor) -> Tensor:
    """Best & Fisher (1979), wrapped to [−π, π); in double precision, since small concentrations cancel."""
    kappa = concentration.detach().double().expand(shape).clamp(min=1e-6)
    tau = 1.0 + (1.0 + 4.0 * kappa.square()).sqrt()
    rho = (tau - (2.0 * tau).sqrt()) / (2.0 * kappa)
    # 1/κ + κ is the limit of (1 + ρ²) / (2ρ) where ρ loses its digits
    r = torch.where(kappa < 1e-3, 1.0 / kappa + kappa, (1.0 + rho.square()) / (2.0 * rho))
    angle = torch.zeros_like(kappa)
    todo = torch.ones(shape, dtype=torch.bool, device=kappa.device)
    while bool(todo.any()):
        u1, u2, u3 = open_uniforms((3, *shape), kappa, generator)
        z = torch.cos(math.pi * u1)
        f = (1.0 + r * z) / (r + z)
        c = kappa * (r - f)
        accept = ((c * (2.0 - c) - u2) > 0.0) | ((c / u2).log() + 1.0 - c >= 0.0)
        fresh = torch.sign(u3 - 0.5) * torch.acos(f.clamp(-1.0, 1.0))
        angle = torch.where(todo & accept, fresh, angle)
        todo &= ~accept
    turned = angle.to(loc.dtype) + loc.detach()
    return torch.remainder(turned + math.pi, 2.0 * math.pi) - math.pi


def von_mises_log_prob(value: Tensor, loc: Tensor, concentration: Tensor) -> Tensor:
    # log I0(κ) = log(i0e(κ)) + κ
    log_i0 = torch.special.i0e(concentration).log() + concentration
    return concentration * torch.cos(value - loc) - math.log(2.0 * math.pi) - log_i0


# ---------------------------------------------------------------- Horseshoe


def horseshoe_draw(shape: Shape, generator: Generator | None, scale: Tensor) -> Tensor:
    local = 1.0 / torch.tan(0.5 * math.pi * (1.0 - open_uniforms(shape, scale, generator)))
    return scale * local * _normals(shape, scale, generator)


def _scaled_e1(x: Tensor) -> Tensor:
    """eˣ E₁(x) for x > 0: the series below 1, Lentz's continued fraction above (Press et al., 6.3)."""
    small = x.clamp(max=1.0)
    total, term = torch.zeros_like(small), torch.ones_like(small)
    for k in range(1, 20):
        term = term * (-small / k)
        total = total - term / k
    series = small.exp() * (total - small.log() - 0.57721566490153286)
    large = x.clamp(min=1.0)
    fraction = torch.zeros_like(large)
    for k in range(40, 0, -1):
        fraction = k / (1.0 + k / (large + fraction))
    return torch.where(x < 1.0, series, 1.0 / (large + fraction))


def horseshoe_log_prob(value: Tensor, scale: Tensor) -> Tensor:
    """p(x) = eᵏ E₁(k) / (σ √(2π³)), k = x² / 2σ² (Carvalho, Polson & Scott 2010); infinite at 0."""
    k = (0.5 * (value / scale).square()).clamp(min=torch.finfo(value.dtype).tiny)
    return _scaled_e1(k).log() - scale.log() - LOG_SQRT_2PI - LOG_PI


# ---------------------------------------------------------------- mixture of Normals


def mixture_normal_draw(
    shape: Shape, generator: Generator | None, logits: Tensor, locs: Tensor, scales: Tensor
) -> Tensor:
    count = locs.shape[-1]
    noise = open_uniforms((*shape, count), locs, generator)
    choice = (logits.detach() - (-noise.log()).log()).argmax(-1, keepdim=True)
    loc = locs.expand(*shape, count).gather(-1, choice).squeeze(-1)
    scale = scales.expand(*shape, count).gather(-1, choice).squeeze(-1)
    return loc + scale * _normals(shape, loc, generator)


def mixture_normal_log_prob(value: Tensor, logits: Tensor, locs: Tensor, scales: Tensor) -> Tensor:
    each = torch.log_softmax(logits, -1) + normal_log_prob(value.unsqueeze(-1), locs, scales)
    return torch.logsumexp(each, -1)
