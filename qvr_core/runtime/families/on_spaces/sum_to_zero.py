"""Normals that sum to 0: what `[sum_to_zero]` makes of the numbers over a step's last index."""

from __future__ import annotations

import math

from qvr_core.arrays.engine import Tensor
from qvr_core.runtime.families.bijectors import CONTRASTS
from qvr_core.runtime.families.densities import inside
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.semantics.language.sum_to_zero import FACTS


def log_prob(value: Tensor, scale: Tensor) -> Tensor:
    """The density of n - 1 independent Normals of this scale (…), the coordinates of (…, n) in an orthonormal basis of
    the vectors that sum to 0; -inf off these."""
    free = value.shape[-1] - 1
    density = -0.5 * value.square().sum(-1) / scale.square() - free * (scale.log() + 0.5 * math.log(2.0 * math.pi))
    near = 1e-4 * (1.0 + value.detach().abs().amax(-1))
    return inside(value.detach().mean(-1).abs() < near, density)


def transform(noise: Tensor, scale: Tensor) -> Tensor:
    """Independent Normals (…, n) without their mean."""
    return scale.unsqueeze(-1) * (noise - noise.mean(-1, keepdim=True))


def numbers(parameters: tuple[Tensor, ...], event: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The noise of one draw."""
    return event or None


SUMMING_TO_ZERO = RuntimeFamily(
    FACTS, log_prob, transform, noise_event=numbers, bijector="zero sum", standardised=CONTRASTS
)
