"""What a composite arrow inherits from its parts: the algebra of tensors, the direction of a scan, positions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from qvr_core.semantics.scope.scope import ArrowEntry, Scope
from qvr_core.semantics.types.model.arrows import (
    Arrow,
    BatchNorm,
    ChangeBase,
    Compose,
    Damaged,
    Freeze,
    Instance,
    Latent,
    Lift,
    Observed,
    Position,
    Ref,
    Repeat,
    Scan,
    Stack,
    TakeFactor,
)
from qvr_core.semantics.types.model.extents import ANY_LENGTH, NO_STAGES, ONE_STAGE, Extent, Stages
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.walk import arrows_of, fold, parts


def algebra_of(arrow: Arrow, scope: Scope) -> str | None:
    """The algebra in which a tensor arrow composes; None where no declared tensor decides it."""
    if isinstance(arrow, Latent | Observed):
        return arrow.algebra
    if isinstance(arrow, ChangeBase):
        return arrow.target
    if isinstance(arrow, Ref):
        entry = scope.lookup(arrow.name)
        return entry.algebra if isinstance(entry, ArrowEntry) else None
    return next((found for part in parts(arrow) if (found := algebra_of(part, scope)) is not None), None)


def scanned_direction(arrow: Arrow, scope: Scope) -> str | None:
    """'forward' or 'backward' where an arrow folds the sequence that it reads; None where it does not."""
    if isinstance(arrow, Scan):
        return "backward" if arrow.backward else "forward"
    if isinstance(arrow, Ref):
        entry = scope.lookup(arrow.name)
        return entry.direction if isinstance(entry, ArrowEntry) else None
    if isinstance(arrow, Compose | Lift | Freeze | TakeFactor):
        return next((found for part in parts(arrow) if (found := scanned_direction(part, scope)) is not None), None)
    return None


def extent_of(arrow: Arrow, scope: Scope) -> Extent:
    """How an arrow goes through a sequence, all that it is made of included."""

    def of(part: Arrow, inner: list[Extent]) -> Extent:
        match part:
            case Position(name=name, max_length=count):
                return Extent(count, name)
            case Instance(program=program):
                return program.extent
            case Ref(name=name):
                entry = scope.lookup(name)
                return entry.extent if isinstance(entry, ArrowEntry) else ANY_LENGTH
            case Scan():
                return replace(joint_extent(inner), scans=True)
            case _:
                return joint_extent(inner)

    return fold(arrow, parts, of)


def stages_of(arrow: Arrow, scope: Scope) -> Stages:
    """How many declared arrows an arrow is made of, each counted as often as it is applied."""

    def of(part: Arrow, inner: list[Stages]) -> Stages:
        match part:
            case Instance(program=program):
                return program.stages
            case Ref(name=name):
                entry = scope.lookup(name)
                return entry.stages if isinstance(entry, ArrowEntry) else ONE_STAGE
            case Damaged():
                return Stages(sure=False)
            case Stack(count=count) | Repeat(count=int(count)):
                return inner[0].times(count)
            case _:
                return sum(inner, NO_STAGES) if inner and not isinstance(part, Observed) else ONE_STAGE

    return fold(arrow, parts, of)


def data_of(arrow: Arrow, scope: Scope) -> tuple[str, ...]:
    """The data that the programs read which an arrow is made of."""

    def of(part: Arrow, inner: list[tuple[str, ...]]) -> tuple[str, ...]:
        match part:
            case Instance(program=Program() as program):
                return tuple(item.name for item in program.data if not item.inside)
            case Ref(name=name):
                entry = scope.lookup(name)
                return entry.data if isinstance(entry, ArrowEntry) else ()
            case _:
                return tuple(dict.fromkeys(name for names in inner for name in names))

    return fold(arrow, parts, of)


def batched(arrow: Arrow, scope: Scope) -> bool:
    """Whether a batch norm is part of an arrow."""

    def of(part: Arrow, inner: list[bool]) -> bool:
        match part:
            case BatchNorm():
                return True
            case Instance(program=Program() as program):
                return any(batched(one, scope) for one in arrows_of(program))
            case Ref(name=name):
                entry = scope.lookup(name)
                return isinstance(entry, ArrowEntry) and entry.batched
            case _:
                return any(inner)

    return fold(arrow, parts, of)


def joint_extent(extents: Iterable[Extent]) -> Extent:
    """The extent of several arrows that read one sequence: the fewest positions count."""
    positions, place, scans = None, "", False
    for extent in extents:
        scans = scans or extent.scans
        if extent.positions is not None and (positions is None or extent.positions < positions):
            positions, place = extent.positions, extent.place
    return Extent(positions, place, scans)
