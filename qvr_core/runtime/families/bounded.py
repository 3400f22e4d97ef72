"""Families on an interval, and angles."""

from __future__ import annotations

import math

from qvr_core.arrays.engine import Generator, Tensor, arrays, special
from qvr_core.arrays.engine import functional as F
from qvr_core.runtime.families.cumulative.incomplete import small_beta_tails
from qvr_core.runtime.families.cumulative.tails import Tails, from_smaller, log1mexp, upper_first
from qvr_core.runtime.families.densities import clamped_unit, inside, open_unit
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.links import FLOOR, HeadPlan, Params, positive
from qvr_core.runtime.families.parameters import HIGH, LOW, MEAN, PROBS, REAL, UNIT, positive_parameter
from qvr_core.runtime.families.random_draws import Shape, log_gamma_draw, open_uniforms
from qvr_core.semantics.language.family import Family, Support


def uniform_transform(noise: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return low + (high - low) * noise


def uniform_log_prob(value: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """−log(high − low) between the two."""
    return inside((value >= low) & (value <= high), -(high - low).log().expand_as(value + low))


def _uniform_link(head: HeadPlan, raw: Tensor) -> Params:
    pieces = head.pieces(raw)
    low, high = head.bounds
    if low is None and high is None:
        return pieces["low"], pieces["low"] + positive(pieces["high"])
    if low is not None and high is not None:
        # both ends inside the codomain, the upper above the lower
        start = low + (high - low) * 0.999 * pieces["low"].sigmoid()
        return start, start + (high - start) * (FLOOR + (1.0 - FLOOR) * pieces["high"].sigmoid())
    if low is not None:
        start = low + positive(pieces["low"])
        return start, start + positive(pieces["high"])
    end = arrays.full_like(pieces["high"], 0.0 if high is None else high) - positive(pieces["high"])
    return end - positive(pieces["low"]), end


def uniform_tails(value: Tensor, low: Tensor, high: Tensor) -> Tails:
    log_width = (high - low).log()
    return from_smaller((value - low).log() - log_width, (high - value).log() - log_width)


def uniform_quantile(lower: Tensor, upper: Tensor, low: Tensor, high: Tensor) -> Tensor:
    width = high - low
    return arrays.where(lower < upper, low + width * lower.exp(), high - width * upper.exp())


UNIFORM = RuntimeFamily(
    Family("Uniform", (LOW, HIGH), REAL, "uniform", "flat between low and high", bounded_by=("low", "high")),
    uniform_log_prob,
    uniform_transform,
    link=_uniform_link,
    tails=uniform_tails,
    quantile=uniform_quantile,
    mean=lambda low, high: 0.5 * (low + high),
)


def beta_draw(shape: Shape, generator: Generator | None, a: Tensor, b: Tensor) -> Tensor:
    logit = log_gamma_draw(shape, a, generator) - log_gamma_draw(shape, b, generator)
    return clamped_unit(logit.sigmoid())


def beta_log_prob(value: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """(a − 1) log x + (b − 1) log(1 − x) − log B(a, b)."""
    y, ok = open_unit(value)
    normaliser = arrays.lgamma(a) + arrays.lgamma(b) - arrays.lgamma(a + b)
    return inside(ok, (a - 1.0) * y.log() + (b - 1.0) * arrays.log1p(-y) - normaliser)


BETA = RuntimeFamily(
    Family(
        "Beta",
        (positive_parameter("a", "alpha", "concentration1"), positive_parameter("b", "beta", "concentration0")),
        UNIT,
        "value",
        "a probability; a and b count successes and failures",
        open=True,
    ),
    beta_log_prob,
    draw=beta_draw,
    tails=lambda value, a, b: small_beta_tails(a, b, value.log(), arrays.log1p(-value)),
    mean=lambda a, b: a / (a + b),
)


def kumaraswamy_transform(noise: Tensor, a: Tensor, b: Tensor) -> Tensor:
    # 1 - (1 - u)^(1/b), then the a-th root, in logarithms
    log_inner = arrays.log(-arrays.expm1(arrays.log1p(-noise) / b).clamp(max=-arrays.finfo(noise.dtype).tiny))
    return clamped_unit((log_inner / a).exp())


def kumaraswamy_log_prob(value: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """log a b + (a − 1) log x + (b − 1) log(1 − xᵃ) (Kumaraswamy 1980)."""
    y, ok = open_unit(value)
    log_y = y.log()
    log_rest = arrays.log(-arrays.expm1(a * log_y).clamp(max=-arrays.finfo(y.dtype).tiny))
    return inside(ok, a.log() + b.log() + (a - 1.0) * log_y + (b - 1.0) * log_rest)


KUMARASWAMY = RuntimeFamily(
    Family(
        "Kumaraswamy",
        (positive_parameter("a", "concentration1", "alpha"), positive_parameter("b", "concentration0", "beta")),
        UNIT,
        "uniform",
        "like Beta, with a closed-form inverse cdf",
        open=True,
    ),
    kumaraswamy_log_prob,
    kumaraswamy_transform,
    tails=lambda value, a, b: upper_first(b * log1mexp(a * value.log())),
    quantile=lambda lower, upper, a, b: (log1mexp(upper / b) / a).exp(),
)


_FLAT = 1e-2
"""Below this logit a continuous Bernoulli is computed by its series, which is exact to float32 there."""


def continuous_bernoulli_transform(noise: Tensor, logits: Tensor) -> Tensor:
    flat = logits.abs() < _FLAT
    size = arrays.where(flat, 1.0, logits.abs())
    # for a positive logit the mirrored draw: 1 − x has logit −λ
    u = arrays.where(logits > 0.0, 1.0 - noise, noise)
    x = -arrays.log1p(u * arrays.expm1(-size)) / size
    steep = arrays.where(logits > 0.0, 1.0 - x, x)
    return arrays.where(flat, noise + 0.5 * logits * noise * (1.0 - noise), steep).clamp(0.0, 1.0)


def continuous_bernoulli_log_prob(value: Tensor, logits: Tensor) -> Tensor:
    """x log p + (1 − x) log(1 − p) + log C(p) (Loaiza-Ganem and Cunningham 2019)."""
    flat = logits.abs() < _FLAT
    size = arrays.where(flat, 1.0, logits.abs())
    steep = F.relu(logits) + arrays.log(-arrays.expm1(-size)) - size.log()
    log_normaliser = arrays.where(flat, 0.5 * logits + logits.square() / 24.0, steep)
    return inside((value >= 0.0) & (value <= 1.0), logits * value - log_normaliser)


def _log_share(value: Tensor, logits: Tensor) -> Tensor:
    """log((e^(λx) − 1) / (e^λ − 1))."""
    flat = logits.abs() < _FLAT
    size = arrays.where(flat, 1.0, logits.abs())
    steep = arrays.log(arrays.expm1(-size * value) / arrays.expm1(-size)) - F.relu(logits) * (1.0 - value)
    small = arrays.where(flat, logits, 0.0)
    return arrays.where(flat, value.log() + _log_mean_exp(small * value) - _log_mean_exp(small), steep)


def _log_mean_exp(t: Tensor) -> Tensor:
    """log((e^t − 1) / t) near 0."""
    return 0.5 * t + t.square() / 24.0 - t.pow(4) / 2880.0


def continuous_bernoulli_quantile(lower: Tensor, upper: Tensor, logits: Tensor) -> Tensor:
    near, far = _at_share(lower, logits), 1.0 - _at_share(upper, -logits)
    return arrays.where(lower < upper, near, far)


def _at_share(log_share: Tensor, logits: Tensor) -> Tensor:
    """The x with log((e^(λx) − 1) / (e^λ − 1)) = `log_share`."""
    size = arrays.where(logits == 0.0, 1.0, logits.abs())
    log_span = size + log1mexp(-size)
    rising = arrays.logaddexp(arrays.zeros_like(log_share), log_share + log_span)
    falling = -arrays.log1p(log_share.exp() * arrays.expm1(-size))
    return arrays.where(logits == 0.0, log_share.exp(), arrays.where(logits > 0.0, rising, falling) / size)


CONTINUOUS_BERNOULLI = RuntimeFamily(
    Family("ContinuousBernoulli", (PROBS,), UNIT, "uniform", "Bernoulli for values between 0 and 1"),
    continuous_bernoulli_log_prob,
    continuous_bernoulli_transform,
    tails=lambda value, logits: (_log_share(value, logits), _log_share(1.0 - value, -logits)),
    quantile=continuous_bernoulli_quantile,
)


def von_mises_draw(shape: Shape, generator: Generator | None, loc: Tensor, concentration: Tensor) -> Tensor:
    """Best & Fisher (1979), wrapped to [−π, π); in double precision, since small concentrations cancel."""
    kappa = concentration.detach().double().expand(shape).clamp(min=1e-6)
    tau = 1.0 + (1.0 + 4.0 * kappa.square()).sqrt()
    rho = (tau - (2.0 * tau).sqrt()) / (2.0 * kappa)
    # 1/κ + κ is the limit of (1 + ρ²) / (2ρ) where ρ loses its digits
    r = arrays.where(kappa < 1e-3, 1.0 / kappa + kappa, (1.0 + rho.square()) / (2.0 * rho))
    angle = arrays.zeros_like(kappa)
    todo = arrays.ones(shape, dtype=arrays.bool, device=kappa.device)
    while bool(todo.any()):
        u1, u2, u3 = open_uniforms((3, *shape), kappa, generator)
        z = arrays.cos(math.pi * u1)
        f = (1.0 + r * z) / (r + z)
        c = kappa * (r - f)
        accept = ((c * (2.0 - c) - u2) > 0.0) | ((c / u2).log() + 1.0 - c >= 0.0)
        fresh = arrays.sign(u3 - 0.5) * arrays.acos(f.clamp(-1.0, 1.0))
        angle = arrays.where(todo & accept, fresh, angle)
        todo &= ~accept
    turned = angle.to(loc.dtype) + loc.detach()
    return arrays.remainder(turned + math.pi, 2.0 * math.pi) - math.pi


def von_mises_log_prob(value: Tensor, loc: Tensor, concentration: Tensor) -> Tensor:
    """κ cos(x − μ) − log 2π I₀(κ)."""
    # log I0(κ) = log(i0e(κ)) + κ
    log_i0 = special.i0e(concentration).log() + concentration
    return concentration * arrays.cos(value - loc) - math.log(2.0 * math.pi) - log_i0


VON_MISES = RuntimeFamily(
    Family(
        "VonMises",
        (MEAN, positive_parameter("concentration", "kappa")),
        Support("real", -math.pi, math.pi),
        "value",
        "an angle around loc",
    ),
    von_mises_log_prob,
    draw=von_mises_draw,
    reparameterised=False,  # by rejection
)
