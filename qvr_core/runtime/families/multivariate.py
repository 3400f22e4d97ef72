"""Vector and matrix families.  Vectors live on the last axis, matrices on the last two."""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

from qvr_core.runtime.families.continuous import LOG_PI, LOG_SQRT_2PI, inside, normal_log_prob
from qvr_core.runtime.families.standardless import beta_draw, log_gamma_draw
from qvr_core.runtime.values.decompositions import cholesky

Shape = tuple[int, ...]


# ---------------------------------------------------------------- simplex


def dirichlet_draw(shape: Shape, generator: Generator | None, concentration: Tensor) -> Tensor:
    """Normalised Gammas in logarithms; `shape` includes the event axis."""
    drawn = log_gamma_draw(shape, concentration, generator).softmax(-1)
    return drawn.clamp(min=torch.finfo(drawn.dtype).tiny)


def dirichlet_log_prob(value: Tensor, concentration: Tensor) -> Tensor:
    ok = (value >= 0.0).all(-1) & ((value.sum(-1) - 1.0).abs() < 1e-4)
    y = value.clamp(min=torch.finfo(value.dtype).tiny)
    concentration = concentration.expand_as(y) if concentration.shape[-1] != y.shape[-1] else concentration
    normaliser = torch.lgamma(concentration.sum(-1)) - torch.lgamma(concentration).sum(-1)
    return inside(ok, ((concentration - 1.0) * y.log()).sum(-1) + normaliser)


def logistic_normal_transform(noise: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    z = loc + scale * noise
    return torch.cat([z, torch.zeros_like(z[..., :1])], dim=-1).softmax(-1)


def logistic_normal_log_prob(value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    """Density of the first k − 1 coordinates (Aitchison & Shen 1980)."""
    ok = (value >= 0.0).all(-1) & ((value.sum(-1) - 1.0).abs() < 1e-4)
    log_y = value.clamp(min=torch.finfo(value.dtype).tiny).log()
    z = log_y[..., :-1] - log_y[..., -1:]
    return inside(ok, normal_log_prob(z, loc, scale).sum(-1) - log_y.sum(-1))


# ---------------------------------------------------------------- multivariate Normal


def _log_diagonal(tril: Tensor) -> Tensor:
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _solve(tril: Tensor, vector: Tensor) -> Tensor:
    """tril⁻¹ · vector over broadcast leading axes."""
    lead = torch.broadcast_shapes(tril.shape[:-2], vector.shape[:-1])
    size = vector.shape[-1]
    right = vector.expand(*lead, size).unsqueeze(-1)
    return torch.linalg.solve_triangular(tril.expand(*lead, size, size), right, upper=False).squeeze(-1)


def multivariate_normal_transform(noise: Tensor, loc: Tensor, scale_tril: Tensor) -> Tensor:
    return loc + (scale_tril @ noise.unsqueeze(-1)).squeeze(-1)


def multivariate_normal_log_prob(value: Tensor, loc: Tensor, scale_tril: Tensor) -> Tensor:
    z = _solve(scale_tril, value - loc)
    return -0.5 * z.square().sum(-1) - _log_diagonal(scale_tril) - value.shape[-1] * LOG_SQRT_2PI


def low_rank_transform(noise: Tensor, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor) -> Tensor:
    """`noise` (…, d + r): d for the diagonal, r for the factor."""
    width = cov_diag.shape[-1]
    return loc + cov_diag.sqrt() * noise[..., :width] + (cov_factor @ noise[..., width:].unsqueeze(-1)).squeeze(-1)


def low_rank_log_prob(value: Tensor, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor) -> Tensor:
    """By the matrix inversion and determinant lemmas: O(d r²)."""
    weighted = cov_factor / cov_diag.unsqueeze(-1)
    rank = cov_factor.shape[-1]
    inner = weighted.mT @ cov_factor + torch.eye(rank, dtype=value.dtype, device=value.device)
    tril = cholesky(inner)
    difference = value - loc
    projected = _solve(tril, (weighted.mT @ difference.unsqueeze(-1)).squeeze(-1))
    mahalanobis = (difference.square() / cov_diag).sum(-1) - projected.square().sum(-1)
    log_determinant = cov_diag.log().sum(-1) + 2.0 * _log_diagonal(tril)
    return -0.5 * (mahalanobis + log_determinant) - value.shape[-1] * LOG_SQRT_2PI


def matrix_normal_transform(noise: Tensor, loc: Tensor, row_tril: Tensor, column_tril: Tensor) -> Tensor:
    return loc + row_tril @ noise @ column_tril.mT


def matrix_normal_log_prob(value: Tensor, loc: Tensor, row_tril: Tensor, column_tril: Tensor) -> Tensor:
    rows, columns = value.shape[-2:]
    difference = value - loc
    lead = torch.broadcast_shapes(difference.shape[:-2], row_tril.shape[:-2], column_tril.shape[:-2])
    z = torch.linalg.solve_triangular(
        row_tril.expand(*lead, rows, rows), difference.expand(*lead, rows, columns), upper=False
    )
    z = torch.linalg.solve_triangular(column_tril.expand(*lead, columns, columns), z.mT, upper=False)
    log_scale = columns * _log_diagonal(row_tril) + rows * _log_diagonal(column_tril)
    return -0.5 * z.square().sum((-2, -1)) - log_scale - rows * columns * LOG_SQRT_2PI


# ---------------------------------------------------------------- covariance matrices


def _bartlett(shape: Shape, df: Tensor, generator: Generator | None) -> Tensor:
    """Lower triangular A with A Aᵀ ~ Wishart(df, I); `shape` ends in (d, d)."""
    size = shape[-1]
    below = torch.randn(shape, generator=generator, dtype=df.dtype, device=df.device).tril(-1)
    halves = 0.5 * (df.unsqueeze(-1) - torch.arange(size, dtype=df.dtype, device=df.device))
    log_chi2 = log_gamma_draw((*shape[:-2], size), halves, generator) + math.log(2.0)
    return below + torch.diag_embed((0.5 * log_chi2).exp())


def _multigammaln(a: Tensor, size: int) -> Tensor:
    steps = 0.5 * torch.arange(size, dtype=a.dtype, device=a.device)
    return size * (size - 1) / 4.0 * LOG_PI + torch.lgamma(a.unsqueeze(-1) - steps).sum(-1)


def _safe_cholesky(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """The Cholesky factor and where there is one."""
    tril, info = torch.linalg.cholesky_ex(matrix)
    ok = info == 0
    identity = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return torch.where(ok[..., None, None], tril, identity), ok


def wishart_draw(shape: Shape, generator: Generator | None, df: Tensor, scale_tril: Tensor) -> Tensor:
    factor = scale_tril @ _bartlett(shape, df, generator)
    return factor @ factor.mT


def wishart_log_prob(value: Tensor, df: Tensor, scale_tril: Tensor) -> Tensor:
    size = value.shape[-1]
    tril, ok = _safe_cholesky(value)
    lead = torch.broadcast_shapes(tril.shape[:-2], scale_tril.shape[:-2])
    z = torch.linalg.solve_triangular(scale_tril.expand(*lead, size, size), tril.expand(*lead, size, size), upper=False)
    density = (
        (df - size - 1.0) * _log_diagonal(tril)
        - 0.5 * z.square().sum((-2, -1))
        - 0.5 * df * size * math.log(2.0)
        - df * _log_diagonal(scale_tril)
        - _multigammaln(0.5 * df, size)
    )
    return inside(ok, density)


def inverse_wishart_draw(shape: Shape, generator: Generator | None, df: Tensor, scale_tril: Tensor) -> Tensor:
    """X = M Mᵀ with M = L A⁻ᵀ: X⁻¹ is Wishart(df, Ψ⁻¹), Ψ = L Lᵀ."""
    bartlett = _bartlett(shape, df, generator)
    lead = torch.broadcast_shapes(bartlett.shape[:-2], scale_tril.shape[:-2])
    size = shape[-1]
    factor = torch.linalg.solve_triangular(
        bartlett.expand(*lead, size, size), scale_tril.mT.expand(*lead, size, size), upper=False
    )
    return factor.mT @ factor


def inverse_wishart_log_prob(value: Tensor, df: Tensor, scale_tril: Tensor) -> Tensor:
    size = value.shape[-1]
    tril, ok = _safe_cholesky(value)
    lead = torch.broadcast_shapes(tril.shape[:-2], scale_tril.shape[:-2])
    z = torch.linalg.solve_triangular(tril.expand(*lead, size, size), scale_tril.expand(*lead, size, size), upper=False)
    density = (
        df * _log_diagonal(scale_tril)
        - 0.5 * df * size * math.log(2.0)
        - _multigammaln(0.5 * df, size)
        - (df + size + 1.0) * _log_diagonal(tril)
        - 0.5 * z.square().sum((-2, -1))
    )
    return inside(ok, density)


# ---------------------------------------------------------------- correlations


def lkj_cholesky_draw(shape: Shape, generator: Generator | None, concentration: Tensor) -> Tensor:
    """The onion method (Lewandowski, Kurowicka & Joe 2009): row i has squared length Beta(i/2, η + (d − 1 − i)/2)
    before the diagonal, in a uniform direction."""
    size = shape[-1]
    lead = shape[:-2]
    if size == 1:
        return torch.ones(shape, dtype=concentration.dtype, device=concentration.device)
    steps = torch.arange(1, size, dtype=concentration.dtype, device=concentration.device)
    b = concentration.expand(lead).unsqueeze(-1) + 0.5 * (size - 1 - steps)
    squared = beta_draw((*lead, size - 1), generator, 0.5 * steps, b)
    normals = torch.randn(
        (*lead, size - 1, size - 1), generator=generator, dtype=concentration.dtype, device=concentration.device
    ).tril()
    direction = normals / normals.norm(dim=-1, keepdim=True)
    below = torch.nn.functional.pad(squared.sqrt().unsqueeze(-1) * direction, (0, 1, 1, 0))
    diagonal = torch.cat([torch.ones_like(squared[..., :1]), (1.0 - squared).sqrt()], dim=-1)
    return below + torch.diag_embed(diagonal)


def lkj_cholesky_log_prob(value: Tensor, concentration: Tensor) -> Tensor:
    """p(L) ∝ ∏ L_ii^(d − i + 2(η − 1)), i = 2 … d (Stan's reference manual)."""
    size = value.shape[-1]
    diagonal = value.diagonal(dim1=-2, dim2=-1)[..., 1:]
    ok = ((value.square().sum(-1) - 1.0).abs() < 1e-4).all(-1) & (diagonal > 0.0).all(-1)
    order = torch.arange(2, size + 1, dtype=value.dtype, device=value.device)
    powers = 2.0 * (concentration.unsqueeze(-1) - 1.0) + size - order
    unnormalised = (powers * diagonal.clamp(min=torch.finfo(value.dtype).tiny).log()).sum(-1)
    # the normaliser of page 1999 of the same paper, as in torch
    alpha = concentration + 0.5 * (size - 1)
    numerator = _multigammaln(alpha - 0.5, size - 1) if size > 1 else torch.zeros_like(alpha)
    normaliser = 0.5 * (size - 1) * LOG_PI + numerator - torch.lgamma(alpha) * (size - 1)
    return inside(ok, unnormalised - normaliser)
