"""The Normal and what is made of it by a function or a cut; parameter-free noise, normal or uniform."""

from __future__ import annotations

import math
from dataclasses import replace

from qvr_core.arrays.engine import Tensor, arrays, special
from qvr_core.runtime.families.bijectors import BY_SCALE, LOCATION_SCALE, LOG_LOCATION_SCALE
from qvr_core.runtime.families.cumulative.tails import (
    Tails,
    from_smaller,
    log_between,
    normal_tails,
    upper_first,
    within,
)
from qvr_core.runtime.families.densities import LOG_2, LOG_SQRT_2PI, clamped_unit, inside, normal_log_prob, open_unit
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.links import HeadPlan, Params, positive
from qvr_core.runtime.families.parameters import DEVIATION, HIGH, LOC, LOW, MEAN, POSITIVE, REAL, SCALE, UNIT
from qvr_core.semantics.language.family import Family


def normal_transform(noise: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    return loc + scale * noise


def _normal_link(head: HeadPlan, raw: Tensor) -> Params:
    loc, scale = raw.chunk(2, dim=-1)
    return loc, positive(scale) if head.scale == 1.0 else positive(scale) * head.scale


def log_ndtri(log_p: Tensor) -> Tensor:
    """Φ⁻¹(exp(log_p)): in the far tail by Newton's method on log Φ, elsewhere directly."""
    far = log_p < -15.0
    near = special.ndtri(arrays.where(far, -15.0, log_p).exp().clamp(max=1.0 - arrays.finfo(log_p.dtype).eps))
    target = arrays.where(far, log_p, -15.0)
    z = -(-2.0 * target).sqrt()
    for _ in range(6):
        log_cdf = special.log_ndtr(z)
        # d log Φ / dz = φ / Φ
        slope = (-0.5 * z.square() - LOG_SQRT_2PI - log_cdf).exp()
        z = z - (log_cdf - target) / slope
    return arrays.where(far, z, near)


def _standard_quantile(lower: Tensor, upper: Tensor) -> Tensor:
    z = log_ndtri(arrays.minimum(lower, upper))
    return arrays.where(lower < upper, z, -z)


def normal_quantile(lower: Tensor, upper: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    return loc + scale * _standard_quantile(lower, upper)


def normal_cdf(value: Tensor, loc: Tensor, scale: Tensor) -> Tails:
    return normal_tails((value - loc) / scale)


NORMAL = RuntimeFamily(
    Family(
        "Normal", (MEAN, DEVIATION), REAL, "normal", "bell curve around loc with standard deviation scale", common=True
    ),
    normal_log_prob,
    normal_transform,
    link=_normal_link,
    affine=True,
    tails=normal_cdf,
    quantile=normal_quantile,
    standardised=LOCATION_SCALE,
    mean=lambda loc, scale: loc,
)


def log_normal_transform(noise: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    return (loc + scale * noise).exp()


def log_normal_log_prob(value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    """The Normal's of log x, less log x."""
    ok = value > 0.0
    log = arrays.where(ok, value, 1.0).log()
    return inside(ok, normal_log_prob(log, loc, scale) - log)


LOG_NORMAL = RuntimeFamily(
    Family(
        "LogNormal",
        (LOC, SCALE),
        POSITIVE,
        "normal",
        "a positive number whose logarithm is Normal(loc, scale)",
        open=True,
    ),
    log_normal_log_prob,
    log_normal_transform,
    tails=lambda value, loc, scale: normal_cdf(value.log(), loc, scale),
    quantile=lambda lower, upper, loc, scale: normal_quantile(lower, upper, loc, scale).exp(),
    standardised=LOG_LOCATION_SCALE,
    mean=lambda loc, scale: (loc + 0.5 * scale.square()).exp(),
)


def logit_normal_transform(noise: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    return clamped_unit((loc + scale * noise).sigmoid())


def logit_normal_log_prob(value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    """The Normal's of logit x, less log x (1 − x)."""
    y, ok = open_unit(value)
    log_y, log_1y = y.log(), arrays.log1p(-y)
    return inside(ok, normal_log_prob(log_y - log_1y, loc, scale) - log_y - log_1y)


LOGIT_NORMAL = RuntimeFamily(
    Family("LogitNormal", (LOC, SCALE), UNIT, "normal", "sigmoid of a Normal", open=True),
    logit_normal_log_prob,
    logit_normal_transform,
    tails=lambda value, loc, scale: normal_cdf(arrays.logit(value), loc, scale),
    quantile=lambda lower, upper, loc, scale: normal_quantile(lower, upper, loc, scale).sigmoid(),
)


def half_normal_transform(noise: Tensor, scale: Tensor) -> Tensor:
    # (1 - u) / 2 keeps its precision in the upper tail, (1 + u) / 2 does not
    return -scale * special.ndtri(0.5 * (1.0 - noise))


def half_normal_log_prob(value: Tensor, scale: Tensor) -> Tensor:
    """log 2 more than the Normal's around 0, from 0 on."""
    return inside(value >= 0.0, LOG_2 - LOG_SQRT_2PI - scale.log() - 0.5 * (value / scale).square())


def half_normal_tails(value: Tensor, scale: Tensor) -> Tails:
    z = value / scale
    near = z < 1.0
    lower, upper = upper_first(LOG_2 + special.log_ndtr(-z))
    return arrays.where(near, arrays.erf(arrays.where(near, z, 1.0) * math.sqrt(0.5)).log(), lower), upper


def half_normal_quantile(lower: Tensor, upper: Tensor, scale: Tensor) -> Tensor:
    far = -log_ndtri(upper - LOG_2)
    # near 0 Φ⁻¹ has no digits: Newton's method on erf, which is nearly straight there
    close = lower < -1.0
    share = arrays.where(close, lower, -1.0).exp()
    z = share * math.sqrt(0.5 * math.pi)
    for _ in range(5):
        z = z - (arrays.erf(z * math.sqrt(0.5)) - share) * (0.5 * z.square() - LOG_2 + LOG_SQRT_2PI).exp()
    return scale * arrays.where(close, z, far)


HALF_NORMAL = RuntimeFamily(
    Family(
        "HalfNormal",
        (SCALE,),
        POSITIVE,
        "uniform",
        "above 0 and most often near 0: the absolute value of a Normal around 0 with standard deviation scale",
    ),
    half_normal_log_prob,
    half_normal_transform,
    tails=half_normal_tails,
    quantile=half_normal_quantile,
    standardised=BY_SCALE,
    mean=lambda scale: scale * math.sqrt(2.0 / math.pi),
)


# ---------------------------------------------------------------- cut off

_FAR = 40.0
"""Standard deviations beyond the other bound at which an infinite bound is put: its mass is zero in any precision."""


def _standard_bounds(loc: Tensor, scale: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """The bounds in standard deviations from loc, finite, so that an infinite bound has no gradient."""
    open_low, open_high = arrays.isinf(low), arrays.isinf(high)
    a = (arrays.where(open_low, 0.0, low) - loc) / scale
    b = (arrays.where(open_high, 0.0, high) - loc) / scale
    top = arrays.where(open_high, 0.0, b).detach().clamp(max=0.0)
    bottom = arrays.where(open_low, 0.0, a).detach().clamp(min=0.0)
    return arrays.where(open_low, top - _FAR, a), arrays.where(open_high, bottom + _FAR, b)


def _mirrored(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The bounds turned to the left tail, where Φ keeps its digits, and where they were turned."""
    flip = a > 0.0
    return arrays.where(flip, -b, a), arrays.where(flip, -a, b), flip


def truncated_normal_transform(noise: Tensor, loc: Tensor, scale: Tensor, low: Tensor, high: Tensor) -> Tensor:
    left, right, flip = _mirrored(*_standard_bounds(loc, scale, low, high))
    u = arrays.where(flip, 1.0 - noise, noise)
    # p = Φ(left) + u (Φ(right) − Φ(left)) relative to Φ(right), which may underflow
    log_right = special.log_ndtr(right)
    ratio = (special.log_ndtr(left) - log_right).exp()
    z = log_ndtri(log_right + arrays.log(ratio + u * (1.0 - ratio)))
    value = loc + scale * arrays.where(flip, -z, z)
    return arrays.minimum(arrays.maximum(value, low), high)


def truncated_normal_log_prob(value: Tensor, loc: Tensor, scale: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The Normal's less the logarithm of its probability between the bounds."""
    left, right, _ = _mirrored(*_standard_bounds(loc, scale, low, high))
    log_left, log_right = special.log_ndtr(left), special.log_ndtr(right)
    gap = (log_left - log_right).clamp(max=-arrays.finfo(log_right.dtype).eps)
    mass = log_right + arrays.log1p(-gap.exp())
    return inside((value >= low) & (value <= high), normal_log_prob(value, loc, scale) - mass)


def truncated_normal_tails(value: Tensor, loc: Tensor, scale: Tensor, low: Tensor, high: Tensor) -> Tails:
    a, b = _standard_bounds(loc, scale, low, high)
    start, here, end = (normal_tails(z) for z in (a, (value - loc) / scale, b))
    whole = log_between(start, end)[0]
    return from_smaller(log_between(start, here)[0] - whole, log_between(here, end)[0] - whole)


def truncated_normal_quantile(
    lower: Tensor, upper: Tensor, loc: Tensor, scale: Tensor, low: Tensor, high: Tensor
) -> Tensor:
    start, end = (normal_tails(z) for z in _standard_bounds(loc, scale, low, high))
    return normal_quantile(*within(start, end, lower, upper), loc, scale)


def _truncated_normal_link(head: HeadPlan, raw: Tensor) -> Params:
    """The bounds are those of the codomain."""
    pieces = head.pieces(raw)
    loc, (low, high) = pieces["loc"], head.bounds
    return (
        loc,
        positive(pieces["scale"]) * head.scale,
        arrays.full_like(loc, -math.inf if low is None else low),
        arrays.full_like(loc, math.inf if high is None else high),
    )


TRUNCATED_NORMAL = RuntimeFamily(
    Family(
        "TruncatedNormal",
        (
            LOC,
            SCALE,
            replace(LOW, default=-math.inf, raw="none"),
            replace(HIGH, default=math.inf, raw="none"),
        ),
        REAL,
        "uniform",
        "Normal cut off at low and high",
        bounded_by=("low", "high"),
    ),
    truncated_normal_log_prob,
    truncated_normal_transform,
    link=_truncated_normal_link,
    tails=truncated_normal_tails,
    quantile=truncated_normal_quantile,
)
