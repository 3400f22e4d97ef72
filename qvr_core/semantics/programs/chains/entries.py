"""Vectors that are drawn entry by entry: `sample v[t : Time] : Real 2 <- Normal(0.5 * v[t - 1], s[t])`.

A number of an element counts for each of its entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.alignment import arrange
from qvr_core.semantics.arithmetic.broadcasting import axes
from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.programs.family_draws import TypedFamily
from qvr_core.semantics.types.axes import indexed
from qvr_core.semantics.types.model import Expr, FamilyDraw


def by_entry(drawn: TypedFamily) -> TypedFamily:
    """A draw whose arguments all have an axis for the entries behind those of the indices."""
    arguments = tuple(replace(one, value=_entered(one.value, one.parameter.rank)) for one in drawn.arguments)
    return replace(drawn, arguments=arguments, model=_model(drawn.model))


def start_by_entry(start: FamilyDraw | Sequence[Expr]) -> FamilyDraw | tuple[Expr, ...]:
    """The same of what the first elements are drawn from, or of their values."""
    return _model(start) if isinstance(start, FamilyDraw) else tuple(_entered(value, 0) for value in start)


def other_count(start: FamilyDraw | Sequence[Expr], count: int) -> Expr | None:
    """What makes first elements of another number of entries."""
    values = [value for _, value in start.args] if isinstance(start, FamilyDraw) else start
    for value in values:
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
