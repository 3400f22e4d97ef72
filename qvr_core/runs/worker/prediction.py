"""Draws from what a run has left: the posterior or prior predictive, of its own data or of new rows."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from pydantic import ValidationError
from torch import Tensor

from qvr_core import inference
from qvr_core.analysis import Analyzer, analyse
from qvr_core.data.binding import RowsOf, Whole, bind
from qvr_core.data.frames import of_columns
from qvr_core.data.needs import Need, Needs, needs_of, open_sets
from qvr_core.data.tables import read_columns
from qvr_core.data.typed.layout import Layout
from qvr_core.data.typed.sources import Source, Sources
from qvr_core.inference.axes import Axes, axes_of, observed_axes
from qvr_core.inference.lifting import LiftedModel
from qvr_core.inference.pointwise import Given
from qvr_core.runs.figures.checkpoint import newest, restore_module
from qvr_core.runs.figures.curvature import approximated
from qvr_core.runs.fit.nuts import asked_of
from qvr_core.runs.prepare import typed as typed_data
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.prepare import data_path, prepare, sized
from qvr_core.runs.prepare.runnable import built, chosen
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.protocol import Job
from qvr_core.runs.record.store import RunDirectory
from qvr_core.runs.worker.sampling import predictive, restored
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.semantics.file.open_sets import KnownSet
from qvr_core.semantics.types.model import Data, LetModel, ObserveModel, Program
from qvr_core.semantics.types.walk import all_steps, operands, sites, walk
from qvr_core.semantics.types.walk import values as values_of

ENOUGH = 3
"""Levels that were not seen before, by name in a sentence."""


@dataclass(frozen=True)
class Drawn:
    """{name: (draws, …)}, or (draws, rows, …) of a program that reads its rows; what their axes are called, and what is
    to be said of them."""

    values: dict[str, Tensor]
    axes: Axes
    notes: tuple[str, ...] = ()


def from_prior(job: Job, draws: int, seed: int) -> Drawn:
    """Latents, kept lets, observed and predicted steps by the prior alone, on a run's data.  Raises `Refused`,
    `DataProblem`, `RuntimeProblem`."""
    prepared = prepare(job, Analyzer(job.text).snapshot())
    if any(True for _ in prepared.model.parameters()):
        message = f"`{prepared.program.name}` has parameters that are fitted, so its prior says nothing of its data"
        raise Refused("no-prior", message, fixes=("Draw from a fit: leave --prior out", "Put priors on its weights"))
    x, observations = prepared.move(prepared.train.batch(torch.arange(prepared.train.rows)))
    latents, later = Given(prepared.model, x, observations).prior(draws, seed)
    return Drawn({**latents, **later}, _axes(prepared.model, observations))


def from_posterior(run: RunDirectory, draws: int, seed: int, data: str | None, base: str) -> Drawn:
    """Observed and predicted steps given draws of the latents that a run has stored; on the run's data, or on new rows
    from a source such as `csv:new.csv`, whose path starts at `base`."""
    if not run.posterior.exists():
        return _from_guide(run, draws, seed, data, base)
    posterior = _Posterior.of(run, draws)
    if data is None:
        given = _own(run)
        samples = posterior.samples(given)
        values = {**posterior.stored, **given.replicates(samples, seed), **given.predictions(samples)}
        return Drawn(values, _axes(given.program, given.observations), posterior.notes)
    if posterior.double:
        torch.set_default_dtype(torch.float64)
    given, grown = _on_new_rows(with_data(run.job(), data, base), posterior)
    if run.job().config.algorithm == "svi":
        found, damaged = newest(run.checkpoints)
        if found is None:
            raise damaged[0] if damaged else Refused("no-checkpoint", f"run {run.run_id} has no checkpoint")
        restore_module("model", given.program, found.tensors)
    # the cells that were filled in are not those of the new rows
    samples = {n: value for n, value in posterior.samples(given).items() if n not in given.program.imputed}
    if given.x is not None:
        parameters = {name for name, _ in given.program.named_parameters()}
        samples = {name: value for name, value in samples.items() if name in parameters}
    samples = _extended(given, samples, posterior, grown, seed)
    values = {**given.of_new_rows(samples, seed), **given.predictions(samples)}
    told = tuple(_told(name, known, posterior) for name, known in grown.items())
    return Drawn(values, _axes(given.program, given.observations), (*posterior.notes, *told))


def with_data(job: Job, data: str, base: str) -> Job:
    """A job that reads another source, whose path starts at `base`.  Raises `Refused` where it is none."""
    try:
        config = job.config.model_copy(update={"data": RunConfig(data=data).data, "batch_size": None})
    except ValidationError as problem:
        raise Refused("data", f"--data: {problem.errors()[0]['msg'].removeprefix('Value error, ')}") from None
    return job.model_copy(update={"config": config, "base": base})


def _from_guide(run: RunDirectory, draws: int, seed: int, data: str | None, base: str) -> Drawn:
    """Of a fit by svi whose latents are drawn anew in each row: by its guide."""
    fit = restored(run)
    if data is None:
        return Drawn(predictive(fit, draws, seed), _axes(fit.model, {}))
    given, _ = _on_new_rows(with_data(run.job(), data, base), _Posterior({}, {}, False, ()))
    guide, _ = approximated(fit.prepared, fit.guide)
    torch.manual_seed(seed)
    fit.model.eval()
    values = inference.Predictive(fit.model, guide, num_samples=draws)(given.x, given.observations)
    return Drawn(values, _axes(fit.model, {}))


def _axes(model: ProgramModule, observations: Mapping[str, Any]) -> Axes:
    return {**axes_of(model, observations), **observed_axes(model)}


@dataclass(frozen=True)
class _Posterior:
    """The stored draws of a run, (draws, …) by the name in the file, and the elements of the sets under its latents:
    lets are computed anew for new rows."""

    stored: dict[str, Tensor]
    sets: dict[str, KnownSet]
    double: bool
    notes: tuple[str, ...]

    @classmethod
    def of(cls, run: RunDirectory, draws: int) -> _Posterior:
        """Evenly spread draws.  Raises `DamagedFile`, OSError."""
        import xarray

        run.check_posterior()
        with xarray.open_dataset(run.posterior, group="posterior", engine="h5netcdf") as dataset:
            have = dataset.sizes["chain"] * dataset.sizes["draw"]
            rows = np.linspace(0, have - 1, min(draws, have)).round().astype(np.int64)
            stored = {
                str(name): torch.from_numpy(value.to_numpy().reshape(have, *value.shape[2:])[rows])
                for name, value in dataset.data_vars.items()
            }
            own = _of_the_fit(run)
            over = {dim for name, value in dataset.data_vars.items() if name not in own for dim in value.dims[2:]}
            sets = {str(dim): _known(dataset.coords[dim].to_numpy()) for dim in dataset.dims if dim in over}
        few = (f"the run has {have:,} draws: all of them are used",) if draws > have else ()
        return cls(stored, sets, any(v.dtype == torch.float64 for v in stored.values()), few)

    def samples(self, given: Given) -> dict[str, Tensor]:
        """The draws by the names that a model gives them; lets are left out."""
        model = given.program
        parameters = {name for name, _ in model.named_parameters()} if isinstance(given.model, LiftedModel) else set()
        found: dict[str, Tensor] = {}
        for written, value in self.stored.items():
            site, dot, path = written.partition(".")
            if written in model.sites or written in parameters:
                found[written] = value
            elif dot and site in model.sites:
                found[f"{site}/{path}"] = value
        return found


def _of_the_fit(run: RunDirectory) -> set[str]:
    """Names of the values that a run has stored beside its latents, and of cells that it has filled in."""
    job = run.job()
    steps = chosen(job, Analyzer(job.text).snapshot().model).steps
    lets = {name for step in steps if isinstance(step, LetModel) for name in step.names}
    return lets | {site.name for site in sites(steps, ObserveModel) if site.missing is not None}


def _known(coordinates: Any) -> KnownSet:
    labelled = coordinates.dtype.kind not in "iuf"
    return KnownSet(len(coordinates), tuple(map(str, coordinates.tolist())) if labelled else None)


def _own(run: RunDirectory) -> Given:
    """The model of a run with the data that it was fitted to."""
    job = run.job()
    if job.config.algorithm == "nuts":
        return asked_of(prepare(job, Analyzer(job.text).snapshot())).given
    prepared = restored(run).prepared
    _, observations = prepared.move(prepared.train.batch(torch.arange(prepared.train.rows)))
    return Given(prepared.model, None, observations)


# ---------------------------------------------------------------- new rows


def _on_new_rows(job: Job, posterior: _Posterior) -> tuple[Given, dict[str, KnownSet]]:
    """The model with new data in place of those that it was fitted to, and the sets that have elements not seen before.
    What is observed need not be in the file."""
    snapshot = Analyzer(job.text).snapshot()
    program = chosen(job, snapshot.model)
    needs = needs_of(program)
    grown: dict[str, KnownSet] = {}
    known: dict[str, KnownSet] = {}
    typed = typed_data.is_typed(job.config, needs, snapshot)
    columns = None if typed else read_columns(data_path(job), job.config.source, None)
    job = _resized(job, needs, posterior, None if columns is None else columns.rows)
    if typed:
        files = typed_data.read_sources(job, None)
        if open_sets(snapshot.model):
            told = typed_data.told(job, _wanted(program, needs, files.sources), program, snapshot, files)
            known = {name: _merged(name, one, posterior) for name, one in told.items()}
            grown = {n: one for n, one in known.items() if n in posterior.sets and one.size > posterior.sets[n].size}
        job = _resized(job, needs, posterior, getattr(files.sources.main, "rows", None))
        snapshot = sized(job, known) if known else analyse(job.text)
        program = chosen(job, snapshot.model, known)
        needs = needs_of(program)
        wanted = _wanted(program, needs, files.sources)
        rows = typed_data.bound(job, wanted, files)
    else:
        assert columns is not None
        program = chosen(job, analyse(job.text).model)
        needs = needs_of(program)
        wanted = _wanted(program, needs, of_columns(columns, 0), job.config)
        called = {need.name for need in wanted.all}
        names = {n: c for n, c in job.config.columns.items() if isinstance(c, str) and n in called}
        rows = bind(columns, wanted, names)
    model: ProgramModule | LiftedModel = built(job, known)
    x = rows.x if isinstance(rows, RowsOf) else None
    observations = dict(rows.observations) if isinstance(rows, RowsOf | Whole) else {}  # pyright: ignore[reportUnnecessaryIsInstance]
    observations |= _uncensored(needs, wanted, rows.rows if columns is None else columns.rows)
    if job.config.algorithm == "nuts" and any(name in posterior.stored for name, _ in model.named_parameters()):
        model = LiftedModel(model, x, observations, job.config.prior_scale)
    return Given(model, x, dict(observations)), grown


NO_MATTER = {"right_censored": 0, "left_censored": 0, "interval": math.inf, "mask": 1, "weight": 1}
"""Options that say how an observation counts, and what makes them say nothing of a new row."""


def _wanted(program: Program, needs: Needs, sources: Sources | Source, config: RunConfig | None = None) -> Needs:
    """What new data must hold: not what is observed, but where a part of it may be filled in for others to read; nor
    what only says how observations count."""
    if not isinstance(sources, Sources):
        assert config is not None
        sources = Sources(sources, {}, config.columns)
    read = _read(program)

    def held(need: Need) -> bool:
        layout = Layout([need], sources)
        return need.name in sources.named or layout.columns_in(need, layout.source(layout.key(need))) is not None

    observed = tuple(need for need in needs.observed if need.missing not in ("", "drop") and held(need))
    data = tuple(need for need in needs.data if need.name in read or not _counts(need) or held(need))
    return replace(needs, observed=observed, data=data)


def _counts(need: Need) -> bool:
    return need.purpose is not None and need.purpose[0] in NO_MATTER


def _read(program: Program) -> set[str]:
    """The data names that steps compute with."""
    found: set[str] = set()
    for step in all_steps(program.steps):
        site = getattr(step, "site", None)
        options = [] if site is None else [site.mask, site.weight, *(value for _, value in site.limits)]
        for value in values_of(step):
            if not any(value is option for option in options):
                found |= {part.name for part in walk(value, operands) if isinstance(part, Data)}
    return found


def _uncensored(needs: Needs, wanted: Needs, rows: int | None) -> dict[str, Tensor]:
    """For options that the new data say nothing of: every row counts, in full."""
    absent = {need.name for need in needs.data} - {need.name for need in wanted.data}
    plates = {need.name: (need.plate[1],) for need in needs.observed if need.plate is not None}
    found: dict[str, Tensor] = {}
    for need in needs.data:
        if need.name in absent and need.purpose is not None:
            option, site = need.purpose
            axes = None if need.axes is None else tuple(axis.size or rows or 1 for axis in need.axes)
            found[need.name] = torch.full(axes or plates.get(site) or (rows or 1,), NO_MATTER[option])
    return found


def _resized(job: Job, needs: Needs, posterior: _Posterior, rows: int | None) -> Job:
    """The program with as many elements as there are new rows in the set of declared size that its observations run
    over.  Raises `Refused` where a latent runs over it too: nothing says which of its elements the rows are."""
    text = job.text
    for name, size in dict.fromkeys(need.plate for need in needs.observed if need.plate is not None):
        if rows is None or rows == size or not re.search(rf"^object\s+{name}\s*:\s*FinSet\s+{size}\b", text, re.M):
            continue
        if name in posterior.sets:
            message = f"the new data have {rows} rows, and `{name}`, which latents run over, has {size} elements"
            fix = f"Declare `object {name} : FinSet _`, and give the data a column of labels for it"
            raise Refused("data-size", message, fixes=(fix,))
        text = re.sub(rf"^(object\s+{name}\s*:\s*FinSet\s+){size}\b", rf"\g<1>{rows}", text, flags=re.M)
    return job.model_copy(update={"text": text})


def _merged(name: str, new: KnownSet, posterior: _Posterior) -> KnownSet:
    """The elements that a set had in the fit, then those that only the new data have."""
    old = posterior.sets.get(name)
    if old is None:
        return new
    if old.labels is None or new.labels is None:
        message = f"latents run over `{name}`, and nothing says whether the new rows are elements of the fit or others"
        raise Refused("data-size", message, fixes=(f"Give both files a column `{name}` of labels, and fit again",))
    merged = (*old.labels, *(one for one in new.labels if one not in old.labels))
    return KnownSet(len(merged), merged)


def _extended(
    given: Given, samples: dict[str, Tensor], posterior: _Posterior, grown: Mapping[str, KnownSet], seed: int
) -> dict[str, Tensor]:
    """The draws with those of elements that were not seen before, which come from their prior given the others."""
    if not grown:
        return samples
    model, axes = given.program, axes_of(given.program)
    lacking = {name for name in samples if any(axis.name in grown for axis in axes.get(name, ()))}
    found = {name: value for name, value in samples.items() if name not in lacking}
    for name in [name for name in model.sites if name in lacking]:
        site = model.sites[name].site
        joint = site.chain is not None or (site.over is not None and site.over.space in _spaces(given, grown))
        if joint or name not in samples:
            message = f"`{name}` is drawn jointly, so elements that were not in the fit cannot be added to it"
            raise Refused("data-size", message, site=name)
        whole = given.replicates(found, seed, [name], len(samples[name]))[name].clone()
        old = samples[name]
        whole[tuple(slice(0, size) for size in old.shape)] = old
        found[name] = whole
    return found


def _spaces(given: Given, grown: Mapping[str, KnownSet]) -> list[Any]:
    """The spaces of sets by their names."""
    sites = [module.site for module in given.program.sites.values()]
    spaces = [site.over.space for site in sites if site.over is not None]
    return [space for space in spaces if getattr(space, "nominal", None) in grown]


def _told(name: str, known: KnownSet, posterior: _Posterior) -> str:
    unseen: Sequence[str] = (known.labels or ())[posterior.sets[name].size :]
    shown = ", ".join(f"`{one}`" for one in unseen[:ENOUGH]) + (", …" if len(unseen) > ENOUGH else "")
    many = "elements" if len(unseen) > 1 else "element"
    return f"{len(unseen)} {many} of `{name}` not seen in the fit ({shown}): drawn from the prior given the others"
