"""Which terms of a statistical program's log joint add up over its rows, so that a part of them can stand for all.

What reads data is looked at: on some rows its value must be the sum of its values on two halves of them, whatever the
latents are.  What reads latents alone counts once.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.runtime.programs.arrow_site import ArrowSite
from qvr_core.runtime.programs.execution import Execution
from qvr_core.runtime.programs.frame import as_tensor
from qvr_core.runtime.programs.handlers import Subsample, by_rows, condition, replay, substitute
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.errors import InputProblem, RuntimeProblem
from qvr_core.semantics.types.model.expressions import Bound, Data
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import (
    LetModel,
    MarginalizeModel,
    ObserveModel,
    ParamModel,
    PredictModel,
    SampleModel,
    ScoreModel,
    StepModel,
)
from qvr_core.semantics.types.walk import all_steps, body, until_arrows, walk

ROWS = 64
"""Rows that are looked at."""
DRAWS = 8
"""Draws of the latents that are looked at."""
ROUNDING = 1e-7
"""A difference that is rounding in double precision, relative to what was added."""


class NotASum(InputProblem):
    """A step depends on the rows and is no sum over them, so that no part of them can stand for all."""


def check_parts(part: Subsample, model: ProgramModule, observations: Mapping[str, Any]) -> None:
    """Whether the sites that `part` scales are those that add up over the rows, of which `observations` are some.

    Raises `InputProblem`.
    """
    if model.imputed:
        name = model.imputed[0]
        raise InputProblem(f"`{name}` fills in missing cells, each a latent of all rows: give all rows", site=name)
    found = row_terms(model, {name: as_tensor(value) for name, value in observations.items()})
    drawn = {step.site.name for step in all_steps(model.program.steps) if isinstance(step, SampleModel)}
    scored = found - drawn  # what is drawn is never scaled
    lacking, surplus = sorted(scored - set(part.sites)), sorted(set(part.sites) - found)
    wanted = "{" + ", ".join(f'"{name}"' for name in sorted(scored)) + "}"
    if lacking:
        message = f"subsample leaves `{lacking[0]}` out, a sum over the rows: its part would be taken for all of it"
        raise InputProblem(f"{message}; sites = {wanted}", site=lacking[0])
    if surplus:
        message = f"subsample scales `{surplus[0]}`, which is no sum over the rows"
        raise InputProblem(f"{message}; sites = {wanted}", site=surplus[0])


def row_terms(model: ProgramModule, observations: Mapping[str, Tensor]) -> frozenset[str]:
    """The sites whose log density is a sum over rows, found on some rows.

    Raises `NotASum` for a site that depends on the rows and is no sum over them.
    """
    reading = _reading_data(model)
    whole = {name: _double(value)[:ROWS] for name, value in observations.items()}
    count = len(next(iter(whole.values())))
    if count < 2:
        return reading
    halves = [{name: value[part] for name, value in whole.items()} for part in (slice(0, None, 2), slice(1, None, 2))]
    return adding_up((model, whole), [(model, half) for half in halves])


Seen = tuple[ProgramModule, Mapping[str, Any]]
"""A program, and the rows that it is built for."""


def adding_up(whole: Seen, halves: Sequence[Seen]) -> frozenset[str]:
    """The sites whose log density on some rows is the sum of those on two halves of them.

    Raises `NotASum` for a site that depends on the rows and is no sum over them.
    """
    reading = _reading_data(whole[0])
    seen = [(model, {name: _double(value) for name, value in rows.items()}) for model, rows in (whole, *halves)]
    with arrays.random.fork_rng(), ExitStack() as stack, arrays.no_grad():
        arrays.manual_seed(0)
        exact = [(stack.enter_context(_in_double(model)), rows) for model, rows in seen]
        model, rows = exact[0]
        try:
            run = model.execute(None, condition(rows), by_rows(DRAWS))
            drawn = {n: s.value for n, s in run.sites.items() if s.kind == "sample" and n not in rows}
            # what a draw from an arrow is given is the noise of its other draws
            noise = {n: run.sites[n].noise for n in drawn}
            given = (substitute(drawn), replay(noise), by_rows(DRAWS))  # pyright: ignore[reportArgumentType]
            total, one, other = (_terms(each.execute(None, condition(part), *given)) for each, part in exact)
        except RuntimeProblem as problem:
            message = f"a part of the rows does not fit the program: {problem}"
            raise InputProblem(message, site=problem.site) from problem
    return frozenset(name for name in total if _adds_up(name, total[name], one[name], other[name], reading))


def _adds_up(name: str, total: Tensor, one: Tensor, other: Tensor, reading: frozenset[str]) -> bool:
    known = arrays.isfinite(total) & arrays.isfinite(one) & arrays.isfinite(other)
    total, one, other = total[known], one[known], other[known]
    near = ROUNDING * (total.abs() + one.abs() + other.abs())
    if bool(((one + other - total).abs() <= near).all()) and name in reading:
        return True
    if bool((((one - total).abs() <= near) & ((other - total).abs() <= near)).all()):
        return False
    raise NotASum(
        f"`{name}` depends on the rows and is no sum over them: its value on some rows is not that on one half and that"
        " on the other together",
        site=name,
    )


def _terms(run: Execution) -> dict[str, Tensor]:
    return {
        name: site.log_prob.expand(run.rows)
        for name, site in run.sites.items()
        if site.log_prob is not None and site.kind != "prior"
    }


class _in_double:
    """A copy of a model in double precision, in which rounding cannot be taken for a term."""

    def __init__(self, model: ProgramModule) -> None:
        self.copy = copy.deepcopy(model).to("cpu").double()

    def __enter__(self) -> ProgramModule:
        self.before = arrays.get_default_dtype()
        arrays.set_default_dtype(arrays.float64)
        return self.copy

    def __exit__(self, *_: object) -> None:
        arrays.set_default_dtype(self.before)


def _double(value: Any) -> Tensor:
    tensor = as_tensor(value).cpu()
    return tensor.double() if tensor.is_floating_point() else tensor


# ---------------------------------------------------------------- who reads data


def _reading_data(model: ProgramModule) -> frozenset[str]:
    """Those, and what programs in the arrows of these steps score."""
    found = frozenset(reading_data(model.program))
    arrows = [site for site in model.sites.values() if isinstance(site, ArrowSite)]
    arrows = [site for site in arrows if site.name in found or site.observes]
    return found.union(f"{site.name}.{inner}" for site in arrows for inner in site.module.terms)


def reading_data(program: Program) -> Iterator[str]:
    """The steps whose value or density depends on data or on an observed value."""
    read = {DATA}
    for step in all_steps(program.steps):
        if _observes(step) or not read.isdisjoint(_read(step)):
            names = _names(step)
            read |= names
            yield from names


def _observes(step: StepModel) -> bool:
    return any(isinstance(inner, ObserveModel) for inner in walk(step, body))


def _names(step: StepModel) -> frozenset[str]:
    match step:
        case LetModel(names=names) | ParamModel(names=names):
            return frozenset(names)
        case ScoreModel(name=name):
            return frozenset((name,))
        case SampleModel(site=site) | ObserveModel(site=site) | PredictModel(site=site) | MarginalizeModel(site=site):
            return frozenset((site.name, *(name for name, _ in site.bound)))


DATA = "data "
"""Stands for any data name among the names that are read."""


def _read(step: StepModel) -> Iterator[str]:
    """The names that a step mentions; every data name is `DATA`."""
    for node in walk(step, until_arrows):
        match node:
            case Data():
                yield DATA
            case Bound(name=name):
                yield name
            case _:
                pass
