"""Types with axes as text: `House`, `Group -> Real 3`, `Time * Time`, for whatever shows the type of a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.data_text import data_text
from qvr_core.semantics.types.model.expressions import ValueType
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import (
    Ascription,
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

PLATES = (Ascription.PLATE, Ascription.ROW_DRAWS)


def type_text(kind: ValueType) -> str:
    """The type of a value in arithmetic; '' where data decides it."""
    if kind.event is None or not isinstance(kind.space, Real) or len(kind.space.shape) != 1:
        return data_text(kind)
    # An event that came from an axis keeps its name.
    named, sizes = (*kind.indexed, set_of(kind.event)), (*kind.sizes, kind.space.shape[0])
    return data_text(replace(kind, space=REAL_LINE, indexed=named, sizes=sizes, event=None))


def plate_of(site: Site) -> Named | None:
    """The axes in front of the draws of a site."""
    return site.iid_over or (site.ascribed if site.ascription in PLATES else None)


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
