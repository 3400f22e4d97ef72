"""Where parameters start: none is learnt here, so their numbers only have to be there."""

from __future__ import annotations

import math
from typing import Any

from qvr_core.arrays.without_torch.random import default_generator


def zeros_(x: Any) -> Any:
    """Zeros."""
    x.data[...] = 0.0
    return x


def normal_(x: Any, mean: float = 0.0, std: float = 1.0) -> Any:
    """Normal draws."""
    x.data[...] = default_generator.numpy.normal(mean, std, x.data.shape)
    return x


trunc_normal_ = normal_


def xavier_uniform_(x: Any, gain: float = 1.0) -> Any:
    """Uniform draws that keep the variance (Glorot & Bengio 2010)."""
    out, into = x.data.shape[0], math.prod(x.data.shape[1:]) if x.data.ndim > 1 else x.data.shape[0]
    limit = gain * math.sqrt(6.0 / (out + into))
    x.data[...] = default_generator.numpy.uniform(-limit, limit, x.data.shape)
    return x
