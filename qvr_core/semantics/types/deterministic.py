"""Lets that depend on what a program draws: deterministic sites, and those that are only known after the fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from qvr_core.semantics.types.model.expressions import Bound, Data
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import (
    LetModel,
    ObserveModel,
    ParamModel,
    PredictModel,
    SampleModel,
    ScoreModel,
    StepModel,
)
from qvr_core.semantics.types.summed import lets_of
from qvr_core.semantics.types.walk import all_steps, operands, sites, values, walk


def deterministic(program: Program) -> tuple[str, ...]:
    """The names of all lets that depend on a latent, in order; of a program that reads its input there are none."""
    if program.uses_input:
        return ()
    later = {*predicted(program), *lets_of(program)}
    return tuple(name for name in _depending(program, SampleModel) if name not in later)


def predicted(program: Program) -> tuple[str, ...]:
    """What is only known after the fit: `predict` steps, and the lets that depend on one, in order."""
    drawn = tuple(name for step in program.steps if isinstance(step, PredictModel) for name, _ in step.site.bound)
    return (*drawn, *_depending(program, PredictModel)) if drawn else ()


def _depending(program: Program, kind: type[SampleModel | PredictModel]) -> Iterator[str]:
    """The lets that depend on a step of a kind."""
    seen = set(_filled_in(program)) if kind is SampleModel else set[str]()
    for step in program.steps:
        if isinstance(step, kind):
            seen.update(name for name, _ in step.site.bound)
        elif isinstance(step, LetModel) and not seen.isdisjoint((*_bound(step), *_data(step))):
            seen.update(step.names)
            yield from (name for name in step.names if name != "_")


def _filled_in(program: Program) -> Iterator[str]:
    """Observed names whose missing cells are latent."""
    found = sites(program.steps, ObserveModel)
    return (site.name for site in found if site.missing is not None and site.missing.how == "impute")


def _bound(step: StepModel) -> Iterator[str]:
    """The bound names that a step reads."""
    return (part.name for value in values(step) for part in walk(value, operands) if isinstance(part, Bound))


# ---------------------------------------------------------------- what is observed, and read


def reads_of_observed(program: Program) -> Mapping[str, frozenset[str]]:
    """By step the observed names that it reads, through lets too."""
    return _reads_of(program, _observed(program))


def reads_of_drawn(program: Program) -> Mapping[str, frozenset[str]]:
    """By step the names bound by `sample` and `observe` that it reads, through lets too."""
    drawn = (*sites(program.steps, SampleModel), *sites(program.steps, ObserveModel))
    return _reads_of(program, frozenset(name for site in drawn for name, _ in site.bound))


def _reads_of(program: Program, wanted: frozenset[str]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for step in all_steps(program.steps):
        read = frozenset((*_bound(step), *_data(step)))
        through = frozenset[str]().union(*(found[name] for name in read if name in found and name not in wanted))
        found |= dict.fromkeys(_names(step), (read & wanted) | through)
    return found


def read_ahead(program: Program) -> frozenset[str]:
    """Observed names that are read as data: by a step above, by their own later elements, or after the fit."""
    reads, observed = reads_of_observed(program), _observed(program)
    after = frozenset[str]().union(*(reads[name] for name in predicted(program)))
    above = frozenset(name for step in all_steps(program.steps) for name in _data(step)) & observed
    return after | above | {name for name in observed if name in reads.get(name, ())}


def filled_in_predictors(program: Program) -> frozenset[str]:
    """Observed names whose missing cells are filled in so that another observed step can read them: no outcomes."""
    reads, observed = reads_of_observed(program), _observed(program)
    filled = {site.name for site in sites(program.steps, ObserveModel) if site.missing and site.missing.how != "drop"}
    return frozenset(name for name in filled if any(name in reads.get(other, ()) for other in observed - {name}))


def _observed(program: Program) -> frozenset[str]:
    return frozenset(site.name for site in sites(program.steps, ObserveModel))


def _data(step: StepModel) -> Iterator[str]:
    """The names that no step above binds, and this one reads."""
    return (part.name for value in values(step) for part in walk(value, operands) if isinstance(part, Data))


def _names(step: StepModel) -> tuple[str, ...]:
    match step:
        case LetModel(names=names) | ParamModel(names=names):
            return names
        case ScoreModel(name=name):
            return (name,)
        case _:
            return (step.site.name, *(name for name, _ in step.site.bound))
