"""`TruncatedNormal(loc, scale, low, high)` as a Normal between bounds, which no target has but in this form."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from qvr_core.lowered.tails import ANY, BETWEEN_BOUNDS
from qvr_core.semantics.language.truncated import HIGHEST, LOWEST, TRUNCATED
from qvr_core.semantics.types.model.expressions import Constant
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import (
    LetModel,
    MarginalizeModel,
    ParamModel,
    ScoreModel,
    StepModel,
)

_BOUNDS = {"low": (LOWEST.name, -inf), "high": (HIGHEST.name, inf)}


def with_bounds(program: Program) -> Program:
    """The program with such draws as those of a Normal that a type beside them would truncate."""
    return replace(program, steps=tuple(map(_bounded, program.steps)))


def _bounded(step: StepModel) -> StepModel:
    if isinstance(step, MarginalizeModel):
        return replace(step, body=tuple(map(_bounded, step.body)))
    if isinstance(step, LetModel | ScoreModel | ParamModel):
        return step
    draw = step.site.draw
    whole = BETWEEN_BOUNDS.get(draw.family) if isinstance(draw, FamilyDraw) else None
    if whole is None or not isinstance(draw, FamilyDraw):
        return step
    given = dict(draw.args)
    args = [(key, value) for key, value in draw.args if key not in _BOUNDS]
    for key, (name, none) in _BOUNDS.items():
        args.append((name, given.get(key, Constant(type=ANY, origin=draw.origin, value=none))))
    other = replace(draw, family=f"{TRUNCATED}({whole})", args=tuple(args))
    return replace(step, site=replace(step.site, draw=other))
