"""Groups of steps over one set that read one another's elements, what is observed included.

`let v[t : Time] = … y[t - 1] …`, `observe y[t : Time] <- Normal(mu, sqrt(v[t]))`: given y the density is that of
each step by itself; a draw goes through all steps of the group, element by element.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.expressions import (
    Arrange,
    Bound,
    Builtin,
    Constant,
    Data,
    Expr,
    Index,
    IndexValue,
    Window,
)
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel, ObserveModel, RunningIndex, SampleModel, StepModel
from qvr_core.semantics.types.spaces import Finite
from qvr_core.semantics.types.walk import operands, values


@dataclass(frozen=True)
class Read:
    """A name that a step reads: how many elements back, None where it is not read element by element."""

    name: str
    origin: Origin
    back: int | None


@dataclass(frozen=True)
class Group:
    """Steps that read one another, by their places in the program, in order; `axes` is for each the index that they
    share, by its place among the step's indices, None where they cannot be drawn element by element."""

    members: tuple[int, ...]
    axes: tuple[int, ...] | None


def reads(step: StepModel) -> Iterator[Read]:
    """What a step reads, and where."""
    for value in values(step):
        yield from _reads(value)


def _reads(expr: Expr) -> Iterator[Read]:
    match expr:
        case Bound(name=name, origin=origin) | Data(name=name, origin=origin):
            yield Read(name, origin, None)
        case Window():
            back, inner = 0, expr
            while isinstance(inner, Window):
                back, inner = back + inner.shift, inner.base
            if isinstance(inner, Bound | Data):
                yield Read(inner.name, inner.origin, back)
            else:
                yield from _reads(inner)
        case Index(base=Bound(name=name, origin=origin) | Data(name=name, origin=origin), indices=indices):
            # along one axis by the index itself (`r[g[i, t], t - 1]`), along the others by values
            yield Read(name, origin, max((back for one in indices if (back := _back(one)) is not None), default=None))
            for part in indices:
                yield from _reads(part)
        case _:
            for part in operands(expr):
                yield from _reads(part)


def _back(index: Expr) -> int | None:
    """How many elements back a place is: 1 of `t - 1`; None of one that values tell."""
    match index:
        case Arrange(base=base):
            return _back(base)
        case IndexValue():
            return 0
        case Builtin(function="sub", args=(IndexValue(), Constant(value=int(shift)))) if shift >= 0:
            return shift
        case _:
            return None


def groups(program: Program) -> tuple[Group, ...]:
    """The groups of a program that what is observed makes: a step above an `observe` reads what it observes."""
    observed = {
        step.site.name: at
        for at, step in enumerate(program.steps)
        if isinstance(step, ObserveModel) and not step.site.of_let
    }
    found: list[Group] = []
    taken: set[int] = set()
    if not observed:
        return ()
    read = [tuple(reads(step)) for step in program.steps]
    if not any(one.name in observed and observed[one.name] > at for at, own in enumerate(read) for one in own):
        return ()
    binds = {name: at for at, step in enumerate(program.steps) for name in names_of(step)}
    below = {at: {binds[one.name] for one in own if one.name in binds} for at, own in enumerate(read)}
    above: dict[int, set[int]] = {at: set() for at in below}
    for at, others in below.items():
        for other in others:
            above[other].add(at)
    for at in observed.values():
        members = tuple(sorted(_reached(at, below) & _reached(at, above)))
        if at not in taken and len(members) > 1:
            taken.update(members)
            found.append(Group(members, _shared(members, program.steps, read)))
    return tuple(found)


def names_of(step: StepModel) -> tuple[str, ...]:
    """What a step binds, without what its block does."""
    match step:
        case LetModel(names=names):
            return names
        case SampleModel(site=site) | ObserveModel(site=site):
            return (site.name, *(name for name, _ in site.bound))
        case _:
            return ()


def _reached(start: int, edges: Mapping[int, set[int]]) -> set[int]:
    """All that follows from a step, itself included."""
    seen: set[int] = set()
    pending = [start]
    while pending:
        at = pending.pop()
        if at not in seen:
            seen.add(at)
            pending.extend(edges[at])
    return seen


# ---------------------------------------------------------------- the index that they share


def indices_of(step: StepModel) -> tuple[RunningIndex, ...]:
    """The indices that a step is written with."""
    match step:
        case LetModel(indexed=held) if held is not None:
            return held.indices
        case SampleModel(site=site) | ObserveModel(site=site):
            return site.indices
        case _:
            return ()


def _shared(
    members: Sequence[int], steps: Sequence[StepModel], read: Sequence[Sequence[Read]]
) -> tuple[int, ...] | None:
    lagging = {_set(index) for at in members for index in indices_of(steps[at]) if index.lag}
    names = {name for at in members for name in names_of(steps[at])}
    if len(lagging) != 1 or any(one.back is None for at in members for one in read[at] if one.name in names):
        return None
    (shared,) = lagging
    found: list[int] = []
    for at in members:
        step = steps[at]
        places = [place for place, index in enumerate(indices_of(step)) if _set(index) == shared]
        if len(places) != 1 or (not isinstance(step, LetModel) and not _simple(step)):
            return None
        found.append(places[0])
    return tuple(found)


def _set(index: RunningIndex) -> object:
    space = index.space
    return (space.nominal, space.size) if isinstance(space, Finite) else index.name


def _simple(step: StepModel) -> bool:
    """Whether a site's elements can be drawn one by one: numbers of a family, all of them the step's own."""
    if not isinstance(step, SampleModel | ObserveModel):
        return False
    site = step.site
    return isinstance(site.draw, FamilyDraw) and (site.element is None or site.plate is None)
