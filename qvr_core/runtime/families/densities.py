"""What densities share: constants, supports, and the Normal."""

from __future__ import annotations

import math

import torch
from torch import Tensor

LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
LOG_PI = math.log(math.pi)
LOG_2 = math.log(2.0)


def inside(ok: Tensor, density: Tensor) -> Tensor:
    """`density` on the support, −∞ off it."""
    return torch.where(ok, density, -math.inf)


def clamped_unit(value: Tensor) -> tuple[Tensor, Tensor]:
    """A value clamped inside (0, 1), and where it was in [0, 1] to begin with."""
    eps = torch.finfo(value.dtype).eps
    return value.clamp(eps, 1.0 - eps), (value >= 0.0) & (value <= 1.0)


def normal_log_prob(value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    return -0.5 * ((value - loc) / scale).square() - scale.log() - LOG_SQRT_2PI
