"""What the axes of sites, lets and data are called: the sets that they run over, with the labels of their elements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qvr_core.semantics.arithmetic.broadcasting import axes
from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.model.expressions import ValueType
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import (
    LetModel,
    MarginalizeModel,
    ObserveModel,
    PredictModel,
    SampleModel,
    Site,
)
from qvr_core.semantics.types.spaces import Constrained, Finite, Space, factors_of
from qvr_core.semantics.types.walk import all_steps


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: the set that it runs over, and what its elements are called; None where they have only numbers."""

    name: str | None = None
    labels: tuple[str | int, ...] | None = None


Axes = Mapping[str, tuple[Axis, ...]]
"""By site or let."""


def site_axes(program: Program) -> dict[str, tuple[Axis, ...]]:
    """The axes of the values of all sites, missing cells and all."""
    return dict(_sites(program))


def state_axes(program: Program) -> dict[str, tuple[Axis, ...]]:
    """The axes of the probabilities of what `marginalize` sums out: its places, then its states."""
    found, labels = site_axes(program), labels_of(program)
    blocks = [step.site for step in all_steps(program.steps) if isinstance(step, MarginalizeModel)]
    return {site.name: (*found.get(site.name, ()), _of_states(site, labels)) for site in blocks}


def _of_states(site: Site, labels: Mapping[str, tuple[str, ...]]) -> Axis:
    """The set of the states, where it has a name."""
    value = site.bound[0][1].space if site.bound else None
    axis = Axis() if value is None else _of_space(value)
    # what a probability vector is over is known by the name of the set alone
    return axis if axis.labels is not None else Axis(axis.name, labels.get(axis.name or ""))


def let_axes(program: Program) -> dict[str, tuple[Axis, ...]]:
    """The axes of all lets."""
    return dict(_lets(program, labels_of(program)))


def data_axes(program: Program) -> dict[str, tuple[Axis, ...]]:
    """The axes of data names, as far as their declarations say."""
    return {
        item.name: tuple(_of_space(one) for space in item.over for one in factors_of(space)) for item in program.data
    }


def _sites(program: Program) -> Iterator[tuple[str, tuple[Axis, ...]]]:
    for step in all_steps(program.steps):
        if isinstance(step, SampleModel | ObserveModel | PredictModel | MarginalizeModel):
            hidden = isinstance(step, MarginalizeModel) and step.reads is not None and step.site.chain is not None
            yield step.site.name, _of_chain(step.site) if hidden else tuple(_of_site(step.site, labels_of(program)))


def _of_site(site: Site, labels: Mapping[str, tuple[str, ...]]) -> Iterator[Axis]:
    plate = None if site.each_row else site.plate
    if plate is None and isinstance(site.draw, FamilyDraw):
        # its arguments say what it runs over
        known = _arguments_axes(site.draw, labels)
        yield from max(known, key=len, default=())
    for named in (plate, site.over):
        for space in () if named is None else factors_of(named.space):
            axis = _of_space(space)
            # a plate that the data lay knows its set by name alone
            yield axis if axis.labels is not None else Axis(axis.name, labels.get(axis.name or ""))
    yield from _of_entries(site, labels)


def _of_entries(site: Site, labels: Mapping[str, tuple[str, ...]]) -> Iterator[Axis]:
    """What `over` leaves open: entries of `Ordered State` go by that set, those of a matrix both ways."""
    own = None if site.element is None else site.element.space
    sets = () if site.over is None else factors_of(site.over.space)
    if not sets and isinstance(own, Constrained) and own.over is not None:
        yield from [_of_space(own.over)] * (1 if own.vector else 2)
    elif len(sets) == 1 and isinstance(site.draw, FamilyDraw) and facts_of_draw(site.draw).event == 2:
        yield _called(getattr(sets[0], "nominal", None), labels)


def _arguments_axes(draw: FamilyDraw, labels: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Axis, ...]]:
    """The axes of each argument in front of those of one draw."""
    family = facts_of_draw(draw)
    ranks = {name: own.rank for own in family.parameters for name, _ in ((own.name, ""), *own.alternatives)}
    for name, value in draw.args:
        found = axes(value.type) or []
        yield tuple(_called(one, labels) for _, one in found[: max(0, len(found) - ranks.get(name, 0))])


def _called(name: str | None, labels: Mapping[str, tuple[str, ...]]) -> Axis:
    known = None if name is None else set_of(name) or None
    return Axis(known, labels.get(known or ""))


def _of_chain(site: Site) -> tuple[Axis, ...]:
    return () if site.chain is None else tuple(_of_space(index.space) for index in site.chain.indices)


def _of_space(space: Space) -> Axis:
    return Axis(space.nominal, space.labels) if isinstance(space, Finite) else Axis()


def _of_type(kind: ValueType, labels: Mapping[str, tuple[str, ...]]) -> Iterator[Axis]:
    yield from (_called(name, labels) for name in kind.indexed)


def _lets(program: Program, labels: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, tuple[Axis, ...]]]:
    for step in program.steps:
        if not isinstance(step, LetModel):
            continue
        if step.indexed is None:
            found = tuple(_of_type(step.value.type, labels))
            yield from ((name, found) for name in step.names)
            continue
        own = tuple(_of_space(index.space) for index in step.indexed.indices)
        for name, value in zip(step.names, step.indexed.values, strict=True):
            yield name, (*own, *tuple(_of_type(value.type, labels))[len(own) :])


def labels_of(program: Program) -> dict[str, tuple[str, ...]]:
    """The labels of every set that a step or data of the program run over, by its name."""
    sites: list[Any] = [step.site for step in all_steps(program.steps) if hasattr(step, "site")]  # pyright: ignore
    named: list[Any] = [one for site in sites for one in (site.plate, site.element, site.over) if one is not None]
    spaces = [space for one in named for space in factors_of(one.space)]
    spaces += [space for item in program.data for space in (*item.over, item.type.space)]
    spaces += [
        index.space
        for step in program.steps
        if isinstance(step, LetModel) and step.indexed is not None
        for index in step.indexed.indices
    ]
    return {one.nominal: one.labels for one in spaces if isinstance(one, Finite) and one.nominal and one.labels}
