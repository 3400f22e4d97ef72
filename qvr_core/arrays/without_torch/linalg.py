"""torch.linalg, as far as programs use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.linalg import LinAlgError

from qvr_core.arrays.listing import FUNCTIONS

__all__ = ["LinAlgError"]
NAMES = frozenset(("cholesky", "cholesky_ex", "inv", "inv_ex", "det", "solve_triangular", "vector_norm", "eigh"))


def __getattr__(name: str) -> Callable[..., Any]:
    if name in NAMES:
        return FUNCTIONS[f"linalg_{name}"]
    raise AttributeError(name)
