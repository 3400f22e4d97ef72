"""Types with axes as text: `House`, `Group -> Real 3`, `Time * Time`, for whatever shows the type of a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.data_text import data_text
from qvr_core.semantics.types.model.expressions import ValueType
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import (
    IndexedValue,
    LetModel,
    MarginalizeModel,
    ObserveModel,
    ParamModel,
    PredictModel,
    SampleModel,
    ScoreModel,
    Site,
)
from qvr_core.semantics.types.spaces import (
    REAL_LINE,
    Constrained,
    Finite,
    Named,
    Real,
    Space,
    Unknown,
    factors_of,
    has_seq,
    item_of,
    sequence_of,
)
from qvr_core.semantics.types.walk import all_steps

Axes = tuple[str | None, ...]
Known = tuple[Axes, str, str | None]
"""Axes, type as text, and the set that the elements are of."""


def type_text(kind: ValueType) -> str:
    """The type of a value in arithmetic; '' where data decides it."""
    if kind.event is None or not isinstance(kind.space, Real) or len(kind.space.shape) != 1:
        return data_text(kind)
    # An event that came from an axis keeps its name.
    named, sizes = (*kind.indexed, set_of(kind.event)), (*kind.sizes, kind.space.shape[0])
    return data_text(replace(kind, space=REAL_LINE, indexed=named, sizes=sizes, event=None))


def plate_of(site: Site) -> Named | None:
    """The axes in front of the draws of a site."""
    return site.plate


def site_type(site: Site, name: str) -> str:
    """The type of a name that a site binds, as its sets are written; '' where it is not known."""
    space = next((space for bound, space in site.bound if bound == name), None)
    plate = plate_of(site)
    element = "" if space is None or isinstance(space.space, Unknown) else space.written
    if site.over is not None and space is not None and _is_vector(space.space):
        return " * ".join(named.written for named in (plate, site.over) if named is not None)
    if plate is None:
        return element
    scalar = space is not None and space.space == REAL_LINE
    return plate.written if scalar or not element else f"{plate.written} -> {element}"


def _is_vector(space: Space) -> bool:
    return isinstance(space, Real) or (isinstance(space, Constrained) and space.kind == "Simplex")


def let_type(step: LetModel, name: str) -> ValueType:
    """The type of one of the names of a let."""
    at = step.names.index(name)
    if step.indexed is not None and len(step.indexed.values) == len(step.names):
        return step.indexed.values[at].type
    return _part(step.value.type, at, len(step.names))


def _part(kind: ValueType, index: int, count: int) -> ValueType:
    """What one of several names gets of a product."""
    if count == 1 or kind.space is None:
        return kind
    factors = factors_of(item_of(kind.space))
    if len(factors) != count:
        return kind
    own = factors[index]
    return replace(kind, space=sequence_of(own) if has_seq(kind.space) else own)


def types_of(program: Program) -> Mapping[str, str]:
    """The types of all names that a program binds, as far as they are known."""
    found = {item.name: item.space.written for item in program.inputs if item.name is not None}
    for step in all_steps(program.steps):
        match step:
            case LetModel(names=names):
                found |= {name: type_text(let_type(step, name)) for name in names}
            case ParamModel(names=names, type=kind):
                found |= dict.fromkeys(names, type_text(kind))
            case (
                SampleModel(site=site) | ObserveModel(site=site) | PredictModel(site=site)
                | MarginalizeModel(site=site)
            ):  # fmt: skip
                found |= {name: site_type(site, name) for name, _ in site.bound}
            case ScoreModel():
                pass
    return {name: text for name, text in found.items() if text}


def axes_of(program: Program) -> dict[str, Known]:
    """For each name of a program: its axes, its type as text, and the set that its elements are of."""
    found = {item.name: axes_of_type(item.type) for item in program.data}
    for step in all_steps(program.steps):
        match step:
            case LetModel(names=(name,), value=value):
                found[name] = axes_of_type(value.type)
            case LetModel(names=names, indexed=IndexedValue(values=values)):
                found |= {name: axes_of_type(value.type) for name, value in zip(names, values, strict=False)}
            case (
                SampleModel(site=site) | ObserveModel(site=site) | PredictModel(site=site)
                | MarginalizeModel(site=site)
            ):  # fmt: skip
                found |= {name: _axes_of_site(site, name) for name, _ in site.bound}
            case _:
                pass
    return found


def axes_of_type(kind: ValueType) -> Known:
    names = (*kind.indexed, *((kind.event,) if kind.event is not None else ()))
    axes = tuple(None if name is None else set_of(name) for name in names)
    return axes, type_text(kind), kind.space.nominal if isinstance(kind.space, Finite) else None


def _is_matrix(site: Site, name: str) -> bool:
    space = next((space.space for bound, space in site.bound if bound == name), None)
    return isinstance(space, Constrained) and space.kind in ("CholeskyFactor", "Covariance", "Correlation")


def _axes_of_site(site: Site, name: str) -> Known:
    plate = plate_of(site)
    spaces = (
        *(factors_of(plate.space) if plate is not None else ()),
        *(() if site.over is None else (site.over.space,)),
        *(() if site.over is None or not _is_matrix(site, name) else (site.over.space,)),
    )
    axes = tuple(space.nominal if isinstance(space, Finite) else None for space in spaces)
    element = next((space.space for bound, space in site.bound if bound == name), None)
    return axes, site_type(site, name), element.nominal if isinstance(element, Finite) else None
