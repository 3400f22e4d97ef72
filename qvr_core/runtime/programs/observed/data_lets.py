"""Lets of data at run time: what a step observes of them, and the numbers of the fit that new rows are scaled by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from qvr_core.arrays.engine import Tensor
from qvr_core.runtime.programs.arithmetic import Parts, compile_expr
from qvr_core.runtime.programs.data_types import DeclaredData
from qvr_core.runtime.programs.execution import Request
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.steps import Step, make_step
from qvr_core.runtime.values.cells import Cell
from qvr_core.runtime.values.errors import MissingData
from qvr_core.semantics.types.data_lets import (
    behind_observed,
    data_of_lets,
    observed_lets,
    row_sets,
    statistics,
    values_of,
)
from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel


class DataLet:
    """A let of data.  What a step observes of it stands among what is given, as data do that are read from a file."""

    def __init__(self, step: LetModel, plain: Step, program: Program, parts: Parts) -> None:
        self.names = step.names
        self.observed = observed_lets(program).intersection(step.names)
        self.data = data_of_lets(program)[step.names[0]]
        self.lacks_nothing = behind_observed(program).isdisjoint(step.names)
        value, found = _with_names(step, row_sets(program))
        frozen = found and not program.uses_input and not (step.indexed is not None and step.indexed.recursive)
        self.statistics = (
            {name: (compile_expr(one, parts), one.type.sizes) for name, one in found.items()} if frozen else {}
        )
        self.step = make_step(value, program.name, parts) if frozen else plain

    def run(self, frame: Frame) -> None:
        """Bind the names; leave those unbound that are observed, where the data that they are computed from are not
        given: they are drawn, as an observed name without data is."""
        given = {name: cell for name in self.observed if (cell := frame.supplied(name)) is not None}
        if len(given) < len(self.names):
            try:
                for name, (value, axes) in self.statistics.items():
                    frame.bound[name] = _of_the_fit(frame, name, axes) or value(frame)
                self.step.run(frame)
            except MissingData:
                if self.lacks_nothing:
                    raise
        frame.bound.update(given)
        frame.given.update(
            {
                name: frame.bound[name]
                for name in self.observed
                if name in frame.bound and name not in frame.request.anew
            }
        )


def _of_the_fit(frame: Frame, name: str, sizes: Sequence[object]) -> Cell | None:
    """What the fit has computed under a name, where it has the sizes that the new data want: a set that has grown has
    elements that the fit did not see."""
    known = frame.request.statistics.get(name)
    return None if known is None or tuple(known.shape) != tuple(sizes) else Cell(known, False)


def _with_names(step: LetModel, rows: frozenset[str]) -> tuple[LetModel, dict[str, Expr]]:
    """The let with names for the numbers that it computes from all elements, and what they stand for."""
    found: dict[str, Expr] = {}
    made: list[Expr] = []
    for at, value in enumerate(values_of(step)):
        one, own = statistics(value, step.names[at], rows)
        made.append(one)
        found |= own
    if step.indexed is None:
        return replace(step, value=made[0]), found
    return replace(step, value=made[0], indexed=replace(step.indexed, values=tuple(made))), found


def with_data_lets(program: Program, steps: Sequence[Step], parts: Parts) -> list[Step]:
    """The run-time steps of a program with its lets of data."""
    known = data_of_lets(program)
    return [
        DataLet(step, made, program, parts) if isinstance(step, LetModel) and known.keys() >= {*step.names} else made
        for step, made in zip(program.steps, steps, strict=True)
    ]


class Observing(Protocol):
    """What is asked of a program module."""

    name: str
    steps: list[Step]
    declared: dict[str, DeclaredData]


def observed_values(
    model: Observing, known: Mapping[str, Any], statistics: Mapping[str, Tensor] | None = None
) -> dict[str, Any]:
    """The values of the lets that a program observes, computed from known data and from `statistics` of a fit; none
    where these lack something."""
    steps = [step for step in model.steps if isinstance(step, DataLet) and not step.lacks_nothing]
    if not steps:
        return {}
    frame = Frame(
        model.name,
        Request(observations=known, statistics=statistics or {}),
        1,
        None,
        False,
        {},
        declared=model.declared,
    )
    for step in steps:
        step.run(frame)
    return {name: frame.bound[name].value for step in steps for name in step.observed if name in frame.bound}


def numbers_of(model: Observing, known: Mapping[str, Any]) -> dict[str, Tensor]:
    """What the lets of a program compute from all of their data, by the names of `statistics`."""
    steps = [step for step in model.steps if isinstance(step, DataLet)]
    if not any(step.statistics for step in steps):
        return {}
    frame = Frame(model.name, Request(observations=known), 1, None, False, {}, declared=model.declared)
    for step in steps:
        step.run(frame)
    return {name: frame.bound[name].value for step in steps for name in step.statistics if name in frame.bound}
