"""Lower triangular matrices, on the last two axes."""

from __future__ import annotations

from qvr_core.arrays.engine import Tensor, broadcasting, linalg


def log_diagonal(tril: Tensor) -> Tensor:
    """log of the determinant."""
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def solve(tril: Tensor, vector: Tensor) -> Tensor:
    """tril⁻¹ · vector over broadcast leading axes."""
    lead = broadcasting.broadcast_shapes(tril.shape[:-2], vector.shape[:-1])
    size = vector.shape[-1]
    right = vector.expand(*lead, size).unsqueeze(-1)
    return linalg.solve_triangular(tril.expand(*lead, size, size), right, upper=False).squeeze(-1)
