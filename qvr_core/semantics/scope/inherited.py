"""What a composite arrow inherits from its parts: the algebra of tensors, the direction of a scan, positions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from qvr_core.semantics.scope.scope import ArrowEntry, Scope
from qvr_core.semantics.types.model import (
    ANY_LENGTH,
    NO_STAGES,
    ONE_STAGE,
    Arrow,
    Compose,
    Dagger,
    Damaged,
    DropFactors,
    Extent,
    Fan,
    Freeze,
    Instance,
    Latent,
    Lift,
    Observed,
    PartialTrace,
    Position,
    Ref,
    Repeat,
    Residual,
    Scan,
    Stack,
    Stages,
    TakeFactor,
    Tensor,
)


def parts(arrow: Arrow) -> Iterator[Arrow]:
    """The arrows that a combinator is made of, in order; none for a declared arrow or a name."""
    match arrow:
        case Compose(stages=inner) | Tensor(factors=inner) | Fan(branches=inner):
            yield from inner
        case Lift(arrow=inner) | Scan(cell=inner) | Stack(body=inner) | Repeat(body=inner) | Residual(body=inner):
            yield inner
        case (
            TakeFactor(base=inner) | Dagger(base=inner) | PartialTrace(base=inner) | DropFactors(base=inner)
            | Freeze(base=inner)
        ):  # fmt: skip
            yield inner
        case _:
            return


def algebra_of(arrow: Arrow, scope: Scope) -> str | None:
    """The algebra in which a tensor arrow composes; None where no declared tensor decides it."""
    if isinstance(arrow, Latent | Observed):
        return arrow.algebra
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
    match arrow:
        case Position(name=name, max_length=count):
            return Extent(count, name)
        case Instance(program=program):
            return program.extent
        case Ref(name=name):
            entry = scope.lookup(name)
            return entry.extent if isinstance(entry, ArrowEntry) else ANY_LENGTH
        case _:
            inner = joint_extent(extent_of(part, scope) for part in parts(arrow))
            return replace(inner, scans=True) if isinstance(arrow, Scan) else inner


def stages_of(arrow: Arrow, scope: Scope) -> Stages:
    """How many declared arrows an arrow is made of, each counted as often as it is applied."""
    match arrow:
        case Instance(program=program):
            return program.stages
        case Ref(name=name):
            entry = scope.lookup(name)
            return entry.stages if isinstance(entry, ArrowEntry) else ONE_STAGE
        case Damaged():
            return Stages(sure=False)
        case Stack(body=body, count=count) | Repeat(body=body, count=int(count)):
            return stages_of(body, scope).times(count)
        case _:
            inner = [stages_of(part, scope) for part in parts(arrow)]
            return sum(inner, NO_STAGES) if inner else ONE_STAGE


def joint_extent(extents: Iterable[Extent]) -> Extent:
    """The extent of several arrows that read one sequence: the fewest positions count."""
    positions, place, scans = None, "", False
    for extent in extents:
        scans = scans or extent.scans
        if extent.positions is not None and (positions is None or extent.positions < positions):
            positions, place = extent.positions, extent.place
    return Extent(positions, place, scans)
