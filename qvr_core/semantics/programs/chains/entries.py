"""Vectors that are drawn entry by entry: `sample v[t : Time] : Real 2 <- Normal(0.5 * v[t - 1], s[t])`.

A number of an element counts for each of its entries.
"""

from __future__ import annotations

from dataclasses import replace

from qvr_core.semantics.arithmetic.alignment import arrange
from qvr_core.semantics.arithmetic.broadcasting import axes
from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.programs.family_draws import TypedFamily
from qvr_core.semantics.types.axes import indexed
from qvr_core.semantics.types.chain_starts import draws_of, values_of, written_in
from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import Start


def by_entry(drawn: TypedFamily) -> TypedFamily:
    """A draw whose arguments all have an axis for the entries behind those of the indices."""
    arguments = tuple(replace(one, value=_entered(one.value, one.parameter.rank)) for one in drawn.arguments)
    return replace(drawn, arguments=arguments, model=_model(drawn.model))


def start_by_entry(start: Start) -> Start:
    """The same of what the first elements are drawn from, or of their values."""
    if isinstance(start, FamilyDraw):
        return _model(start)
    return tuple(map(_model, draws_of(start))) or tuple(_entered(value, 0) for value in values_of(start))


def other_count(start: Start, count: int) -> Expr | None:
    """What makes first elements of another number of entries."""
    for value in written_in(start):
        size, name = (axes(value.type) or [(None, None)])[-1]
        if isinstance(size, int) and size not in (1, count) and not (name is not None and indexed(name)):
            return value
    return None


def _model(draw: FamilyDraw) -> FamilyDraw:
    parameters = facts_of_draw(draw).parameters
    ranks = {name: one.rank for one in parameters for name in (one.name, *(other for other, _ in one.alternatives))}
    return replace(draw, args=tuple((name, _entered(value, ranks.get(name, 0))) for name, value in draw.args))


def _entered(value: Expr, rank: int) -> Expr:
    """A value with an axis of length 1 behind those of the indices, where it has nothing else there."""
    found = axes(value.type)
    last = found[-1][1] if found and not rank else None
    if found is None or last is None or not indexed(last):
        return value
    return arrange(value, [*range(len(found)), None])
