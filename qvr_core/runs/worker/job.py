"""What the worker does with a job: check, prepare, fit, and turn every way it can end into one last event."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from qvr_core.analysis import Snapshot
from qvr_core.arrays.engine import TORCH
from qvr_core.arrays.engine_choice import TorchWanted, lacks_torch
from qvr_core.data.binding import Whole
from qvr_core.runs.fit.distributed import Team, broken, join
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.prepare.data_lets import check_observed_lets, keep_numbers
from qvr_core.runs.prepare.failures import Refused, check_failure, failure
from qvr_core.runs.prepare.given_elements import given_elements
from qvr_core.runs.prepare.prepare import Prepared, prepare
from qvr_core.runs.prepare.runnable import chosen
from qvr_core.runs.record.atomic_files import DamagedFile, write_json
from qvr_core.runs.record.data_files import changes, folders_of, note, noted, stats
from qvr_core.runs.record.lock import Held, Lock
from qvr_core.runs.record.program import analysed
from qvr_core.runs.record.protocol import Cancelled, Event, Finished, Job, Message, Started
from qvr_core.runs.record.store import RunDirectory
from qvr_core.runs.worker.emitter import Emitter
from qvr_core.runs.worker.environment import environment
from qvr_core.semantics.types.model.programs import Program


def conduct(job: Job, stop: Stop, send: Callable[[Event], None]) -> int:
    """Run a job and hand its events to `send`; the process' exit status: 0, 1 for a failure, 2 for wrong usage.

    In a team (`torchrun`) every process calls this; only the leading one sends and stores.  Raises `TorchWanted` in a
    process without torch that cannot do the job.
    """
    began = time.monotonic()
    directory = RunDirectory.of(job)
    team = join(job.config.device)
    events = Emitter(directory, send)
    before: Event | None = None
    kept = True

    def emit(event: Event) -> None:
        nonlocal kept
        if team.leads and isinstance(event, Finished | Cancelled) and not directory.is_there():
            kept = False
            event = failure(gone(directory), snapshot=snapshot, program=None, text=job.text)
        if team.leads:
            events.emit(in_whole(event, before, time.monotonic() - began))

    snapshot = analysed(job)
    prepared: Prepared | None = None
    lock: Lock | None = None
    try:
        if team.leads:
            with contextlib.suppress(DamagedFile):
                before = directory.ending()
            lock = directory.enter()
            write_json(directory.path / "environment.json", environment(job))
        wrong = check_failure(snapshot, job.text)
        if wrong is not None:
            emit(wrong)
            return 1
        if job.resume and not job.changed_data:
            check_data(directory)
        prepared = prepare_noted(job, snapshot, team)
        fit(prepared, stop, team, emit)
        return 0 if kept else 1
    except Held as error:
        send(failure(Refused("busy", str(error)), snapshot=snapshot, program=None, text=job.text))
        return 2
    except Exception as problem:
        if not TORCH and lacks_torch(problem):
            raise TorchWanted(str(problem)) from problem
        error = lost(job, team) if team.size > 1 and broken(problem) else problem
        program = prepared.program if prepared is not None else _program(job, snapshot)
        failed = failure(error, snapshot=snapshot, program=program, text=job.text)
        if failed.code == "internal":
            traceback.print_exc(file=sys.stderr)
        if before is not None and prepared is None:
            # A resume that is refused changes nothing about the run.
            send(failed)
            directory.end(before)
        else:
            emit(failed)
        return 2 if failed.usage else 1
    finally:
        if lock is not None:
            lock.release()


def in_whole(event: Event, before: Event | None, seconds: float) -> Event:
    """An ending with the time from the start of the job, compiling and what is computed at the end included, and that
    of the run `before` it was resumed."""
    if not isinstance(event, Finished | Cancelled):
        return event
    earlier = before.seconds if isinstance(before, Finished | Cancelled) else 0.0
    return event.model_copy(update={"seconds": max(event.seconds, earlier + seconds)})


def prepare_noted(job: Job, snapshot: Snapshot, team: Team) -> Prepared:
    """Prepare a run, and write down which data and settings it has."""
    before = stats(job, snapshot.model)
    prepared = prepare(job, snapshot)
    if not team.leads:
        return prepared
    directory = RunDirectory.of(job)
    if stats(job, snapshot.model) != before:
        raise Refused("moving-data", "a data file was written to while this run read it: start it again")
    if job.changed_data or not noted(directory.path):
        note(directory.path, before, folders_of(job))
    if job.resume:
        directory.ask(job)
    return prepared


def lost(job: Job, team: Team) -> Refused:
    """What is said where another process of the team has ended.  Nobody shows the events of one that does not lead."""
    again = f"Go on from the last checkpoint: qvr run {job.config.algorithm} --resume {job.run_id}"
    message = f"one of the {team.size} processes of this run is gone: was it killed, or is the memory full?"
    if not team.leads:
        sys.stderr.write(f"failed: {message}\n  = fix: {again}\n")
    return Refused("lost-process", message, fixes=(again,))


def gone(directory: RunDirectory) -> Refused:
    """What is said where the folder of a run was taken away while it was at work."""
    message = f"{directory.path} was deleted or moved while the run was at work: nothing of the run is kept there"
    return Refused("lost-folder", message, fixes=("Start the run again",))


def check_data(directory: RunDirectory) -> None:
    """Refuse to go on with other data than the run began with, or where nobody knows which those were."""
    try:
        found = changes(directory.path)
    except DamagedFile as error:
        message = f"{error}: nobody knows whether the data are those that this run began with"
        raise Refused(
            "changed-data", message, fixes=("Start a new run", "Go on all the same with --changed-data")
        ) from error
    if found:
        message = f"the data are not those that this run began with: {'; '.join(found)}"
        raise Refused("changed-data", message, fixes=("Start a new run", "Go on all the same with --changed-data"))


def _program(job: Job, snapshot: Snapshot) -> Program | None:
    with contextlib.suppress(Refused):
        return chosen(job, snapshot.model)
    return None


def fit(prepared: Prepared, stop: Stop, team: Team, emit: Callable[[Event], None]) -> None:
    """Run a prepared job; every event goes to `emit`, the last one included."""
    config = prepared.job.config
    if isinstance(prepared.train, Whole):
        check_observed_lets(prepared.model, prepared.train.observations)
        if team.rank == 0:
            keep_numbers(prepared.model, prepared.train.observations, RunDirectory.of(prepared.job))
    if config.algorithm == "nuts":
        from qvr_core.runs.fit.nuts import fit_nuts

        fit_nuts(prepared, stop, team, emit, started(prepared, config.warmup + config.samples, None))
        return
    from qvr_core.runs.fit.step_engine import chosen_steps
    from qvr_core.runs.fit.svi import SviFit

    engine = SviFit(prepared, stop, team)
    notes = list(engine.restore()) if prepared.job.resume else []
    begun = started(prepared, config.steps, engine.step or None)
    has: dict[str, Any] = {"guide_parameters": sum(p.numel() for p in engine.guide.parameters())}
    try:
        engine.fast = chosen_steps(engine, emit)
        has["engine"] = engine.fast.engine
    finally:
        # whatever ends the run here, it has begun
        emit(begun.model_copy(update=has))
    if engine.fast.note is not None:
        emit(Message(level="info", text=engine.fast.note))
    for event in notes:
        emit(event)
    for event in engine.run():
        emit(event)


def started(prepared: Prepared, steps: int, resumed_from: int | None) -> Started:
    """The first event."""
    return Started(
        run_id=prepared.job.run_id,
        program=prepared.program.name,
        algorithm=prepared.job.config.algorithm,
        directory=prepared.job.directory,
        pid=os.getpid(),
        device=str(prepared.device),
        parameters=sum(p.numel() for p in prepared.model.parameters()),
        steps=steps,
        data="; ".join(filter(None, (prepared.description, given_elements(prepared.program)))),
        baselines=prepared.baselines,
        memory=prepared.memory,
        resumed_from=resumed_from,
        per_row=not prepared.needs.statistical,
    )
