"""Families with heavier tails than the Normal's, around a location or above 0, and the flat density: all tail."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NoReturn

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.runtime.families.bijectors import BY_SCALE, HEAVY_BY_SCALE, HEAVY_LOCATION_SCALE, LOCATION_SCALE
from qvr_core.runtime.families.cumulative.incomplete import beta_tails, log_beta_ratio
from qvr_core.runtime.families.cumulative.tails import Tails, from_smaller, lower_first, upper_first
from qvr_core.runtime.families.densities import LOG_2, LOG_PI, inside
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.links import HeadPlan, Params, positive
from qvr_core.runtime.families.parameters import DF, LOC, MEAN, POSITIVE, REAL, SCALE
from qvr_core.runtime.families.random_draws import Shape, log_gamma_draw, normals
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.semantics.language.family import Family

EULER = 0.5772156649015329
"""The mean of a standard Gumbel."""


def half_cauchy_transform(noise: Tensor, scale: Tensor) -> Tensor:
    return scale / arrays.tan(0.5 * math.pi * (1.0 - noise))


def half_cauchy_log_prob(value: Tensor, scale: Tensor) -> Tensor:
    """log 2 / (π s (1 + (x / s)²)) from 0 on."""
    return inside(value >= 0.0, LOG_2 - LOG_PI - scale.log() - arrays.log1p((value / scale).square()))


def half_cauchy_tails(value: Tensor, scale: Tensor) -> Tails:
    log_unit = LOG_2 - LOG_PI
    return from_smaller(arrays.atan2(value, scale).log() + log_unit, arrays.atan2(scale, value).log() + log_unit)


def half_cauchy_quantile(lower: Tensor, upper: Tensor, scale: Tensor) -> Tensor:
    angle = 0.5 * math.pi * arrays.minimum(lower, upper).exp()
    return scale * arrays.where(lower < upper, arrays.tan(angle), 1.0 / arrays.tan(angle))


HALF_CAUCHY = RuntimeFamily(
    Family(
        "HalfCauchy",
        (SCALE,),
        POSITIVE,
        "uniform",
        "above 0, with a heavy tail: the absolute value of a Cauchy around 0; half of it lies below scale",
    ),
    half_cauchy_log_prob,
    half_cauchy_transform,
    tails=half_cauchy_tails,
    quantile=half_cauchy_quantile,
    standardised=BY_SCALE,
)


def cauchy_transform(noise: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    tail = arrays.minimum(noise, 1.0 - noise)
    return loc + scale * arrays.sign(noise - 0.5) / arrays.tan(math.pi * tail)


def cauchy_log_prob(value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    """−log π s (1 + z²), z = (x − loc) / s."""
    return -LOG_PI - scale.log() - arrays.log1p(((value - loc) / scale).square())


def cauchy_tails(value: Tensor, loc: Tensor, scale: Tensor) -> Tails:
    beyond = value - loc
    return from_smaller(arrays.atan2(scale, -beyond).log() - LOG_PI, arrays.atan2(scale, beyond).log() - LOG_PI)


def cauchy_quantile(lower: Tensor, upper: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    size = 1.0 / arrays.tan(math.pi * arrays.minimum(lower, upper).exp())
    return loc + scale * arrays.where(lower < upper, -size, size)


CAUCHY = RuntimeFamily(
    Family("Cauchy", (LOC, SCALE), REAL, "uniform", "heavy-tailed, without a mean"),
    cauchy_log_prob,
    cauchy_transform,
    tails=cauchy_tails,
    quantile=cauchy_quantile,
    standardised=LOCATION_SCALE,
)


def student_t_draw(shape: Shape, generator: Generator | None, df: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    log_precision = log_gamma_draw(shape, 0.5 * df, generator) - (0.5 * df).log()
    return loc + scale * normals(shape, log_precision, generator) * (-0.5 * log_precision).clamp(max=80.0).exp()


def student_t_log_prob(value: Tensor, df: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    """−(ν + 1) / 2 · log(1 + z² / ν) less the logarithm of s √(νπ) Γ(ν / 2) / Γ((ν + 1) / 2), z = (x − loc) / s."""
    z = (value - loc) / scale
    normaliser = scale.log() + 0.5 * (df.log() + LOG_PI) + arrays.lgamma(0.5 * df) - arrays.lgamma(0.5 * (df + 1.0))
    return -0.5 * (df + 1.0) * arrays.log1p(z.square() / df) - normaliser


def _student_t_link(head: HeadPlan, raw: Tensor) -> Params:
    # df above 1 keeps a mean, and near 4 at the start: heavy tails without wild first gradients
    pieces = head.pieces(raw)
    return 1.0 + 3.0 * positive(pieces["df"]), pieces["loc"], positive(pieces["scale"]) * head.scale


def student_t_tails(value: Tensor, df: Tensor, loc: Tensor, scale: Tensor) -> Tails:
    """Near loc from P(0 < T ≤ z), which is smooth in z there; beyond from P(T > |z|)."""
    z = (value - loc) / scale
    beyond, middle, outer = _student_t_parts(z, df)
    tail, rest = lower_first(outer - LOG_2)
    lower, upper = (arrays.log(0.5 + side) for side in (middle, -middle))
    below = z < 0.0
    return (
        arrays.where(beyond, arrays.where(below, tail, rest), lower),
        arrays.where(beyond, arrays.where(below, rest, tail), upper),
    )


def _student_t_parts(z: Tensor, df: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Where z is far from 0; P(0 < T ≤ z), negative below 0, elsewhere; log P(|T| > |z|) there (zero and one for a
    place that is the other's)."""
    ratio = z.square() / df
    # the tail of the incomplete beta function that is an integral by itself
    beyond = ratio / (1.0 + ratio) > 1.5 / (0.5 * df + 2.5)
    near, far = arrays.where(beyond, 0.0, ratio), arrays.where(beyond, ratio, 1.0)
    half = arrays.full_like(ratio, 0.5)
    log_slope = log_beta_ratio(half, 0.5 * df, near / (1.0 + near), -arrays.log1p(near))
    root = arrays.where(beyond, 0.0, z) * (df * (1.0 + near)).rsqrt()
    outer = beta_tails(0.5 * df, half, -arrays.log1p(far), far.log() - arrays.log1p(far))[0]
    return beyond, 0.5 * root * log_slope.exp(), outer


STUDENT_T = RuntimeFamily(
    Family(
        "StudentT",
        (DF, replace(MEAN, default=0.0), replace(SCALE, default=1.0)),
        REAL,
        "value",
        "Normal with heavy tails; df large is Normal",
    ),
    student_t_log_prob,
    draw=student_t_draw,
    link=_student_t_link,
    tails=student_t_tails,
    standardised=HEAVY_LOCATION_SCALE,
    mean=lambda df, loc, scale: arrays.where(df > 1.0, loc, math.nan),
)


def half_student_t_draw(shape: Shape, generator: Generator | None, df: Tensor, scale: Tensor) -> Tensor:
    return student_t_draw(shape, generator, df, arrays.zeros_like(scale), scale).abs()


def half_student_t_log_prob(value: Tensor, df: Tensor, scale: Tensor) -> Tensor:
    return inside(value >= 0.0, LOG_2 + student_t_log_prob(value, df, arrays.zeros_like(scale), scale))


def _half_student_t_link(head: HeadPlan, raw: Tensor) -> Params:
    pieces = head.pieces(raw)
    return 1.0 + 3.0 * positive(pieces["df"]), positive(pieces["scale"]) * head.scale


def half_student_t_tails(value: Tensor, df: Tensor, scale: Tensor) -> Tails:
    beyond, middle, outer = _student_t_parts(value / scale, df)
    inner = arrays.where(beyond, 0.25, middle)
    rest, tail = upper_first(outer)
    return arrays.where(beyond, rest, (2.0 * inner).log()), arrays.where(beyond, tail, arrays.log1p(-2.0 * inner))


HALF_STUDENT_T = RuntimeFamily(
    Family(
        "HalfStudentT", (DF, replace(SCALE, default=1.0)), POSITIVE, "value", "absolute value of a centred StudentT"
    ),
    half_student_t_log_prob,
    draw=half_student_t_draw,
    link=_half_student_t_link,
    tails=half_student_t_tails,
    standardised=HEAVY_BY_SCALE,
)


def laplace_transform(noise: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    tail = arrays.minimum(noise, 1.0 - noise)
    return loc - scale * arrays.sign(noise - 0.5) * (2.0 * tail).log()


def laplace_log_prob(value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    """−|x − loc| / s − log 2 s."""
    return -(value - loc).abs() / scale - scale.log() - LOG_2


def laplace_tails(value: Tensor, loc: Tensor, scale: Tensor) -> Tails:
    z = (value - loc) / scale
    below = z < 0.0
    # |z| would have no slope at 0
    tail, rest = lower_first(arrays.where(below, z, -z) - LOG_2)
    return arrays.where(below, tail, rest), arrays.where(below, rest, tail)


def laplace_quantile(lower: Tensor, upper: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    return loc + scale * arrays.where(lower < upper, lower + LOG_2, -upper - LOG_2)


LAPLACE = RuntimeFamily(
    Family("Laplace", (MEAN, SCALE), REAL, "uniform", "two exponential tails around loc"),
    laplace_log_prob,
    laplace_transform,
    tails=laplace_tails,
    quantile=laplace_quantile,
    standardised=LOCATION_SCALE,
    mean=lambda loc, scale: loc,
)


def gumbel_transform(noise: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    return loc - scale * (-noise.log()).log()


def gumbel_log_prob(value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    """−z − exp(−z) − log s, z = (x − loc) / s."""
    z = (value - loc) / scale
    return -z - (-z).exp() - scale.log()


def gumbel_tails(value: Tensor, loc: Tensor, scale: Tensor) -> Tails:
    z = (value - loc) / scale
    lower, upper = lower_first(-(-z).clamp(max=700.0).exp())
    # 1 − exp(−t) is t (1 − t/2), t = exp(−z), where t may underflow
    return lower, arrays.where(z > 30.0, -z, upper)


def gumbel_quantile(lower: Tensor, upper: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    # far out the lower tail is 1 but for the upper one, which may underflow: −log(1 − e^u) is e^u
    return loc - scale * arrays.where(upper < -40.0, upper, (-lower).log())


GUMBEL = RuntimeFamily(
    Family("Gumbel", (LOC, SCALE), REAL, "uniform", "maximum of many draws"),
    gumbel_log_prob,
    gumbel_transform,
    tails=gumbel_tails,
    quantile=gumbel_quantile,
    standardised=LOCATION_SCALE,
    mean=lambda loc, scale: loc + EULER * scale,
)


def flat_draw(shape: Shape, generator: Generator | None) -> NoReturn:
    raise InputProblem(
        "Flat has a density everywhere and no draws: sample the posterior by NUTS, or draw from a wide Normal instead"
    )


def flat_log_prob(value: Tensor) -> Tensor:
    return arrays.zeros_like(value)


FLAT = RuntimeFamily(
    Family(
        "Flat",
        (),
        REAL,
        "value",
        "improper: every number is as likely as any other; for NUTS only",
        step_only=True,
        improper=True,
    ),
    flat_log_prob,
    draw=flat_draw,
    reparameterised=False,
)
