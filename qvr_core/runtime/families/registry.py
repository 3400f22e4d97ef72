"""Every family, as the files of this folder declare them."""

from __future__ import annotations

from collections.abc import Mapping

from qvr_core.runtime.families import (
    bounded,
    categories,
    count_mixtures,
    counts,
    covariances,
    heavy_tails,
    mixtures,
    multivariate,
    normal,
    positive,
    processes,
    simplex,
)
from qvr_core.runtime.families.family import RuntimeFamily

# In the order in which families are listed.
_FILES = (
    *(normal, heavy_tails, mixtures, positive, bounded, counts, count_mixtures),
    *(categories, simplex, multivariate, processes, covariances),
)

RUNTIME_FAMILIES: Mapping[str, RuntimeFamily] = {
    family.name: family for file in _FILES for family in vars(file).values() if isinstance(family, RuntimeFamily)
}
"""Every family by name."""
