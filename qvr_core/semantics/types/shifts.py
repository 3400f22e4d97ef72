"""Sets along which a program reads earlier elements: their order says what it computes."""

from __future__ import annotations

from collections.abc import Iterator

from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.model.expressions import Window
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import (
    IndexedValue,
    LetModel,
    MarginalizeModel,
    ObserveModel,
    PredictModel,
    RunningIndex,
    SampleModel,
    StepModel,
)
from qvr_core.semantics.types.spaces import Finite
from qvr_core.semantics.types.walk import all_steps, operands, values, walk


def shifted_sets(program: Program) -> frozenset[str]:
    """The sets that a step of a program reads at earlier elements."""
    return frozenset(name for step in all_steps(program.steps) for name in _shifted(step))


def _shifted(step: StepModel) -> Iterator[str]:
    match step:
        case LetModel(indexed=IndexedValue(indices=indices)):
            yield from _lagging(indices)
        case SampleModel(site=site) | ObserveModel(site=site) | PredictModel(site=site) | MarginalizeModel(site=site):
            yield from _lagging(site.indices if site.chain is None else site.chain.indices)
        case _:
            pass
    for value in values(step):
        for part in walk(value, operands):
            if isinstance(part, Window) and part.shift:
                names = part.base.type.indexed
                name = names[part.axis] if -part.axis <= len(names) else None
                if name is not None:
                    yield set_of(name)


def _lagging(indices: tuple[RunningIndex, ...]) -> Iterator[str]:
    for index in indices:
        if index.lag and isinstance(index.space, Finite) and index.space.nominal is not None:
            yield index.space.nominal
