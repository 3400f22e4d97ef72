"""Families of probability vectors, on the last axis."""

from __future__ import annotations

from dataclasses import replace

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.runtime.families.densities import inside, normal_log_prob
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.links import Params
from qvr_core.runtime.families.parameters import LOC_VECTOR
from qvr_core.runtime.families.random_draws import Shape, log_gamma_draw
from qvr_core.semantics.language.family import Family, Parameter, Support

SIMPLEX = Support("Simplex")


def _open(value: Tensor) -> tuple[Tensor, Tensor]:
    """A probability vector that is safe to take logarithms of, and where it is one without zeros."""
    ok = (value > 0.0).all(-1) & ((value.sum(-1) - 1.0).abs() < 1e-4)
    return value.clamp(min=arrays.finfo(value.dtype).tiny), ok


def _longest(parameters: Params, event: Shape | None) -> Shape:
    return (max(p.shape[-1] for p in parameters),)


def dirichlet_draw(shape: Shape, generator: Generator | None, concentration: Tensor) -> Tensor:
    """Normalised Gammas in logarithms; `shape` includes the event axis."""
    drawn = log_gamma_draw(shape, concentration, generator).softmax(-1)
    return drawn.clamp(min=arrays.finfo(drawn.dtype).tiny)


def dirichlet_log_prob(value: Tensor, concentration: Tensor) -> Tensor:
    """Σ (aₖ − 1) log xₖ + log Γ(Σ aₖ) − Σ log Γ(aₖ) over the last axis."""
    y, ok = _open(value)
    concentration = concentration.expand_as(y) if concentration.shape[-1] != y.shape[-1] else concentration
    normaliser = arrays.lgamma(concentration.sum(-1)) - arrays.lgamma(concentration).sum(-1)
    return inside(ok, ((concentration - 1.0) * y.log()).sum(-1) + normaliser)


DIRICHLET = RuntimeFamily(
    Family(
        "Dirichlet",
        (Parameter("concentration", "vector", "positive vector", ("alpha",)),),
        SIMPLEX,
        "value",
        "a probability vector",
        event=1,
        open=True,
    ),
    dirichlet_log_prob,
    draw=dirichlet_draw,
    noise_event=_longest,
    mean=lambda concentration: concentration / concentration.sum(-1, keepdim=True),
)


def logistic_normal_transform(noise: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    z = loc + scale * noise
    probabilities = arrays.cat([z, arrays.zeros_like(z[..., :1])], dim=-1).softmax(-1)
    return probabilities.clamp(min=arrays.finfo(probabilities.dtype).tiny)


def logistic_normal_log_prob(value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    """Density of the first k − 1 coordinates (Aitchison & Shen 1980)."""
    y, ok = _open(value)
    log_y = y.log()
    z = log_y[..., :-1] - log_y[..., -1:]
    return inside(ok, normal_log_prob(z, loc, scale).sum(-1) - log_y.sum(-1))


LOGISTIC_NORMAL = RuntimeFamily(
    Family(
        "LogisticNormal",
        (
            replace(LOC_VECTOR, fewer=1),
            Parameter("scale", "vector", "positive vector", ("sigma",), fewer=1),
        ),
        SIMPLEX,
        "normal",
        "a probability vector: softmax of Normals, the last logit fixed at 0",
        event=1,
        open=True,
    ),
    logistic_normal_log_prob,
    logistic_normal_transform,
    noise_event=_longest,
)
