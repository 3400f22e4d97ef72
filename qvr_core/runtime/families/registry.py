"""Every family, as the files of this folder declare them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

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
from qvr_core.runtime.families.mixtures import mixed_family
from qvr_core.semantics.language.mixtures import component_names

# In the order in which families are listed.
_FILES = (
    *(normal, heavy_tails, mixtures, positive, bounded, counts, count_mixtures),
    *(categories, simplex, multivariate, processes, covariances),
)


class _Families(dict[str, RuntimeFamily]):
    """The families by name; a mixture is made when its name is first asked for."""

    def __missing__(self, name: str) -> RuntimeFamily:
        components = component_names(name)
        if components is None:
            raise KeyError(name)
        return _mixture(components)


@lru_cache(maxsize=256)
def _mixture(components: tuple[str, ...]) -> RuntimeFamily:
    return mixed_family([RUNTIME_FAMILIES[name] for name in components])


RUNTIME_FAMILIES: Mapping[str, RuntimeFamily] = _Families(
    {family.name: family for file in _FILES for family in vars(file).values() if isinstance(family, RuntimeFamily)}
)
"""Every family by name, and every mixture of some under its own (`semantics.language.mixtures`)."""
