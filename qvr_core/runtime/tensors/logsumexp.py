"""Sums of probabilities in logarithms, exact where some are zero."""

from __future__ import annotations

import math

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.arrays.tensor_like import TensorLike


def logsumexp(value: Tensor, axis: int) -> Tensor:
    """log Σ exp along an axis; where every term is impossible −inf, with gradient zero."""
    if isinstance(value, TensorLike) and not value.graph.kept:
        return arrays.logsumexp(value, axis)  # numbers, which have no gradient
    most = value.detach().amax(axis, keepdim=True)
    most = arrays.where(most.isfinite(), most, arrays.zeros_like(most))
    total = (value - most).exp().sum(axis)
    positive = total > 0
    log = arrays.where(positive, total, arrays.ones_like(total)).log()
    return arrays.where(positive, log, arrays.full_like(log, -math.inf)) + most.squeeze(axis)
