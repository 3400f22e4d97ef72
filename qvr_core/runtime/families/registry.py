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
from qvr_core.runtime.families.gated import gated_family
from qvr_core.runtime.families.mixtures import mixed_family
from qvr_core.runtime.families.on_spaces.flat import flat_family
from qvr_core.runtime.families.on_spaces.outcomes import outcome_family
from qvr_core.runtime.families.on_spaces.sum_to_zero import SUMMING_TO_ZERO
from qvr_core.runtime.families.on_spaces.truncated import truncated_family
from qvr_core.semantics.language.gates import gated_name
from qvr_core.semantics.language.mixtures import component_names
from qvr_core.semantics.language.outcomes import computed_name
from qvr_core.semantics.language.sum_to_zero import SUM_TO_ZERO
from qvr_core.semantics.language.truncated import flat_on, truncated_name

# In the order in which families are listed.
_FILES = (
    *(normal, heavy_tails, mixtures, positive, bounded, counts, count_mixtures),
    *(categories, simplex, multivariate, processes, covariances),
)


class _Families(dict[str, RuntimeFamily]):
    """The families by name; a mixture, or a family on another space, is made when its name is first asked for."""

    def __missing__(self, name: str) -> RuntimeFamily:
        if (inner := truncated_name(name)) is not None:
            return _truncated(inner)
        if (outcome := computed_name(name)) is not None:
            return _outcome(*outcome)
        if (gate := gated_name(name)) is not None:
            return _gated(*gate)
        if (kind := flat_on(name)) is not None:
            return flat_family(kind)
        if name == SUM_TO_ZERO:
            return SUMMING_TO_ZERO
        components = component_names(name)
        if components is None:
            raise KeyError(name)
        return _mixture(components)


@lru_cache(maxsize=256)
def _mixture(components: tuple[str, ...]) -> RuntimeFamily:
    return mixed_family([RUNTIME_FAMILIES[name] for name in components])


@lru_cache(maxsize=256)
def _gated(kind: str, name: str) -> RuntimeFamily:
    return gated_family(kind, RUNTIME_FAMILIES[name])


@lru_cache(maxsize=256)
def _outcome(operations: tuple[str, ...], name: str) -> RuntimeFamily:
    return outcome_family(RUNTIME_FAMILIES[name], operations)


@lru_cache(maxsize=256)
def _truncated(name: str) -> RuntimeFamily:
    return truncated_family(RUNTIME_FAMILIES[name])


RUNTIME_FAMILIES: Mapping[str, RuntimeFamily] = _Families(
    {family.name: family for file in _FILES for family in vars(file).values() if isinstance(family, RuntimeFamily)}
)
"""Every family by name, and every mixture of some under its own (`semantics.language.mixtures`)."""
