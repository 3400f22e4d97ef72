"""`Flat` on spaces of vectors and matrices: 0 on the space, −∞ off it."""

from __future__ import annotations

from functools import lru_cache

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.runtime.families.covariances import safe_cholesky
from qvr_core.runtime.families.densities import inside
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.heavy_tails import FLAT, flat_draw
from qvr_core.runtime.families.soundness import TOLERANCE
from qvr_core.semantics.language.truncated import FLAT_ON, flat


@lru_cache(maxsize=len(FLAT_ON))
def flat_family(kind: str) -> RuntimeFamily:
    """`Flat` on the space of this kind, `Simplex`, `CholeskyFactor`, `Correlation` or `Covariance`."""
    facts = flat(kind, FLAT.facts)

    def log_prob(value: Tensor) -> Tensor:
        return inside(_within(kind, value), arrays.zeros_like(value.flatten(-facts.event)[..., 0]))

    return RuntimeFamily(
        facts, log_prob, draw=flat_draw, reparameterised=False, noise_event=lambda parameters, event: event
    )


def _within(kind: str, value: Tensor) -> Tensor:
    if kind == "Simplex":
        return (value >= 0.0).all(-1) & ((value.sum(-1) - 1.0).abs() < 1e-3)
    diagonal = value.diagonal(dim1=-2, dim2=-1)
    if kind == "CholeskyFactor":
        ones = (value.square().sum(-1) - 1.0).abs() < TOLERANCE
        return (diagonal > 0.0).all(-1) & ones.all(-1) & (value.triu(1) == 0.0).all(-1).all(-1)
    _, ok = safe_cholesky(value)
    return ok if kind == "Covariance" else ok & ((diagonal - 1.0).abs() < TOLERANCE).all(-1)
