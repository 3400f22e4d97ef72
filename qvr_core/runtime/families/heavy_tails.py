"""Families with heavier tails than the Normal's, around a location or above 0."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Generator, Tensor

from qvr_core.runtime.families.densities import LOG_2, LOG_PI, inside
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.links import HeadPlan, Params, positive
from qvr_core.runtime.families.noise import Shape, log_gamma_draw, normals
from qvr_core.runtime.families.parameters import DF, LOC, POSITIVE, REAL, SCALE
from qvr_core.semantics.language.family import Family


def half_cauchy_transform(noise: Tensor, scale: Tensor) -> Tensor:
    return scale / torch.tan(0.5 * math.pi * (1.0 - noise))


def half_cauchy_log_prob(value: Tensor, scale: Tensor) -> Tensor:
    return inside(value >= 0.0, LOG_2 - LOG_PI - scale.log() - torch.log1p((value / scale).square()))


HALF_CAUCHY = RuntimeFamily(
    Family("HalfCauchy", (SCALE,), POSITIVE, "uniform", "absolute value of a centred Cauchy"),
    half_cauchy_log_prob,
    half_cauchy_transform,
)


def cauchy_transform(noise: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    tail = torch.minimum(noise, 1.0 - noise)
    return loc + scale * torch.sign(noise - 0.5) / torch.tan(math.pi * tail)


def cauchy_log_prob(value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    return -LOG_PI - scale.log() - torch.log1p(((value - loc) / scale).square())


CAUCHY = RuntimeFamily(
    Family("Cauchy", (LOC, SCALE), REAL, "uniform", "heavy-tailed, without a mean"),
    cauchy_log_prob,
    cauchy_transform,
)


def student_t_draw(shape: Shape, generator: Generator | None, df: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    log_precision = log_gamma_draw(shape, 0.5 * df, generator) - (0.5 * df).log()
    return loc + scale * normals(shape, log_precision, generator) * (-0.5 * log_precision).clamp(max=80.0).exp()


def student_t_log_prob(value: Tensor, df: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    z = (value - loc) / scale
    normaliser = scale.log() + 0.5 * (df.log() + LOG_PI) + torch.lgamma(0.5 * df) - torch.lgamma(0.5 * (df + 1.0))
    return -0.5 * (df + 1.0) * torch.log1p(z.square() / df) - normaliser


def _student_t_link(head: HeadPlan, raw: Tensor) -> Params:
    # df above 1 keeps a mean, and near 4 at the start: heavy tails without wild first gradients
    pieces = head.pieces(raw)
    return 1.0 + 3.0 * positive(pieces["df"]), pieces["loc"], positive(pieces["scale"]) * head.scale


STUDENT_T = RuntimeFamily(
    Family(
        "StudentT",
        (DF, replace(LOC, default=0.0), replace(SCALE, default=1.0)),
        REAL,
        "value",
        "Normal with heavy tails; df large is Normal",
    ),
    student_t_log_prob,
    draw=student_t_draw,
    link=_student_t_link,
)


def half_student_t_draw(shape: Shape, generator: Generator | None, df: Tensor, scale: Tensor) -> Tensor:
    return student_t_draw(shape, generator, df, torch.zeros_like(scale), scale).abs()


def half_student_t_log_prob(value: Tensor, df: Tensor, scale: Tensor) -> Tensor:
    return inside(value >= 0.0, LOG_2 + student_t_log_prob(value, df, torch.zeros_like(scale), scale))


def _half_student_t_link(head: HeadPlan, raw: Tensor) -> Params:
    pieces = head.pieces(raw)
    return 1.0 + 3.0 * positive(pieces["df"]), positive(pieces["scale"]) * head.scale


HALF_STUDENT_T = RuntimeFamily(
    Family(
        "HalfStudentT", (DF, replace(SCALE, default=1.0)), POSITIVE, "value", "absolute value of a centred StudentT"
    ),
    half_student_t_log_prob,
    draw=half_student_t_draw,
    link=_half_student_t_link,
)


def laplace_transform(noise: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    tail = torch.minimum(noise, 1.0 - noise)
    return loc - scale * torch.sign(noise - 0.5) * (2.0 * tail).log()


def laplace_log_prob(value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    return -(value - loc).abs() / scale - scale.log() - LOG_2


LAPLACE = RuntimeFamily(
    Family("Laplace", (LOC, SCALE), REAL, "uniform", "two exponential tails around loc"),
    laplace_log_prob,
    laplace_transform,
)


def gumbel_transform(noise: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    return loc - scale * (-noise.log()).log()


def gumbel_log_prob(value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    z = (value - loc) / scale
    return -z - (-z).exp() - scale.log()


GUMBEL = RuntimeFamily(
    Family("Gumbel", (LOC, SCALE), REAL, "uniform", "maximum of many draws"),
    gumbel_log_prob,
    gumbel_transform,
)
