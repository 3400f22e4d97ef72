"""Mixtures of Normals, of infinitely many or of some."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Generator, Tensor

from qvr_core.runtime.families.cumulative.tails import Tails, mixed, normal_tails
from qvr_core.runtime.families.densities import LOG_PI, LOG_SQRT_2PI, normal_log_prob
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.links import HeadPlan, Params, positive
from qvr_core.runtime.families.noise import Shape, normals, open_uniforms
from qvr_core.runtime.families.parameters import CLASS_PROBS, REAL, SCALE
from qvr_core.semantics.language.family import Family, Parameter


def horseshoe_draw(shape: Shape, generator: Generator | None, scale: Tensor) -> Tensor:
    local = 1.0 / torch.tan(0.5 * math.pi * (1.0 - open_uniforms(shape, scale, generator)))
    return scale * local * normals(shape, scale, generator)


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


HORSESHOE = RuntimeFamily(
    Family(
        "Horseshoe", (replace(SCALE, default=1.0),), REAL, "value", "sparse: a Normal with a HalfCauchy local scale"
    ),
    horseshoe_log_prob,
    draw=horseshoe_draw,
)


def mixture_normal_draw(
    shape: Shape, generator: Generator | None, logits: Tensor, locs: Tensor, scales: Tensor
) -> Tensor:
    count = locs.shape[-1]
    noise = open_uniforms((*shape, count), locs, generator)
    choice = (logits.detach() - (-noise.log()).log()).argmax(-1, keepdim=True)
    loc = locs.expand(*shape, count).gather(-1, choice).squeeze(-1)
    scale = scales.expand(*shape, count).gather(-1, choice).squeeze(-1)
    return loc + scale * normals(shape, loc, generator)


def mixture_normal_log_prob(value: Tensor, logits: Tensor, locs: Tensor, scales: Tensor) -> Tensor:
    each = torch.log_softmax(logits, -1) + normal_log_prob(value.unsqueeze(-1), locs, scales)
    return torch.logsumexp(each, -1)


def mixture_normal_tails(value: Tensor, logits: Tensor, locs: Tensor, scales: Tensor) -> Tails:
    return mixed(normal_tails((value.unsqueeze(-1) - locs) / scales), torch.log_softmax(logits, -1))


def _mixture_normal_link(head: HeadPlan, raw: Tensor) -> Params:
    shape = (head.event_shape[0], -1)
    weights, locs, scales = (piece.unflatten(-1, shape) for piece in head.pieces(raw).values())
    return weights, locs, positive(scales) * head.scale


MIXTURE_NORMAL = RuntimeFamily(
    Family(
        "MixtureNormal",
        (
            replace(CLASS_PROBS, name="weights", aliases=("probs", "w"), raw="components"),
            Parameter("locs", "vector", "real", ("loc", "means", "mu"), raw="components"),
            Parameter("scales", "vector", "positive vector", ("scale", "stds", "sigma"), raw="components"),
        ),
        REAL,
        "value",
        "a mixture of Normals, components along the last axis",
        head_options={"components": 2},
    ),
    mixture_normal_log_prob,
    draw=mixture_normal_draw,
    reparameterised=False,  # a component is chosen
    link=_mixture_normal_link,
    tails=mixture_normal_tails,
)
