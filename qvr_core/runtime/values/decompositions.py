"""Cholesky factors and inverses of matrices that may have none.

Where a sampler or an optimiser tries positions, a matrix that is not positive definite has a density of none, not an
error: its factor is NaN, and the proposal is refused.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from qvr_core.arrays.engine import Tensor, arrays, linalg

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


def inverse(matrix: Tensor) -> Tensor:
    """The inverse of (…, n, n) matrices."""
    if not _trying.get():
        return linalg.inv(matrix)
    inverted, failed = linalg.inv_ex(matrix)
    return arrays.where((failed != 0)[..., None, None], arrays.nan, inverted)
