"""The labels of the sets that the values of a program run over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from qvr_core.semantics.types.model import Ascription, IndexedValue, LetModel, Program, ScoreModel, Site
from qvr_core.semantics.types.spaces import Finite, Space, factors_of
from qvr_core.semantics.types.walk import all_steps

Labels = tuple[tuple[str, ...] | None, ...]
"""Of each axis the labels of its elements; None where they have only numbers."""


def labels_of(program: Program) -> Mapping[str, Labels]:
    """The labels along the axes of sites, and of lets with indices, by name."""
    found: dict[str, Labels] = {}
    for step in all_steps(program.steps):
        match step:
            case LetModel(names=names, indexed=IndexedValue(indices=indices)):
                found |= dict.fromkeys(names, tuple(_labels(index.space) for index in indices))
            case LetModel() | ScoreModel():
                pass
            case _:
                found[step.site.name] = tuple(_of_site(step.site))
    return found


def _of_site(site: Site) -> Iterator[tuple[str, ...] | None]:
    plate = site.iid_over or (site.ascribed if site.ascription is Ascription.PLATE else None)
    for named in (plate, site.over):
        for space in () if named is None else factors_of(named.space):
            yield _labels(space)


def _labels(space: Space) -> tuple[str, ...] | None:
    return space.labels if isinstance(space, Finite) else None
