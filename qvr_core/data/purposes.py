"""What the data names of a program are for, where its steps say more of them than what they run over."""

from __future__ import annotations

import math

from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.types.model.expressions import Arrange, Data, Solve, Window
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import MarginalizeModel, ObserveModel, PredictModel, SampleModel
from qvr_core.semantics.types.walk import all_steps, operands, sites, values, walk

_ENDS = ("lowest", "highest")
"""What the bounds of a hidden count are for."""


def purposes_of(program: Program) -> dict[str, tuple[str, str]]:
    """What the data names that stand in options are for."""
    found = {program.lengths.name: ("lengths", "")} if isinstance(program.lengths, Data) else {}
    found |= {item.lengths: ("lengths", item.name) for item in program.data if item.lengths}
    for site in sites(program.steps, ObserveModel):
        named = [(key, getattr(site, key)) for key in ("at", "mask", "weight", "via", "lengths")]
        for key, value in (*named, *site.limits):
            if isinstance(value, Data):
                found.setdefault(value.name, (key, site.name))
    for site in sites(program.steps, MarginalizeModel):
        draw = site.draw
        family = FAMILIES.get(draw.family) if isinstance(draw, FamilyDraw) else None
        if family is None or not family.discrete or family.bounded_by is None or not isinstance(draw, FamilyDraw):
            continue
        ends = dict(zip(family.bounded_by, _ENDS, strict=True))
        for key, value in draw.args:
            while isinstance(value, Arrange | Window):
                value = value.base
            if isinstance(value, Data) and key in ends:
                found.setdefault(value.name, (ends[key], site.name))
    written = (value for step in all_steps(program.steps) for value in values(step))
    for expr in (part for value in written for part in walk(value, operands)):
        if isinstance(expr, Solve) and isinstance(expr.at, Data):
            found.setdefault(expr.at.name, ("times", expr.function))
    return found


def most_elements(program: Program) -> dict[str, float]:
    """How many elements the chains may have whose lengths a data name says; the fewest where it says those of two."""
    found: dict[str, float] = {}
    for item in program.data:
        size = item.over[-1].size if item.lengths and item.over else None
        if isinstance(size, int):
            found[item.lengths] = min(float(size), found.get(item.lengths, math.inf))
    for site in sites(program.steps, SampleModel, ObserveModel, PredictModel, MarginalizeModel):
        indices = site.indices or (site.chain.indices if site.chain is not None else ())
        size = getattr(indices[-1].space, "size", None) if indices else None
        if isinstance(site.lengths, Data) and isinstance(size, int):
            found[site.lengths.name] = min(float(size), found.get(site.lengths.name, math.inf))
    return found
