"""Refits of a run without some of its observations: K-fold, leave-one-group-out, and exact leave-one-out."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import cached_property

from qvr_core.cluster.address import address_of
from qvr_core.inference.folds import Folds, at_random, by_group
from qvr_core.inference.leaving_out import LeavingOut, NotLeftOut
from qvr_core.runs.evaluation.loo import Loo, loo_of
from qvr_core.runs.evaluation.refitted import Plan, Refit, Refits, asked_by, read
from qvr_core.runs.fit.nuts import Asked, asked_of
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.prepare import Prepared, prepare
from qvr_core.runs.record.lock import Lock
from qvr_core.runs.record.netcdf import read_netcdf
from qvr_core.runs.record.program import analysed
from qvr_core.runs.record.protocol import Job
from qvr_core.runs.record.store import RunDirectory, process_start
from qvr_core.runs.worker.job import check_data
from qvr_core.runs.worker.refit_units import on_cluster, refit
from qvr_core.runtime.values.errors import InputProblem

Watch = Callable[[int, int, str], None]
"""How many refits are done, of how many, and what the last one left out."""


@dataclass(frozen=True)
class Refitting:
    """A run that has drawn by NUTS, ready to be fitted again without some of its observations."""

    job: Job

    @cached_property
    def prepared(self) -> Prepared:
        """Its program and data.  Raises `Refused`, `DataProblem`."""
        return prepare(self.job, analysed(self.job))

    @cached_property
    def sampler(self) -> Asked:
        """Its chains."""
        return asked_of(self.prepared)

    @cached_property
    def potential(self) -> LeavingOut:
        """Its density.  Raises `Refused` where no observation can be left out."""
        try:
            return LeavingOut(self.sampler.given)
        except NotLeftOut as problem:
            raise Refused("not-left-out", str(problem), site=problem.site) from problem

    def folds(self, plan: Plan) -> Folds:
        """Which observations leave together.  Raises `Refused`."""
        config = self.job.config
        try:
            if plan.by is not None:
                return by_group(self.potential, self.prepared.needs, plan.by, plan.folds, config.seed)
            if plan.folds is not None:
                return at_random(self.potential, plan.folds, config.seed)
        except InputProblem as problem:
            raise Refused("folds", str(problem)) from problem
        count = len(self.potential.names)
        return Folds(tuple(range(count)), count)

    def doing(self, folds: Folds, wanted: Sequence[int], cluster: str | None) -> Generator[tuple[int, Refit]]:
        """The refits without the folds of these numbers: here one after the other, on a cluster as they are done."""
        address = address_of(self.job.config.cluster if cluster is None else cluster)
        if address is not None and wanted:
            yield from on_cluster(
                address, self.job, self.prepared.known, self.sampler.given.observations, folds, wanted
            )
            return
        for number in wanted:
            chains = self.sampler.chains
            yield number, refit(self.potential, chains, self.job.config.seed, folds.of(number), number)


def refitting(run: RunDirectory) -> Refitting:
    """A run whose data are what they were.  Raises `Refused`, `DamagedFile`."""
    job = run.job()
    if job.config.algorithm != "nuts":
        raise Refused(
            "not-left-out",
            f"run {run.run_id} is a fit by {job.config.algorithm}: refits are chains of NUTS",
            fixes=(f"Sample it: qvr run nuts {job.path}",),
        )
    if not run.posterior.exists():
        raise Refused("no-draws", f"run {run.run_id} is {run.status()} and has no draws", fixes=("Let it finish",))
    check_data(run)
    return Refitting(job)


def cross_validate(
    run: RunDirectory,
    plan: Plan,
    *,
    again: bool = False,
    watch: Watch = lambda done, count, label: None,
    cluster: str | None = None,
) -> Refits:
    """The refits of a plan: those that the run has already, unless `again`, and the others, each kept once it is done.

    Raises `Refused`, `DataProblem`, `DamagedFile`, `Held`.
    """
    fit = refitting(run)
    asked = asked_by(run)
    found = None if again else _stored(run, plan, asked)
    if found is not None and found.whole:
        return found
    folds = fit.folds(plan)
    names = tuple(fit.potential.names)
    refits = Refits(plan, asked, names, folds.fold, folds.count, folds.labels)
    if found is not None and found.fold == folds.fold:
        refits.done = found.done
    wanted = [number for number in range(folds.count) if number not in refits.done]
    _fill(run, refits, wanted, fit.doing(folds, wanted, cluster), watch, folds.count)
    return refits


def exact_loo(
    run: RunDirectory,
    *,
    again: bool = False,
    watch: Watch = lambda done, count, label: None,
    cluster: str | None = None,
) -> tuple[Loo, Refits]:
    """PSIS-LOO with the figures of refits, one for each observation whose Pareto k is too high.

    Raises `Refused`, `DataProblem`, `DamagedFile`, `Held`.
    """
    loo = loo_of_run(run)
    fit, plan, asked = refitting(run), Plan(), asked_by(run)
    found = None if again else _stored(run, plan, asked)
    done = {} if found is None else found.done
    bad = [loo.names[at] for at in map(int, loo.bad)]
    if found is not None and set(bad) <= {found.names[number] for number in done}:
        refits = found
    else:
        folds = fit.folds(plan)
        place = {name: number for number, name in enumerate(fit.potential.names)}
        lost = [name for name in bad if name not in place]
        if lost:
            raise Refused("not-left-out", f"`{lost[0]}` is no observation that can be left out alone")
        refits = Refits(plan, asked, tuple(place), folds.fold, folds.count, None, dict(done))
        wanted = [place[name] for name in bad if place[name] not in done]
        _fill(run, refits, wanted, fit.doing(folds, wanted, cluster), watch, len(bad))
    return loo.refitted({refits.names[number]: one.elpd[0] for number, one in refits.done.items()}), refits


def loo_of_run(run: RunDirectory) -> Loo:
    """PSIS-LOO of a run's draws.  Raises `Refused`, `DamagedFile`."""
    if not run.posterior.exists():
        raise Refused("no-draws", f"run {run.run_id} is {run.status()} and has no draws")
    run.check_posterior()
    loo = loo_of(read_netcdf(run.posterior, ("posterior", "log_likelihood")))
    if loo is None:
        raise Refused("no-likelihood", f"run {run.run_id} stored no pointwise log likelihood")
    if loo.joint:
        raise Refused("not-left-out", f"`{loo.names[0]}` is one joint observation: without it no data are left")
    return loo


def _stored(run: RunDirectory, plan: Plan, asked: str) -> Refits | None:
    """The refits that a run has, none where they are of other draws than its posterior.  Raises `DamagedFile`."""
    found = read(plan.file(run))
    return found if found is not None and found.asked == asked else None


def _fill(
    run: RunDirectory,
    refits: Refits,
    wanted: Sequence[int],
    made: Generator[tuple[int, Refit]],
    watch: Watch,
    count: int,
) -> None:
    """Keep each of the refits of these numbers as it is made."""
    folder = run.path / "elpd"
    folder.mkdir(exist_ok=True)
    lock = Lock(folder, process_start(os.getpid()))
    try:
        watch(count - len(wanted), count, "")
        # closed at once where this is interrupted: a cluster must have an end
        with contextlib.closing(made):
            for done, (number, one) in enumerate(made, start=count - len(wanted) + 1):
                refits.done[number] = one
                refits.write(run)
                watch(done, count, refits.label(number))
    finally:
        lock.release()
