"""Cholesky factors and inverses of matrices that may have none.

Where a sampler or an optimiser tries positions, a matrix that is not positive definite has a density of none, not an
error: its factor is NaN, and the proposal is refused.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from qvr_core.arrays.engine import Tensor, arrays, broadcasting, linalg

_trying: ContextVar[bool] = ContextVar("trying", default=False)


@contextmanager
def trying() -> Generator[None]:
    """Inside, a matrix without a factor or an inverse gives NaN instead of an error."""
    token = _trying.set(True)
    try:
        yield
    finally:
        _trying.reset(token)


def cholesky(matrix: Tensor) -> Tensor:
    """The lower factor of (…, n, n) positive definite matrices."""
    if not _trying.get():
        return linalg.cholesky(matrix)
    factor, failed = linalg.cholesky_ex(matrix)
    return arrays.where((failed != 0)[..., None, None], arrays.nan, factor)


_HALVINGS, _TERMS = 16, 14
LARGEST_NORM = 2.0 ** (_HALVINGS - 1)
"""The largest sum of absolute values of a row of a matrix whose exponential is computed."""


def matrix_exp(matrix: Tensor) -> Tensor:
    """The exponential of (…, n, n) matrices; NaN where a row's absolute values sum to more than `LARGEST_NORM`.

    By scaling and squaring (Moler & Van Loan 2003, method 3) of e^X − I, in which small numbers keep their digits.  The
    number of halvings is the same for all matrices, so that it is no matter of what a latent is.
    """
    identity = arrays.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    small = matrix * 2.0**-_HALVINGS
    term = identity.expand(matrix.shape)
    for k in range(_TERMS, 1, -1):
        term = identity + (small @ term) / k
    rest = small @ term
    for _ in range(_HALVINGS):
        rest = 2.0 * rest + rest @ rest
    within = matrix.detach().abs().sum(-1).amax(-1) <= LARGEST_NORM
    return arrays.where(within[..., None, None], identity + rest, arrays.nan)


def solve_lower(factor: Tensor, right: Tensor) -> Tensor:
    """The X with L X = B for the lower triangles L of (…, n, n) and B (…, n, m), whose leading axes broadcast."""
    lead = broadcasting.broadcast_shapes(factor.shape[:-2], right.shape[:-2])
    return linalg.solve_triangular(
        factor.expand(*lead, *factor.shape[-2:]), right.expand(*lead, *right.shape[-2:]), upper=False
    )


_TIE = 1.0 - 1e-8


def eigh(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """The eigenvalues (…, n), ascending, and the eigenvectors (…, n, n), in columns, of symmetric matrices, of which
    the lower triangle is read.

    The largest entry of each vector is positive, the first where others are as large.  Vectors of equal values are any
    of those that there are, and have no derivative.
    """
    values, vectors = linalg.eigh(matrix)
    sizes = vectors.detach().abs()
    large = (sizes >= _TIE * sizes.amax(-2, keepdim=True)).to(vectors.dtype)
    first = large * (large.cumsum(-2) == 1.0)
    return values, vectors * (vectors.detach() * first).sum(-2, keepdim=True).sign()


def inverse(matrix: Tensor) -> Tensor:
    """The inverse of (…, n, n) matrices."""
    if not _trying.get():
        return linalg.inv(matrix)
    inverted, failed = linalg.inv_ex(matrix)
    return arrays.where((failed != 0)[..., None, None], arrays.nan, inverted)
