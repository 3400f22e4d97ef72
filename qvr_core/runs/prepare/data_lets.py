"""Lets of data in a run: whether they may be observed as they are, and what of the fit's data is kept with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.record.atomic_files import read_json, write_json
from qvr_core.runs.record.store import RunDirectory
from qvr_core.runtime.programs.observed.data_lets import numbers_of, observed_values
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.language.family import support_words
from qvr_core.semantics.types.data_lets import statistics_of
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import ObserveModel, Site
from qvr_core.semantics.types.walk import sites


def check_observed_lets(model: ProgramModule, known: Mapping[str, Any]) -> None:
    """Whether the lets that a program observes have values that their families draw.  Raises `Refused`."""
    found = observed_values(model, {**model.data, **known})
    for site in sites(model.program.steps, ObserveModel):
        value = found.get(site.name)
        wrong = None if value is None or not is_tensor(value) else _wrong(site, value)
        if wrong is not None:
            fix = "Look at the line that computes it, and at the data that it reads"
            raise Refused("data", f"`{site.name}` is {wrong}", site=site.name, fixes=(fix,))


def _wrong(site: Site, value: Tensor) -> str | None:
    number = value.to(arrays.float64)
    if not bool(arrays.isfinite(number).all()):
        return "not finite everywhere: what it is computed from has empty cells, or a function ends there"
    draw = site.draw
    if not isinstance(draw, FamilyDraw) or site.lengths is not None:
        return None
    family = facts_of_draw(draw)
    support = family.support
    outside = arrays.zeros_like(number, dtype=arrays.bool)
    if support.low is not None:
        outside = outside | (number < support.low)
    if support.high is not None:
        outside = outside | (number > support.high)
    if family.discrete:
        outside = outside | (number != number.round())
    if not bool(outside.any()):
        return None
    return f"{float(number[outside].reshape(-1)[0]):g} somewhere, and {family.name} draws {support_words(family)}"


def keep_numbers(model: ProgramModule, known: Mapping[str, Any], run: RunDirectory) -> None:
    """Write what lets compute from all of the data of a fit beside it, where there is something."""
    if any(True for _ in statistics_of(model.program)):
        found = numbers_of(model, {**model.data, **known})
        write_json(run.statistics, {name: value.tolist() for name, value in found.items()})


def kept_numbers(run: RunDirectory) -> dict[str, Tensor]:
    """These numbers of a run; none of one that has none.  Raises `DamagedFile`, OSError."""
    if not run.statistics.exists():
        return {}
    return {name: arrays.as_tensor(value) for name, value in read_json(run.statistics).items()}
