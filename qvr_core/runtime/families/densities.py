"""What densities share: constants, supports, and the Normal."""

from __future__ import annotations

import math

from qvr_core.arrays.engine import Tensor, arrays

LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
LOG_PI = math.log(math.pi)
LOG_2 = math.log(2.0)


def inside(ok: Tensor, density: Tensor) -> Tensor:
    """`density` on the support, −∞ off it."""
    return arrays.where(ok, density, -math.inf)


def clamped_unit(value: Tensor) -> Tensor:
    """A draw that rounding has not taken to an end of (0, 1), where it would have no density."""
    return value.clamp(arrays.finfo(value.dtype).tiny, 1.0 - arrays.finfo(value.dtype).eps)


def open_unit(value: Tensor) -> tuple[Tensor, Tensor]:
    """A value where it lies in (0, 1), something else in there where it does not; and where it does."""
    ok = (value > 0.0) & (value < 1.0)
    return arrays.where(ok, value, 0.5), ok


def normal_log_prob(value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    return -0.5 * ((value - loc) / scale).square() - scale.log() - LOG_SQRT_2PI
