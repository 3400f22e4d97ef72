"""Normal scores of draws by their ranks.

Blom (1958) for the scores; Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021) for their use.
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def normal_scores(values: Array) -> Array:
    """Of each row of (elements, n): the normal quantiles of its ranks, which ties share."""
    return _score_table(values.shape[1])[twice_ranks(values) - 2]


def twice_ranks(values: Array) -> NDArray[np.intp]:
    """Twice the ranks 1 … n in each row of (elements, n), whole numbers also where ties share their mean."""
    count = values.shape[1]
    order = np.argsort(values, axis=1, kind="stable")
    ordered = np.take_along_axis(values, order, 1)
    places = np.arange(count, dtype=np.intp)
    new = np.ones(values.shape, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.maximum.accumulate(np.where(new, places, 0), axis=1)
    ends = np.ones(values.shape, dtype=bool)
    ends[:, :-1] = new[:, 1:]
    last = np.minimum.accumulate(np.where(ends, places, count)[:, ::-1], axis=1)[:, ::-1]
    twice = np.empty(values.shape, dtype=np.intp)
    np.put_along_axis(twice, order, first + last + 2, 1)
    return twice


@lru_cache(maxsize=4)
def _score_table(count: int) -> Array:
    """Of n draws the scores of ranks 1, 1½, 2 … n: quantiles of (rank − 3/8) / (n + 1/4), odd around the middle."""
    inverse = NormalDist().inv_cdf
    lower = [inverse((at / 2 + 1 - 3 / 8) / (count + 1 / 4)) for at in range(count - 1)]
    return np.array([*lower, 0.0, *(-one for one in reversed(lower))])
