"""Draws from what a run has left: the posterior or prior predictive, of its own data or of new rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from qvr_core import inference
from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.data.binding import RowsOf, Whole, bind
from qvr_core.data.file_sources import of_columns
from qvr_core.data.needs import Needs, needs_of, open_sets
from qvr_core.data.typed.sources import Sources
from qvr_core.inference.axes import Axes, axes_of
from qvr_core.inference.lifting import LiftedModel
from qvr_core.inference.pointwise import Given
from qvr_core.runs.evaluation.checkpoint import newest, restore_module
from qvr_core.runs.evaluation.curvature import approximated
from qvr_core.runs.fit.nuts import asked_of
from qvr_core.runs.prepare import typed_data
from qvr_core.runs.prepare.data_lets import kept_numbers
from qvr_core.runs.prepare.derivable import check_derivable
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.memory import check_draws
from qvr_core.runs.prepare.prepare import prepare, sized
from qvr_core.runs.prepare.runnable import built, chosen
from qvr_core.runs.record.data_files import changes
from qvr_core.runs.record.netcdf import read_netcdf
from qvr_core.runs.record.program import analysed
from qvr_core.runs.record.protocol import Job
from qvr_core.runs.record.store import RunDirectory
from qvr_core.runs.worker.new_data import NewData
from qvr_core.runs.worker.new_rows import NewRows
from qvr_core.runs.worker.text_generation import predictive, restored
from qvr_core.runtime.programs.labelled.axes import site_axes, state_axes
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.errors import NonFinite
from qvr_core.semantics.file.open_sets import KnownSet
from qvr_core.semantics.programs.parameter_count import parameter_count
from qvr_core.semantics.terms.term_values import term_steps
from qvr_core.semantics.types.model.steps import LetModel, ObserveModel
from qvr_core.semantics.types.spaces import Terms
from qvr_core.semantics.types.walk import sites

CENSORING = {"right_censored", "left_censored", "interval"}
ENOUGH = 3
"""Levels that were not seen before, by name in a sentence."""


@dataclass(frozen=True)
class Drawn:
    """{name: (draws, …)}, or (draws, rows, …) of a program that reads its rows; what their axes are called, and what is
    to be said of them.  `observed` are the data of observed steps, as far as they are known."""

    values: dict[str, Tensor]
    axes: Axes
    notes: tuple[str, ...] = ()
    observed: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    steps: tuple[str, ...] = ()
    """The observed steps that were drawn."""
    censored: tuple[str, ...] = ()
    """Those of them whose data may be cut off, which the draws are not."""
    terms: Mapping[str, Terms] = field(default_factory=dict[str, Terms])
    """The types of the values that are terms, tables (draws, …, nodes, columns)."""


def from_prior(job: Job, draws: int, seed: int, *, most: int | None = None) -> Drawn:
    """Latents, kept lets, observed and predicted steps by the prior alone, on a run's data; fewer draws where these
    times the observed numbers would be more than `most`.  Raises `Refused`, `DataProblem`, `RuntimeProblem`."""
    snapshot = analysed(job)
    program = chosen(job, snapshot.model)
    if parameter_count(snapshot.model, program):
        message = f"`{program.name}` has parameters that are fitted, so its prior says nothing of its data"
        raise Refused("no-prior", message, fixes=("Draw from a fit: leave --prior out", "Put priors on its weights"))
    prepared = prepare(job, snapshot)
    x, observations = prepared.move(prepared.train.batch(arrays.arange(prepared.train.rows)))
    given = Given(prepared.model, x, observations)
    if most is not None:
        numbers = sum(value.numel() for value in given.observed_data().values())
        draws = max(2, min(draws, most // max(1, numbers)))
    check_draws(prepared.program, draws, job.config.memory_limit)
    latents, later, wrong = given.checked_prior(draws, seed)
    known = {} if job.config.source == "synthetic" else given.observed_data()
    notes = () if wrong is None else (_unsound(wrong, {**latents, **later}),)
    found = Drawn({**latents, **later}, _axes(prepared.model, observations), notes, known, *_steps(given, later))
    return replace(found, terms=term_steps(prepared.program))


def _unsound(wrong: NonFinite, values: Mapping[str, Tensor]) -> str:
    """That draws of a prior leave what a family or a function takes, where it begins, and how many are no numbers."""
    gone = {name: int(value.isnan().flatten(1).any(1).sum()) for name, value in values.items() if value.ndim > 1}
    lost = [f"{many} of {len(values[name])} draws of `{name}`" for name, many in gone.items() if many]
    place = f"{wrong.place}: " if wrong.place else ""
    return f"{place}the prior draws what the program cannot take: {wrong}" + (
        f"; NaN: {', '.join(lost)}" if lost else ""
    )


def from_posterior(run: RunDirectory, draws: int, seed: int, data: NewData | None = None) -> Drawn:
    """Observed and predicted steps given draws of the latents that a run has stored; on the run's data, or on new
    rows.  Raises `Refused`, `DataProblem`, `RuntimeProblem`."""
    if not run.posterior.exists():
        return _from_guide(run, draws, seed, data)
    posterior = _Posterior.of(run, draws)
    if data is None:
        given, moved = _own(run), [f"the run was fitted to other data: {one}" for one in changes(run.path)]
        samples = posterior.samples(given)
        hidden = given.hidden_states(samples)
        values = {**posterior.stored, **given.replicates(samples, seed), **given.predictions(samples), **hidden}
        axes = {**_axes(given.program, given.observations), **state_axes(given.program.program)}
        found = Drawn(values, axes, (*posterior.notes, *moved), given.observed_data(), *_steps(given, values))
        return replace(found, terms=term_steps(given.program.program))
    if posterior.double:
        arrays.set_default_dtype(arrays.float64)
    new = _on_new_rows(run.job(), data, posterior)
    given = new.given
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
    samples = _extended(given, samples, posterior, new.grown, seed)
    values = _new_first({**given.of_new_rows(samples, seed), **given.predictions(samples)}, given, posterior.stored)
    axes, notes = _axes(given.program, given.observations), (*posterior.notes, *new.notes)
    drawn = Drawn(values, axes, notes, given.observed_data(), *_steps(given, values))
    return replace(drawn, terms=term_steps(given.program.program))


def _new_first(values: Mapping[str, Tensor], given: Given, stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What is predicted, then lets of the new rows, and last those that are what they were in the fit."""
    drawn = {*given.observed_steps, *given.program.predicted}

    def place(name: str) -> int:
        same = name in stored and stored[name].shape == values[name].shape and stored[name].allclose(values[name])
        return 0 if name in drawn else 1 + int(same)

    return {name: values[name] for name in sorted(values, key=place)}


def _steps(given: Given, values: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The observed steps that were drawn, and which of them have censored data."""
    limited = {
        site.name for site in sites(given.program.program.steps, ObserveModel) if CENSORING & dict(site.limits).keys()
    }
    drawn = tuple(name for name in given.observed_steps if name in values)
    return drawn, tuple(name for name in drawn if name in limited)


def _from_guide(run: RunDirectory, draws: int, seed: int, data: NewData | None) -> Drawn:
    """Of a fit by svi whose latents are drawn anew in each row: by its guide."""
    fit = restored(run)
    if data is None:
        values, note = predictive(fit, draws, seed)
        notes = () if note is None else (note,)
        return Drawn(values, _axes(fit.model, {}), notes, terms=term_steps(fit.model.program))
    own = fit.guide.program.program.data if isinstance(fit.guide, inference.ProgramGuide) else ()
    read = frozenset(item.name for item in own)
    new = _on_new_rows(run.job(), data, _Posterior({}, {}, False, ()), read)
    guide, _ = approximated(fit.prepared, fit.guide)
    arrays.manual_seed(seed)
    fit.model.eval()
    predicted = inference.Predictive(fit.model, guide, num_samples=draws)
    values = predicted(new.given.x, new.given.observations, guide_observations=new.by_guide)
    return Drawn(values, _axes(fit.model, {}), new.notes, terms=term_steps(fit.model.program))


def _axes(model: ProgramModule, observations: Mapping[str, Any]) -> Axes:
    return {**axes_of(model, observations), **site_axes(model.program)}


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
        run.check_posterior()
        dataset = read_netcdf(run.posterior, ("posterior",))["posterior"]
        have = dataset.sizes["chain"] * dataset.sizes["draw"]
        rows = np.linspace(0, have - 1, min(draws, have)).round().astype(np.int64)
        stored = {
            name: arrays.from_numpy(value.values.reshape(have, *value.shape[2:])[rows])
            for name, value in dataset.data_vars.items()
        }
        own = _of_the_fit(run)
        over = {dim for name, value in dataset.data_vars.items() if name not in own for dim in value.dims[2:]}
        sets = {dim: _known(dataset.coords[dim]) for dim in dataset.dims if dim in over}
        few = (f"the run has {have:,} draws: all of them are used",) if draws > have else ()
        return cls(stored, sets, any(v.dtype == arrays.float64 for v in stored.values()), few)

    def samples(self, given: Given) -> dict[str, Tensor]:
        """The draws by the names that a model gives them; lets are left out."""
        return latents_of(self.stored, given)


def latents_of(stored: Mapping[str, Tensor], given: Given) -> dict[str, Tensor]:
    """Stored draws by the names that a model gives its latents; lets are left out."""
    model = given.program
    parameters = {name for name, _ in model.named_parameters()} if isinstance(given.model, LiftedModel) else set[str]()
    found: dict[str, Tensor] = {}
    for written, value in stored.items():
        site, dot, path = written.partition(".")
        if written in model.in_draws or written in parameters:
            found[written] = value
        elif dot and site in model.sites:
            found[f"{site}/{path}" if path else site] = value
    return found


def _of_the_fit(run: RunDirectory) -> set[str]:
    """Names of the values that a run has stored beside its latents, and of cells that it has filled in."""
    job = run.job()
    steps = chosen(job, analysed(job).model).steps
    lets = {name for step in steps if isinstance(step, LetModel) for name in step.names}
    return lets | {site.name for site in sites(steps, ObserveModel) if site.missing is not None}


def _known(coordinates: Any) -> KnownSet:
    labelled = coordinates.dtype.kind not in "iuf"
    return KnownSet(len(coordinates), tuple(map(str, coordinates.tolist())) if labelled else None)


def _own(run: RunDirectory) -> Given:
    """The model of a run with the data that it was fitted to."""
    job = run.job()
    if job.config.algorithm == "nuts":
        return asked_of(prepare(job, analysed(job))).given
    prepared = restored(run).prepared
    _, observations = prepared.move(prepared.train.batch(arrays.arange(prepared.train.rows)))
    return Given(prepared.model, None, observations)


# ---------------------------------------------------------------- new rows


@dataclass(frozen=True)
class _New:
    """A model with new data, the sets that have elements not seen before, and what is to be said of all that."""

    given: Given
    grown: dict[str, KnownSet]
    notes: tuple[str, ...]
    by_guide: dict[str, Tensor]
    """What the guide of the fit reads of what is drawn anew."""


def _on_new_rows(fit: Job, data: NewData, posterior: _Posterior, read: frozenset[str] = frozenset()) -> _New:
    """The model with new data in place of those that it was fitted to.  What is observed need not be there."""
    job = data.job(fit)
    snapshot = analysed(job)
    program = chosen(job, snapshot.model)
    needs = needs_of(program)
    grown: dict[str, KnownSet] = {}
    known: dict[str, KnownSet] = {}
    typed = data.typed or typed_data.is_typed(job.config, needs, snapshot)
    columns = None if typed else data.columns(job)
    job = _resized(job, needs, posterior, None if columns is None else columns.rows)
    if typed:
        files = data.sources(job, fit)
        if unsized := open_sets(snapshot.model):
            new = NewRows(program, needs, files.sources)
            # a set that they say nothing of is that of the fit
            fitted = [name for name in unsized if name in posterior.sets]
            before = {name: posterior.sets[name] for name in new.unsaid(fitted)}
            told = typed_data.told(job, _speaking(new), program, snapshot, files, before)
            told |= {name: one for name, one in before.items() if name not in told or told[name].labels is None}
            known = {name: _merged(name, one, posterior) for name, one in told.items()}
            grown = {n: one for n, one in known.items() if n in posterior.sets and one.size > posterior.sets[n].size}
        job = _resized(job, needs, posterior, getattr(files.sources.main, "rows", None))
        snapshot = sized(job, known) if known else analysed(job)
        program = chosen(job, snapshot.model, known)
        new = NewRows(program, needs_of(program), files.sources, read)
        new.check()
        rows = typed_data.bound(job, new.wanted, files)
    else:
        assert columns is not None
        program = chosen(job, analysed(job).model)
        new = NewRows(program, needs_of(program), Sources(of_columns(columns, 0), {}, job.config.columns), read)
        new.check()
        called = {need.name for need in new.wanted.all}
        names = {n: c for n, c in job.config.columns.items() if isinstance(c, str) and n in called}
        rows = bind(columns, new.wanted, names)
    notes = tuple(new.notes())
    model: ProgramModule | LiftedModel = built(job, known)
    check_derivable(program, model, rows)
    x = rows.x if isinstance(rows, RowsOf) else None
    observations = dict(rows.observations) if isinstance(rows, RowsOf | Whole) else {}  # pyright: ignore[reportUnnecessaryIsInstance]
    kept = kept_numbers(RunDirectory.of(fit))
    by_guide = {name: observations.pop(name) for name in (*observations,) if name in read and name in model.sites}
    observations |= new.uncensored(rows.rows if columns is None else columns.rows)
    if job.config.algorithm == "nuts" and any(name in posterior.stored for name, _ in model.named_parameters()):
        model = LiftedModel(model, x, observations, job.config.prior_scale)
    told = tuple(_unseen_elements(name, known, posterior) for name, known in grown.items())
    scaled = dict.fromkeys(name.rpartition(" ")[0] for name in kept)
    if scaled:
        words = ", ".join(f"`{name}`" for name in scaled)
        notes = (*notes, f"what {words} compute{'s' * (len(scaled) == 1)} from all of the data is that of the fit")
    return _New(Given(model, x, dict(observations), kept), grown, (*notes, *told), by_guide)


def _speaking(new: NewRows) -> Needs:
    """What says which elements the sets have: what is observed says it of the sets that it runs over."""
    wanted = new.wanted
    over = (replace(need, values=None) for need in new.needs.observed if need not in wanted.observed)
    return replace(wanted, observed=(*wanted.observed, *over))


def _resized(job: Job, needs: Needs, posterior: _Posterior, rows: int | None) -> Job:
    """The program with as many elements as there are new rows in the set of declared size that its observations run
    over.  Raises `Refused` where a latent runs over it too: nothing says which of its elements the rows are."""
    text = job.text
    for name, size in dict.fromkeys(
        need.plate for need in (*needs.observed, *needs.computed) if need.plate is not None
    ):
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


def _unseen_elements(name: str, known: KnownSet, posterior: _Posterior) -> str:
    unseen: Sequence[str] = (known.labels or ())[posterior.sets[name].size :]
    shown = ", ".join(f"`{one}`" for one in unseen[:ENOUGH]) + (", …" if len(unseen) > ENOUGH else "")
    many = "elements" if len(unseen) > 1 else "element"
    return f"{len(unseen)} {many} of `{name}` not seen in the fit ({shown}): drawn from the prior given the others"
