"""`via` as an index: what runs over groups is looked up by the group of each element.

`observe y : Pupil <- Normal(theta, 1.0) [via=school]` is `observe y[i : Pupil] <- Normal(theta[school[i]], 1.0)`.
"""

from __future__ import annotations

from dataclasses import replace

from qvr_core.semantics.arithmetic.broadcasting import axes
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.model.expressions import Data, Expr, Index, ValueType
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import ObserveModel, Site
from qvr_core.semantics.types.spaces import Dim, Finite


def gathered(program: Program) -> Program:
    """The program without `via`, wherever types say which arguments run over groups; data that are groups and have no
    declaration get their type."""
    kinds: dict[str, ValueType] = {}
    steps = tuple(
        replace(step, site=_gathered(step.site, kinds)) if isinstance(step, ObserveModel) else step
        for step in program.steps
    )
    data = tuple(replace(item, type=kinds.get(item.name, item.type)) for item in program.data)
    return replace(program, steps=steps, data=data)


def _gathered(site: Site, kinds: dict[str, ValueType]) -> Site:
    plate, draw, groups = site.elementwise, site.draw, site.via
    family = FAMILIES.get(draw.family) if isinstance(draw, FamilyDraw) else None
    if groups is None or family is None or not isinstance(draw, FamilyDraw):
        return site
    if plate is None or not isinstance(plate.space, Finite):
        return site
    own, found = plate.space.nominal, set[tuple[str, Dim]]()
    ranks = {name: one.rank for one in family.parameters for name in (one.name, *dict(one.alternatives))}
    looked_up: set[str] = set()
    for name, value in draw.args:
        known = axes(value.type)
        if known is None:
            return site
        if len(known) <= ranks[name]:
            continue
        size, axis = known[0]
        if axis is None or own is None or size is None:
            return site
        if set_of(axis) != own:
            found.add((set_of(axis), size))
            looked_up.add(name)
    if isinstance(groups, Data) and groups.type.space is None and len(found) == 1:
        ((nominal, size),) = found
        kind = ValueType(Finite(size, nominal), (own,), sizes=(plate.space.size,))
        groups = replace(groups, type=kind)
        kinds[groups.name] = kind
    if not isinstance(groups.type.space, Finite):
        return site
    args = tuple((name, _at(value, groups) if name in looked_up else value) for name, value in draw.args)
    return replace(site, via=None, draw=replace(draw, args=args))


def _at(value: Expr, groups: Expr) -> Index:
    kind = replace(
        value.type,
        indexed=(*groups.type.indexed, *value.type.indexed[1:]),
        sizes=(*groups.type.sizes, *value.type.sizes[1:]),
    )
    return Index(type=kind, origin=value.origin, base=value, indices=(groups,))
