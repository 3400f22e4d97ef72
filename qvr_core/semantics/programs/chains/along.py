"""The indices of a step, and values laid along them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.alignment import arrange
from qvr_core.semantics.arithmetic.broadcasting import (
    Axis,
    axes,
    from_axes,
    with_axes,
)
from qvr_core.semantics.arithmetic.indices import length
from qvr_core.semantics.arithmetic.unindexed_values import report_bare
from qvr_core.semantics.programs.family_draws import TypedFamily
from qvr_core.semantics.scope.environment import Running, StepContext
from qvr_core.semantics.types.axes import indexed, set_of
from qvr_core.semantics.types.model.expressions import Expr, ValueType
from qvr_core.semantics.types.model.steps import RunningIndex
from qvr_core.semantics.types.spaces import REAL_LINE, Unknown
from qvr_core.syntax.immutable import immutable


@immutable
class Along:
    """The indices of a step; `chain` is the one that lags behind, `count` by how many elements."""

    indices: tuple[Running, ...]
    chain: Running | None
    count: int

    @property
    def model(self) -> tuple[RunningIndex, ...]:
        return tuple(RunningIndex(name=one.name, space=one.space or Unknown(), lag=one.lag) for one in self.indices)

    @property
    def plates(self) -> list[Axis]:
        """The axes that the step's name gets: all elements of every set."""
        return [(None, None) if one.space is None else (one.space.size, one.space.nominal) for one in self.indices]

    @property
    def axes(self) -> list[Axis]:
        """The axes inside the step."""
        return [(length(one), one.axis) for one in self.indices]


def along_of(indices: Sequence[Running]) -> Along:
    chain = next((one for one in indices if one.lag), None)
    return Along(tuple(indices), chain, 0 if chain is None else chain.lag)


def laid_out(value: Expr, along: Along, ctx: StepContext, *, leave: Running | None = None) -> Expr:
    """`value` with the axes of the indices in front, in their order; those that it lacks have length 1."""
    found = axes(value.type)
    if found is None or value.type.space is None:
        return value
    names = [name for _, name in found]
    sets = {set_of(one.axis): one for one in along.indices}
    bare = next((sets[name] for name in names if name is not None and not indexed(name) and name in sets), None)
    if bare is not None:
        report_bare(value, "this", bare, value.origin, ctx)
        return replace(value, type=ValueType(Unknown(), rows=value.type.rows))
    front = [names.index(one.axis) if one.axis in names else None for one in along.indices if one is not leave]
    rest = [at for at in range(len(names)) if at not in front]
    return arrange(value, [*front, *rest])


def outside(kind: ValueType, along: Along) -> ValueType:
    """The type of a laid-out value once the step is left: axes by their sets, every element of them."""
    found = axes(kind)
    if found is None or isinstance(kind.space, Unknown):
        return kind
    behind = [(size, None if name is None else set_of(name)) for size, name in found[len(along.indices) :]]
    plates = max(len(kind.indexed), len(along.indices))
    whole = [*along.plates, *behind]
    if len(kind.indexed) >= len(along.indices):
        return with_axes(whole[:plates], kind.space or REAL_LINE, like=[kind], event=kind.event)
    return from_axes(whole, plates, like=[kind])


def outside_of(drawn: TypedFamily) -> TypedFamily:
    """A draw as it is seen outside of the step: axes by their sets."""
    arguments = tuple(replace(one, value=replace(one.value, type=_plain(one.value.type))) for one in drawn.arguments)
    return replace(drawn, arguments=arguments, type=_plain(drawn.type))


def _plain(kind: ValueType) -> ValueType:
    event = None if kind.event is None else set_of(kind.event)
    return replace(kind, indexed=tuple(None if name is None else set_of(name) for name in kind.indexed), event=event)
