"""Maps between unconstrained numbers and a family's support, with their log Jacobians.

Guides and Markov chains move in unconstrained space.  Bounds may depend on other values of the program, so the map is
made where the family's arguments are known.  Sources: the Stan reference manual, "Constraint transforms".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.arrays.engine import functional as nnf
from qvr_core.arrays.graph import Unsupported
from qvr_core.runtime.families.links import OfParameters, OfValue, Params
from qvr_core.runtime.families.triangular import log_diagonal
from qvr_core.runtime.values.indices import recording

Bound = Tensor | float | None


@dataclass(frozen=True, slots=True)
class Support:
    """Where a family's draws live: `kind` is 'real', 'bounded', 'ordered', 'zero sum', 'simplex', 'cholesky',
    'correlation' (its Cholesky factor), 'correlation matrix' or 'covariance'; the bounds are those of 'bounded' and
    'ordered' (None: unbounded on that side)."""

    kind: str
    low: Bound = None
    high: Bound = None


REAL = Support("real")


def unconstrained_shape(kind: str, event: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of unconstrained numbers for values of shape `event` (plates in front)."""
    if kind in ("simplex", "zero sum"):
        return (*event[:-1], event[-1] - 1)
    if kind in ("covariance", "cholesky"):
        return (*event[:-2], event[-1] * (event[-1] + 1) // 2)
    if kind in ("correlation", "correlation matrix"):
        return (*event[:-2], event[-1] * (event[-1] - 1) // 2)
    return event


def constrain(u: Tensor, support: Support) -> tuple[Tensor, Tensor]:
    """The value and log |∂value/∂u| per row, (B,); the first axis of `u` is the row axis."""
    match support.kind:
        case "real":
            return u, u.new_zeros(u.shape[0])
        case "bounded":
            value, log = _bounded(u, support.low, support.high)
        case "ordered":
            value, log = _ordered(u, support.low, support.high)
        case "zero sum":
            value, log = _zero_sum(u), u.new_zeros(u.shape[0])
        case "simplex":
            value, log = _simplex(u)
        case "covariance":
            value, log = _covariance(u)
        case "cholesky":
            value, log = _cholesky(u)
        case "correlation":
            value, log = _correlation(u)
        case "correlation matrix":
            value, log = _correlation_matrix(u)
        case kind:
            raise ValueError(f"no bijector onto {kind}")
    return value, log.reshape(log.shape[0], -1).sum(-1)


# ---------------------------------------------------------------- intervals


def _ends(low: Bound, high: Bound, like: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The bounds as tensors; None for a side without one."""
    return _end(low, like), _end(high, like)


def _end(bound: Bound, like: Tensor) -> Tensor | None:
    if is_tensor(bound):
        return bound if _is_finite(bound) else None
    return None if bound is None or not math.isfinite(bound) else like.new_tensor(bound)


def _is_finite(bound: Tensor) -> bool:
    """Whether all its numbers are.  While a density is recorded nobody knows of a bound that is itself a latent: it
    counts as finite, and what is recorded is compared with the plain density before it is used."""
    finite = arrays.isfinite(bound).all()
    if not recording():
        return bool(finite)
    try:
        return bool(finite)
    except (RuntimeError, Unsupported):
        return True


def _bounded(u: Tensor, low: Bound, high: Bound) -> tuple[Tensor, Tensor]:
    left, right = _ends(low, high, u)
    if left is not None and right is not None:
        width = right - left
        eps = arrays.finfo(u.dtype).eps
        return left + width * u.sigmoid().clamp(eps, 1.0 - eps), nnf.logsigmoid(u) + nnf.logsigmoid(-u) + width.log()
    if left is not None:
        return left + u.exp(), u
    if right is not None:
        return right - u.exp(), u
    return u, arrays.zeros_like(u)


def _ordered(u: Tensor, low: Bound, high: Bound) -> tuple[Tensor, Tensor]:
    """Ascending vectors on the last axis: each entry above the one before, between bounds the sums of a simplex."""
    left, right = (None if end is None else end.unsqueeze(-1) for end in _ends(low, high, u))
    if left is not None and right is not None:
        parts, log = _simplex(u)
        width = right - left
        return left + width * parts[..., :-1].cumsum(-1), log + (u.shape[-1] * width.log()).squeeze(-1)
    if right is not None:
        # the mirror image of what is bounded below
        mirrored, log = _ordered(u, -right.squeeze(-1), None)
        return -mirrored.flip(-1), log
    steps = u.exp() if left is not None else arrays.cat([u[..., :1], u[..., 1:].exp()], -1)
    start = 0.0 if left is None else left
    return start + steps.cumsum(-1), u[..., int(left is None) :].sum(-1)


def _zero_sum(u: Tensor) -> Tensor:
    """Vectors that sum to 0 by the orthonormal contrasts of Helmert: an isometry onto them."""
    count = arrays.arange(1, u.shape[-1] + 1, dtype=u.dtype, device=u.device)
    contrast = u / (count * (count + 1.0)).sqrt()
    rest = contrast.flip(-1).cumsum(-1).flip(-1)
    return nnf.pad(rest, (0, 1)) - nnf.pad(count * contrast, (1, 0))


# ---------------------------------------------------------------- simplex: stick breaking


def _offsets(u: Tensor) -> Tensor:
    count = u.shape[-1]
    return arrays.arange(count, 0, -1, dtype=u.dtype, device=u.device).log()


def _simplex(u: Tensor) -> tuple[Tensor, Tensor]:
    logits = u - _offsets(u)
    log_taken, log_left = nnf.logsigmoid(logits), nnf.logsigmoid(-logits)
    log_rest = nnf.pad(log_left.cumsum(-1), (1, 0))
    # families of probability vectors have no density at 0, where rounding would take the smallest
    value = (nnf.pad(log_taken, (0, 1)) + log_rest).exp().clamp(min=arrays.finfo(u.dtype).tiny)
    return value, (log_taken + log_left + log_rest[..., :-1]).sum(-1)


# ---------------------------------------------------------------- matrices


def _triangle(count: int) -> int:
    return (math.isqrt(8 * count + 1) - 1) // 2


def _filled(u: Tensor, row: Tensor, column: Tensor, size: int) -> Tensor:
    """Matrices (…, size, size) with the numbers of u (…, n) at the places (row, column), zeros elsewhere."""
    index = arrays.full((size, size), u.shape[-1], device=u.device)
    index[row, column] = arrays.arange(u.shape[-1], device=u.device)
    return nnf.pad(u, (0, 1))[..., index]


def _lower(u: Tensor) -> tuple[Tensor, Tensor]:
    size = _triangle(u.shape[-1])
    row, column = arrays.tril_indices(size, size)
    raw = _filled(u, row, column, size)
    diagonal = raw.diagonal(dim1=-2, dim2=-1)
    return raw.tril(-1) + arrays.diag_embed(diagonal.exp()), diagonal


def _cholesky(u: Tensor) -> tuple[Tensor, Tensor]:
    tril, log_diagonal = _lower(u)
    return tril, log_diagonal.sum(-1)


def _covariance(u: Tensor) -> tuple[Tensor, Tensor]:
    tril, log_diagonal = _lower(u)
    size = tril.shape[-1]
    powers = arrays.arange(size + 1, 1, -1, dtype=u.dtype, device=u.device)
    return tril @ tril.mT, (powers * log_diagonal).sum(-1) + size * math.log(2.0)


def _correlation(u: Tensor) -> tuple[Tensor, Tensor]:
    """Row i of the Cholesky factor from the canonical partial correlations tanh(u)."""
    size = (1 + math.isqrt(1 + 8 * u.shape[-1])) // 2
    row, column = arrays.tril_indices(size, size, -1)
    partial = _filled(u.tanh(), row, column, size)
    # log(1 − tanh²u) = 2 (log 2 − u − softplus(−2u))
    log_left = _filled(math.log(2.0) - u - nnf.softplus(-2.0 * u), row, column, size)
    used = nnf.pad(log_left.cumsum(-1)[..., :-1], (1, 0))
    value = partial * used.exp() + arrays.diag_embed(used.diagonal(dim1=-2, dim2=-1).exp())
    jacobian = (2.0 * log_left + used)[..., row, column].sum(-1)
    return value, jacobian


def _correlation_matrix(u: Tensor) -> tuple[Tensor, Tensor]:
    """R = L Lᵀ of the factor L, |∂R/∂L| = ∏ L_ii^(d − i)."""
    tril, log = _correlation(u)
    size = tril.shape[-1]
    powers = arrays.arange(size - 1, -1, -1, dtype=u.dtype, device=u.device)
    return tril @ tril.mT, log + (powers * tril.diagonal(dim1=-2, dim2=-1).log()).sum(-1)


# ---------------------------------------------------------------- standardised draws


@dataclass(frozen=True, slots=True)
class Standardised:
    """How a draw comes from a standardised one, which is what a sampler moves where a step says `[noncentred]`.

    Its unconstrained number is shift + factor · z, with z distributed as that of a draw with standard parameters: no
    scale of the program is in it (Papaspiliopoulos, Roberts, Sköld 2007, "A general framework for the parametrization
    of hierarchical models").

    `affine(*parameters)` is shift and factor (a lower triangular matrix where `matrix`), `standard(*parameters)` the
    parameters of a draw whose shift is 0 and whose factor is 1; without them the density is that of the value.
    `positive` draws are exp of their numbers.  `shift` is the parameter that is the shift, where there is one that no
    other number is made of.  Where the standardised numbers are the steps of a path, `path(z, *parameters)` is it, with
    log |∂path/∂z|.  `contrasts`: z are the coordinates of a vector that sums to 0, of which `affine` gives a factor for
    all.
    """

    affine: OfParameters[tuple[Tensor, Tensor]]
    standard: OfParameters[Params] | None
    positive: bool = False
    matrix: bool = False
    shift: str | None = None
    path: OfValue[tuple[Tensor, Tensor]] | None = None
    contrasts: bool = False


@dataclass(frozen=True, slots=True)
class Restored:
    """Values with their log density and log |∂value/∂z|, both elementwise."""

    value: Tensor
    log_density: Tensor
    log_jacobian: Tensor


def restored(z: Tensor, how: Standardised, log_prob: OfValue[Tensor], parameters: Params) -> Restored:
    """The values of standardised unconstrained numbers (B, …); the density is that of z, which no small scale blurs."""
    if how.path is not None:
        assert how.standard is not None
        value, log_jacobian = how.path(z, *parameters)
        density = log_prob(z.cumsum(-1), *how.standard(*parameters))
        return Restored(value, density - log_jacobian, log_jacobian.expand(density.shape))
    shift, factor = how.affine(*parameters)
    if how.contrasts:
        assert how.standard is not None
        own = _zero_sum(z)
        log_jacobian = z.shape[-1] * factor.log()
        density = log_prob(own, *how.standard(*parameters))
        return Restored(factor.unsqueeze(-1) * own, density - log_jacobian, log_jacobian.expand(density.shape))
    if how.matrix:
        moved, log_factor = shift + (factor @ z.unsqueeze(-1)).squeeze(-1), log_diagonal(factor)
    else:
        moved, log_factor = shift + factor * z, factor.log()
    value, own = (moved.exp(), z.exp()) if how.positive else (moved, z)
    if how.standard is None:
        density = log_prob(value, *parameters)
        there = value < math.inf
        log_jacobian = log_factor + moved if how.positive else log_factor
        density, log_jacobian = arrays.where(there, density, -math.inf), arrays.where(there, log_jacobian, 0.0)
        return Restored(value, density, log_jacobian.expand(density.shape))
    density = log_prob(own, *how.standard(*parameters))
    log_jacobian = log_factor.expand(density.shape)
    if how.positive:
        # a value beyond all numbers is none: what it would be computed with has no gradient
        there = value < math.inf
        density = arrays.where(there, density + z - moved, -math.inf)
        log_jacobian = arrays.where(there, log_jacobian + moved, 0.0)
    return Restored(value, density - log_factor, log_jacobian)


def _location_scale(loc: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    return loc, scale


def _standard(loc: Tensor, scale: Tensor) -> Params:
    return arrays.zeros_like(loc), arrays.ones_like(scale)


LOCATION_SCALE = Standardised(_location_scale, _standard, shift="loc")
LOG_LOCATION_SCALE = Standardised(_location_scale, _standard, positive=True, shift="loc")
HEAVY_LOCATION_SCALE = Standardised(
    lambda df, loc, scale: (loc, scale), lambda df, loc, scale: (df, *_standard(loc, scale)), shift="loc"
)
BY_SCALE = Standardised(
    lambda scale: (scale.log(), arrays.ones_like(scale)), lambda scale: (arrays.ones_like(scale),), positive=True
)
HEAVY_BY_SCALE = Standardised(
    lambda df, scale: (scale.log(), arrays.ones_like(scale)),
    lambda df, scale: (df, arrays.ones_like(scale)),
    positive=True,
)
BY_RATE = Standardised(
    lambda rate: (-rate.log(), arrays.ones_like(rate)), lambda rate: (arrays.ones_like(rate),), positive=True
)
CONTRASTS = Standardised(
    lambda scale: (arrays.zeros_like(scale), scale), lambda scale: (arrays.ones_like(scale),), contrasts=True
)
TRIANGULAR = Standardised(
    lambda loc, tril: (loc, tril),
    lambda loc, tril: (arrays.zeros_like(loc), arrays.eye(tril.shape[-1], dtype=tril.dtype, device=tril.device)),
    matrix=True,
)
