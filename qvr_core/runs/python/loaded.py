"""A run read back into Python: the fitted module, its guide, the data it was fitted to, and its draws."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from qvr_core.arrays.engine import Tensor, arrays, nn
from qvr_core.html_tables import html_table
from qvr_core.inference.lifting import LiftedModel
from qvr_core.inference.pointwise import Given
from qvr_core.runs.fit.nuts import asked_of
from qvr_core.runs.prepare.prepare import prepare
from qvr_core.runs.record.atomic_files import DamagedFile
from qvr_core.runs.record.data_files import changes
from qvr_core.runs.record.program import analysed
from qvr_core.runs.record.protocol import Job
from qvr_core.runs.record.settings_file import find_settings
from qvr_core.runs.record.store import RunDirectory, RunStore
from qvr_core.runs.record.summary import Element, read_summary
from qvr_core.runs.worker import prediction
from qvr_core.runs.worker.new_data import new_data
from qvr_core.runs.worker.text_generation import restored
from qvr_core.runtime.programs.program import ProgramModule

MOST_ROWS = 20
"""Numbers of the posterior in a repr."""


@dataclass(frozen=True, repr=False)
class LoadedRun:
    """What a run has left.

    `model` has the fitted parameters, `guide` those of a fit by svi (None for nuts); `x` and `observations` are the
    input and the data, as `model.log_joint(x, values)` and `Predictive` take them.
    """

    directory: RunDirectory
    model: ProgramModule | LiftedModel
    guide: nn.Module | None
    x: Any
    observations: Mapping[str, Any] = field(repr=False)

    @cached_property
    def posterior(self) -> Any:
        """`posterior.nc` as an xarray `DataTree`: draws and kept lets with their labels, sampler statistics, pointwise
        log likelihood, predictive draws, data.  ArviZ 1 takes it as it is.  Raises `DamagedFile`, and FileNotFoundError
        where the run has no draws."""
        import xarray

        self.directory.check_posterior()
        with xarray.open_datatree(self.directory.posterior, engine="h5netcdf") as tree:
            return tree.load()

    def samples(self) -> dict[str, Tensor]:
        """{latent: (chains · draws, …)}, as `Predictive(posterior_samples=…)` takes them; lets follow from them."""
        stored = self.posterior["posterior"].to_dataset().data_vars
        named = {str(name): arrays.from_numpy(draws.to_numpy()).flatten(0, 1) for name, draws in stored.items()}
        return prediction.latents_of(named, Given(self.model, self.x, self.observations))

    def draw(self, count: int = 200, *, data: Any = None, seed: int = 0) -> dict[str, Tensor]:
        """What `qvr sample` draws: observed and predicted steps, (count, …) by name, on the run's own data or on new
        rows.

        These are files, `csv:new.csv`, several as `["csv:new.csv", "County=csv:more.csv"]`; or what `load(…, data=)`
        takes: a frame (polars or pandas), an xarray.Dataset, or a mapping from names to arrays, series and frames.
        What is to be said of them, as elements that the fit has not seen, is warned of.  Raises `Refused`,
        `DataProblem`, `RuntimeProblem`.
        """
        drawn = prediction.from_posterior(self.directory, count, seed, new_data(data, str(Path.cwd())))
        for note in drawn.notes:
            warnings.warn(note, stacklevel=2)
        return drawn.values

    def __repr__(self) -> str:
        run = self.directory
        head = f"LoadedRun({run.run_id}: {run.job().config.algorithm}, {run.status()})"
        try:
            summary = read_summary(run)
        except (DamagedFile, OSError):
            return head
        if summary is None:
            return head
        numbers = [number for site in summary.sites for number in site.elements]
        count = sum(site.size for site in summary.sites)
        rows = [_row(number) for number in numbers[:MOST_ROWS]]
        more = [f"  and {count - len(rows):,} more numbers"] if count > len(rows) else []
        return "\n".join([f"{head}: {summary.chains} chains of {summary.draws} draws", *rows, *more])

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        """What a notebook shows: the table of the posterior, where there is one."""
        bundle = {"text/plain": repr(self)}
        with contextlib.suppress(DamagedFile, OSError):
            if (summary := read_summary(self.directory)) is not None:
                numbers = [number for site in summary.sites for number in site.elements][:MOST_ROWS]
                columns = {
                    "": [number.name for number in numbers],
                    "mean": [number.mean for number in numbers],
                    "sd": [number.sd for number in numbers],
                    "R-hat": [number.r_hat for number in numbers],
                }
                bundle["text/html"] = html_table(columns, count=sum(site.size for site in summary.sites))
        return bundle


def _row(number: Element) -> str:
    """A number of the posterior on a line of its own."""
    if number.mean is None or number.sd is None:
        return f"  {number.name}"
    r_hat = "" if number.r_hat is None else f"   R-hat {number.r_hat:.2f}"
    return f"  {number.name:<16} {number.mean:.4g} ± {number.sd:.2g}{r_hat}"


def _since(run: RunDirectory, job: Job) -> Iterator[str]:
    """What is no longer as the run had it."""
    file = Path(job.path)
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if file.read_text(encoding="utf-8").splitlines() != job.text.splitlines():
            yield f"{file} has changed since run {run.run_id}: this is the program as it was then"
    # what is gone is an error where it is read
    for change in changes(run.path):
        yield f"run {run.run_id} was fitted to other data, and these are read: {change}"


def load_run(run: str = "last", folder: str | Path | None = None) -> LoadedRun:
    """The run of that id, of a beginning of it, of a program's name, or the `last`.

    Runs are looked for beside the nearest qvr.toml from `folder` (the working directory) up, else in `folder` itself.
    The program is that of the run: where its file, or its data, have changed since, that is warned of.  Raises
    `NoSuchRun`; `Refused` where the run has neither draws nor a checkpoint.
    """
    here = Path.cwd() if folder is None else Path(folder).resolve()
    settings = find_settings(here)
    found = RunStore(here if settings is None else settings.parent).open(run)
    job = found.job()
    for change in _since(found, job):
        warnings.warn(change, stacklevel=2)
    if job.config.algorithm == "svi":
        fit = restored(found)
        x, observations = fit.prepared.move(fit.prepared.train.batch(arrays.arange(fit.prepared.train.rows)))
        fit.model.eval()
        return LoadedRun(found, fit.model, fit.guide, x, observations)
    given = asked_of(prepare(job, analysed(job))).given
    return LoadedRun(found, given.model, None, given.x, given.observations)
