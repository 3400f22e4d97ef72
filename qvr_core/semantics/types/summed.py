"""Observed steps of discrete families whose missing cells are summed out, and the steps that read them.

An element of a reader depends on one cell, the one at its own place: then the sum is over each cell by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.model.expressions import Bound, Data, Expr, ValueType
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel, ObserveModel, Site, StepModel
from qvr_core.semantics.types.spaces import Finite, factors_of
from qvr_core.semantics.types.walk import all_steps, operands, sites, values, walk
from qvr_core.syntax.immutable import immutable


@immutable
class Reader:
    """A step that depends on a cell of a summed-out step: its place in the program, and the let or observed step."""

    place: int
    step: StepModel


def is_summed(site: Site) -> bool:
    """Whether the missing cells of a step are summed out."""
    return site.missing is not None and site.missing.how == "sum"


def summed_sites(program: Program) -> tuple[Site, ...]:
    """The observed steps of a program whose missing cells are summed out."""
    return tuple(site for site in sites(program.steps, ObserveModel) if is_summed(site))


def readers(program: Program, site: Site) -> tuple[Reader, ...]:
    """The steps below that depend on the cells of a step, in order; what they observe depends on them no further."""
    names = {site.name}
    found: list[Reader] = []
    below = False
    for place, step in enumerate(program.steps):
        if isinstance(step, ObserveModel) and step.site is site:
            below = True
        elif below and any(True for _ in reads(step, names)):
            found.append(Reader(place, step))
            if isinstance(step, LetModel):
                names.update(step.names)
    return tuple(found)


def lets_of(program: Program) -> frozenset[str]:
    """The lets that have no one value, as they depend on cells that are summed out."""
    steps = (reader.step for site in summed_sites(program) for reader in readers(program, site))
    return frozenset(name for step in steps if isinstance(step, LetModel) for name in step.names)


def reads(step: StepModel, names: Collection[str]) -> Iterator[Bound | Data]:
    """Where a step, or its block, reads one of these names."""
    for part in all_steps([step]):
        for value in values(part):
            yield from reads_in(value, names)


def reads_in(expr: Expr, names: Collection[str]) -> Iterator[Bound | Data]:
    """Where an expression reads one of these names."""
    return (part for part in walk(expr, operands) if isinstance(part, Bound | Data) and part.name in names)


# ---------------------------------------------------------------- axes


def axes_of(site: Site) -> tuple[str | None, ...]:
    """The sets that an observed step runs over, outermost first, None for one without a name."""
    plate = None if site.each_row else site.plate
    if plate is not None:
        factors = (space.nominal if isinstance(space, Finite) else None for space in factors_of(plate.space))
        return tuple(None if name is None else set_of(name) for name in factors)
    if not isinstance(site.draw, FamilyDraw):
        return ()
    kinds = (sets_in(value.type) for _, value in site.draw.args)
    return max(kinds, key=len, default=())


def sets_in(kind: ValueType) -> tuple[str | None, ...]:
    """The sets of a value's axes, whichever index runs along each."""
    return tuple(None if name is None else set_of(name) or None for name in kind.indexed)
