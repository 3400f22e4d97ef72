"""What the worker does with a job: check, prepare, fit, and turn every way it can end into one last event."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from qvr_core.analysis import Analyzer, Snapshot
from qvr_core.runs.emitter import Emitter
from qvr_core.runs.environment import environment
from qvr_core.runs.failures import check_failure, failure
from qvr_core.runs.files import write_json
from qvr_core.runs.prepare import Prepared, prepare
from qvr_core.runs.protocol import ENDINGS, Event, Job, Started
from qvr_core.runs.settings import main_program
from qvr_core.runs.store import RunDirectory
from qvr_core.runs.svi import SviFit
from qvr_core.semantics.model import Program

if TYPE_CHECKING:
    from qvr_core.runs.worker import Stop


def conduct(job: Job, stop: Stop, stream: IO[bytes]) -> int:
    """Run a job, writing its events to `stream`; the process' exit status."""
    directory = RunDirectory.of(job)
    emitter = Emitter(directory, stream)
    snapshot = Analyzer(job.text).snapshot()
    prepared: Prepared | None = None
    try:
        directory.enter()
        write_json(directory.path / "environment.json", environment(job))
        wrong = check_failure(snapshot, job.text)
        if wrong is not None:
            emitter.emit(wrong)
            return 1
        prepared = prepare(job, snapshot)
        for event in events(prepared, stop):
            emitter.emit(event)
            if isinstance(event, ENDINGS):
                return 0
        raise AssertionError("an engine ended without a last event")
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        program = prepared.program if prepared is not None else _program(job, snapshot)
        emitter.emit(failure(error, snapshot=snapshot, program=program, text=job.text))
        return 1


def _program(job: Job, snapshot: Snapshot) -> Program | None:
    return snapshot.model.programs.get(job.program or main_program(snapshot.model) or "")


def events(prepared: Prepared, stop: Stop) -> Iterator[Event]:
    """All events of a prepared run."""
    fit = SviFit(prepared, stop)
    notes = list(fit.restore()) if prepared.job.resume else []
    yield Started(
        run_id=prepared.job.run_id,
        program=prepared.program.name,
        algorithm=prepared.job.config.algorithm,
        directory=prepared.job.directory,
        pid=os.getpid(),
        device=str(prepared.device),
        parameters=sum(p.numel() for p in prepared.model.parameters()),
        steps=prepared.job.config.steps,
        data=prepared.description,
        baselines=prepared.baselines,
        memory=prepared.memory,
        resumed_from=fit.step or None,
    )
    yield from notes
    yield from fit.run()
