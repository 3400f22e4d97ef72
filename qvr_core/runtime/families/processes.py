"""Vectors whose entries depend on their neighbours: random walks."""

from __future__ import annotations

import torch
from torch import Tensor

from qvr_core.runtime.families.densities import normal_log_prob
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.parameters import REAL, SCALE
from qvr_core.semantics.language.family import Family, Parameter


def random_walk_transform(noise: Tensor, scale: Tensor, drift: Tensor, start: Tensor) -> Tensor:
    steps = torch.arange(noise.shape[-1], dtype=noise.dtype, device=noise.device)
    return start.unsqueeze(-1) + drift.unsqueeze(-1) * steps + scale.unsqueeze(-1) * noise.cumsum(-1)


def random_walk_log_prob(value: Tensor, scale: Tensor, drift: Tensor, start: Tensor) -> Tensor:
    """x₁ ~ Normal(start, scale), x_t ~ Normal(x_(t−1) + drift, scale)."""
    first = normal_log_prob(value[..., 0], start, scale)
    steps = normal_log_prob(value[..., 1:] - value[..., :-1], drift.unsqueeze(-1), scale.unsqueeze(-1))
    return first + steps.sum(-1)


GAUSSIAN_RANDOM_WALK = RuntimeFamily(
    Family(
        "GaussianRandomWalk",
        (SCALE, Parameter("drift", aliases=("mu",), default=0.0), Parameter("start", aliases=("init",), default=0.0)),
        REAL,
        "normal",
        "a path from Normal(start, scale) by steps of Normal(drift, scale); its length comes from the type or `over`",
        event=1,
        step_only=True,
    ),
    random_walk_log_prob,
    random_walk_transform,
    noise_event=lambda parameters, event: event or None,
)
