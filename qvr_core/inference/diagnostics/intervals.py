"""Intervals of draws, of many numbers at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def highest_density(draws: Array, probability: float) -> tuple[Array, Array]:
    """The ends of the narrowest interval of draws that holds so many of them, of each column of (draws, elements)."""
    ordered = np.sort(draws, axis=0)
    inside = int(np.floor(probability * len(draws)))
    narrowest = (ordered[inside:] - ordered[: len(draws) - inside]).argmin(0)
    columns = np.arange(draws.shape[1], dtype=np.intp)
    return ordered[narrowest, columns], ordered[narrowest + inside, columns]
