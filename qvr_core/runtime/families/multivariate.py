"""Normals of vectors and matrices.  Vectors live on the last axis, matrices on the last two."""

from __future__ import annotations

from qvr_core.arrays.engine import Tensor, arrays, broadcasting, linalg
from qvr_core.runtime.families.bijectors import TRIANGULAR
from qvr_core.runtime.families.densities import LOG_SQRT_2PI
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.links import HeadPlan, Params, positive, triangular
from qvr_core.runtime.families.parameters import MEAN_VECTOR, REAL, SCALE_TRIL
from qvr_core.runtime.families.random_draws import Shape
from qvr_core.runtime.families.triangular import log_diagonal, solve
from qvr_core.runtime.values.decompositions import cholesky
from qvr_core.semantics.language.family import Family, Parameter


def multivariate_normal_transform(noise: Tensor, loc: Tensor, scale_tril: Tensor) -> Tensor:
    return loc + (scale_tril @ noise.unsqueeze(-1)).squeeze(-1)


def multivariate_normal_log_prob(value: Tensor, loc: Tensor, scale_tril: Tensor) -> Tensor:
    """−½ |L⁻¹(x − μ)|² − Σ log Lᵢᵢ − d / 2 · log 2π, with the covariance L Lᵀ."""
    z = solve(scale_tril, value - loc)
    return -0.5 * z.square().sum(-1) - log_diagonal(scale_tril) - value.shape[-1] * LOG_SQRT_2PI


def _multivariate_normal_link(head: HeadPlan, raw: Tensor) -> Params:
    pieces = head.pieces(raw)
    return pieces["loc"], triangular(pieces["scale_tril"], head.event_shape[0], head.scale)


MULTIVARIATE_NORMAL = RuntimeFamily(
    Family("MultivariateNormal", (MEAN_VECTOR, SCALE_TRIL), REAL, "normal", "correlated Normals", event=1),
    multivariate_normal_log_prob,
    multivariate_normal_transform,
    link=_multivariate_normal_link,
    noise_event=lambda parameters, event: (parameters[1].shape[-1],),
    standardised=TRIANGULAR,
    mean=lambda loc, scale_tril: loc,
)


def low_rank_transform(noise: Tensor, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor) -> Tensor:
    """`noise` (…, d + r): d for the diagonal, r for the factor."""
    width = cov_diag.shape[-1]
    return loc + cov_diag.sqrt() * noise[..., :width] + (cov_factor @ noise[..., width:].unsqueeze(-1)).squeeze(-1)


def low_rank_log_prob(value: Tensor, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor) -> Tensor:
    """By the matrix inversion and determinant lemmas: O(d r²)."""
    weighted = cov_factor / cov_diag.unsqueeze(-1)
    rank = cov_factor.shape[-1]
    inner = weighted.mT @ cov_factor + arrays.eye(rank, dtype=value.dtype, device=value.device)
    tril = cholesky(inner)
    difference = value - loc
    projected = solve(tril, (weighted.mT @ difference.unsqueeze(-1)).squeeze(-1))
    mahalanobis = (difference.square() / cov_diag).sum(-1) - projected.square().sum(-1)
    log_determinant = cov_diag.log().sum(-1) + 2.0 * log_diagonal(tril)
    return -0.5 * (mahalanobis + log_determinant) - value.shape[-1] * LOG_SQRT_2PI


def _low_rank_link(head: HeadPlan, raw: Tensor) -> Params:
    pieces = head.pieces(raw)
    size = head.event_shape[0]
    return pieces["loc"], arrays.unflatten(pieces["cov_factor"], -1, (size, -1)), positive(pieces["cov_diag"])


def _low_rank_noise(parameters: Params, event: Shape | None) -> Shape:
    size, rank = parameters[1].shape[-2:]
    return (size + rank,)


LOW_RANK = RuntimeFamily(
    Family(
        "LowRankMultivariateNormal",
        (
            MEAN_VECTOR,
            Parameter("cov_factor", "matrix", "real", ("factor",), raw="rank"),
            Parameter("cov_diag", "vector", "positive vector", ("diag",)),
        ),
        REAL,
        "normal",
        "correlated Normals with covariance factor · factorᵀ + diag",
        event=1,
        head_options={"rank": 1},
    ),
    low_rank_log_prob,
    low_rank_transform,
    link=_low_rank_link,
    noise_event=_low_rank_noise,
)


def matrix_normal_transform(noise: Tensor, loc: Tensor, row_tril: Tensor, column_tril: Tensor) -> Tensor:
    return loc + row_tril @ noise @ column_tril.mT


def matrix_normal_log_prob(value: Tensor, loc: Tensor, row_tril: Tensor, column_tril: Tensor) -> Tensor:
    """That of vec(x), whose covariance is the Kronecker product of those of columns and rows."""
    rows, columns = value.shape[-2:]
    difference = value - loc
    lead = broadcasting.broadcast_shapes(difference.shape[:-2], row_tril.shape[:-2], column_tril.shape[:-2])
    z = linalg.solve_triangular(
        row_tril.expand(*lead, rows, rows), difference.expand(*lead, rows, columns), upper=False
    )
    z = linalg.solve_triangular(column_tril.expand(*lead, columns, columns), z.mT, upper=False)
    log_scale = columns * log_diagonal(row_tril) + rows * log_diagonal(column_tril)
    return -0.5 * z.square().sum((-2, -1)) - log_scale - rows * columns * LOG_SQRT_2PI


def _matrix_normal_link(head: HeadPlan, raw: Tensor) -> Params:
    pieces = head.pieces(raw)
    rows, columns = head.event_shape
    return (
        arrays.unflatten(pieces["loc"], -1, (rows, columns)),
        triangular(pieces["row_scale_tril"], rows, head.scale),
        triangular(pieces["column_scale_tril"], columns, 1.0),
    )


MATRIX_NORMAL = RuntimeFamily(
    Family(
        "MatrixNormal",
        (
            Parameter("loc", "matrix", "real", ("mu", "mean")),
            Parameter(
                "row_scale_tril", "matrix", "lower triangular", ("row_scale", "row_cov_tril"), raw="row triangle"
            ),
            Parameter(
                "column_scale_tril",
                "matrix",
                "lower triangular",
                ("col_scale_tril", "col_scale"),
                raw="column triangle",
            ),
        ),
        REAL,
        "normal",
        "a matrix whose rows and columns are correlated",
        event=2,
    ),
    matrix_normal_log_prob,
    matrix_normal_transform,
    link=_matrix_normal_link,
    noise_event=lambda parameters, event: (parameters[1].shape[-1], parameters[2].shape[-1]),
)
