"""Starts, watches and cancels worker processes, and forwards their events to the editor.

A run never shares this process: `qvr_core.runs.client.client` starts `python -m qvr_core.runs.worker`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygls.exceptions import JsonRpcInvalidParams

from qvr_core.runs.client.pool import PooledRun, WorkerPool
from qvr_core.runs.record.atomic_files import DamagedFile
from qvr_core.runs.record.program import imports_of
from qvr_core.runs.record.protocol import ENDINGS, Event, Failed, Finished, Job
from qvr_core.runs.record.protocol import Progress as Step
from qvr_core.runs.record.store import NoSuchRun, NotResumable, Overview, RunStore, overview
from qvr_lsp.json_values import Json
from qvr_lsp.progress import Bar, new_bar
from qvr_lsp.protocol import RequestFailed

if TYPE_CHECKING:
    from qvr_lsp.documents import Documents
    from qvr_lsp.editor import Client
    from qvr_lsp.runs.fits import Fits
    from qvr_lsp.workspace import QvrWorkspace

# Runs that work at the same time, and ended ones that are remembered.
AT_ONCE = max(2, (os.cpu_count() or 1) // 2)
HELD = 50
RUN_EVENT = "qvr/runEvent"

# How often the code lenses show a running run's step.
REFRESH_SECONDS = 1.0


@dataclass(slots=True)
class Run:
    """A run that this server started.  `pooled` is None until it is queued."""

    job: Job
    uri: str
    progress: Bar
    pooled: PooledRun | None = None
    status: str = "starting"
    last: Step | None = None
    ending: Event | None = None


class Runs:
    """The runs of one session, by id."""

    def __init__(self, client: Client, documents: Documents, workspace: QvrWorkspace, fits: Fits) -> None:
        self._client = client
        self._documents = documents
        self._workspace = workspace
        self._fits = fits
        self._runs: dict[str, Run] = {}
        self._refreshed = 0.0
        self._pool = WorkerPool(limit=AT_ONCE)
        self._overviews: dict[tuple[Path, str], tuple[tuple[int, str, int], Overview | None]] = {}

    async def start(self, *, uri: str, path: Path, text: str, program: str | None, options: Json) -> Json:
        """Start a run of a text as it stands in the editor.  Raises `JsonRpcInvalidParams` for wrong options."""
        from qvr_core.runs.record.config import RunConfig

        root = self._workspace.root_of(path)
        try:
            config = RunConfig(**{**self._workspace.run_table(path, program), **options})
        except ValueError as error:
            raise JsonRpcInvalidParams(first_problem(error)) from error
        store = RunStore(root)
        snapshot = self._documents.imports.analyse(path, text)
        try:
            job = store.create(
                path=str(path),
                text=text,
                program=program,
                config=config,
                base=str(root),
                parent=os.getpid(),
                location=snapshot.location,
                imports=imports_of(snapshot),
            )
        except OSError as error:
            raise RequestFailed(f"runs cannot be stored in {store.folder}: {error.strerror}") from error
        return await self._launch(job, uri)

    async def resume(self, run_id: str, root: Path, more: int = 0) -> Json:
        """Go on with a run from its last checkpoint, in a fresh worker; with `more` draws of each chain."""
        store = RunStore(root)
        try:
            previous = self._runs.get(store.open(run_id).run_id)
            if previous is not None and previous.pooled is not None:
                await previous.pooled.cancel()
            job = store.resume(run_id, parent=os.getpid(), more=more)
        except (NoSuchRun, NotResumable) as error:
            raise JsonRpcInvalidParams(str(error)) from error
        except (DamagedFile, OSError) as error:
            raise RequestFailed(str(error)) from error
        return await self._launch(job, previous.uri if previous else Path(job.path).as_uri())

    async def _launch(self, job: Job, uri: str) -> Json:
        shown = self._client.has("window.work_done_progress")
        stop = partial(self._stop, job.run_id)
        progress = await new_bar(self._client.work_done_progress, shown, stop)
        run = Run(job, uri, progress)
        self._runs[job.run_id] = run
        self._documents.failures.pop(uri, None)
        self._fits.run_began(uri, job.program)
        title = f"{job.config.algorithm.upper()} {job.program or Path(job.path).stem}"
        progress.begin(title, message="starting", cancellable=True)
        python = self._client.settings.python or sys.executable
        self._pool.use(python)
        at_once = self._pool.room()
        run.pooled = self._pool.submit(job, lambda event: self._take(run, event))
        answer = {"runId": job.run_id, "directory": job.directory}
        if not at_once:
            run.status = "queued"
            progress.report("waits for other runs to end", 0)
            return answer
        worker = await run.pooled.placed()
        if worker is None:
            reason = run.pooled.problem
            raise RequestFailed(f"cannot start {python}: {reason.strerror if reason else 'cancelled'}")
        if run.status == "starting":
            run.status = "running"
        return {**answer, "pid": worker.pid}

    def _take(self, run: Run, event: Event) -> None:
        """Forward one event; called in the loop."""
        content = event.model_dump(mode="json", exclude_none=True)
        self._client.protocol.notify(
            RUN_EVENT, {"runId": run.job.run_id, "uri": run.uri, "program": run.job.program, "event": content}
        )
        if isinstance(event, Step):
            run.last = event
            run.progress.report(describe(event), 100 * event.step // max(1, event.steps))
            self._refresh_now_and_then()
        elif isinstance(event, ENDINGS):
            run.status, run.ending = event.event, event
            run.pooled = None
            self._forget()
            run.progress.end(event.verdict() if isinstance(event, Finished) else event.event)
            self._fits.run_ended(run.uri)
            if isinstance(event, Failed) and event.range is not None:
                self._documents.failures[run.uri] = (run.job.text, event)
                self._documents.republish(run.uri)
            self._refresh()
        elif event.event == "started":
            run.status = "running"
            run.progress.report("started", 0)

    def _refresh(self) -> None:
        """Code lenses show the last result: ask for them again."""
        self._client.refresh("code_lens")

    def _refresh_now_and_then(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._refreshed >= REFRESH_SECONDS:
            self._refreshed = now
            self._refresh()

    def _forget(self) -> None:
        """Only the newest runs that have ended are held; the others are on the disk."""
        ended = [run_id for run_id, run in self._runs.items() if run.ending is not None]
        for run_id in ended[:-HELD]:
            del self._runs[run_id]

    def _stop(self, run_id: str) -> None:
        """The user cancels its progress."""
        self._client.spawn(self.cancel(run_id))

    async def cancel(self, run_id: str) -> Json:
        """End a run.  Answers when its process is gone, at most 3 s later."""
        run = self._runs.get(run_id)
        if run is None:
            raise JsonRpcInvalidParams(f"no run `{run_id}` was started by this server")
        if run.pooled is not None and run.ending is None:
            run.status = "cancelling"
            await run.pooled.cancel()
        return {"runId": run_id, "status": run.status}

    def running(self, uri: str, program: str) -> Run | None:
        """The newest run of a program of a document that has not ended."""
        runs = reversed(self._runs.values())
        return next(
            (run for run in runs if run.ending is None and run.uri == uri and run.job.program in (program, None)), None
        )

    @property
    def active(self) -> int:
        return sum(1 for run in self._runs.values() if run.ending is None)

    async def pause_all(self) -> None:
        """Cancel every run, so that each keeps a checkpoint; no other one is started."""
        await self._pool.close()

    def stop(self) -> None:
        """End every worker at once: the session is over."""
        self._pool.kill()

    def last_overview(self, root: Path, file: Path, program: str) -> Overview | None:
        """The newest run of a program of a file; looked up again only when a run has been added or has ended."""
        store = RunStore(root)
        names = store.names()
        stamp = (len(names), names[-1] if names else "", self.active)
        key = (file, program)
        held = self._overviews.get(key)
        if held is not None and held[0] == stamp:
            return held[1]
        newest = store.newest_of(Path(os.path.abspath(file)), program)
        found = overview(newest) if newest is not None else None
        self._overviews[key] = (stamp, found)
        return found

    def listing(self, root: Path) -> list[Json]:
        """All runs of a folder, newest first, with those of this session up to date."""
        return [
            {
                "runId": item.run_id,
                "program": item.program,
                "algorithm": item.algorithm,
                "status": run.status if (run := self._runs.get(item.run_id)) else item.status,
                "created": item.created.isoformat(),
                "lastLoss": item.last_loss,
                "ending": item.ending.model_dump(mode="json", exclude_none=True) if item.ending else None,
                "problem": item.problem,
                "directory": str(RunStore(root).folder / item.run_id),
            }
            for item in RunStore(root).overviews()
        ]


def describe(event: Step) -> str:
    """One line for a progress bar."""
    parts = [f"{event.step}/{event.steps}"]
    loss = event.smoothed_loss if event.smoothed_loss is not None else event.loss
    if loss is not None:
        parts.append(f"−ELBO {loss:.4g}")
    if event.acceptance is not None:
        parts.append(f"acceptance {event.acceptance:.2f}")
    if event.divergences:
        parts.append(f"{event.divergences} divergences")
    if event.eta is not None:
        parts.append(f"{event.eta:.0f} s left")
    return " · ".join(parts)


def first_problem(error: ValueError) -> str:
    """The first thing wrong with a configuration, in one line."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    problem: Any = error.errors()[0]
    key = ".".join(str(part) for part in problem["loc"])
    return f"{key}: {problem['msg']}" if key else str(problem["msg"])
