"""Many runs, a few at a time, the next one without the wait for its analyser and sampler.

pool = WorkerPool(limit=2)
pool.prewarm()                        # optional: an idle worker that has loaded what every run wants
run = pool.submit(job, on_event)      # never blocks
await run.cancel();  await run.wait()
await pool.close()                    # ends everything
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import deque

from qvr_core.runs.client.client import OnEvent, WorkerProcess
from qvr_core.runs.record.protocol import Cancelled, Crashed, Event, Job
from qvr_core.runs.record.store import RunDirectory


class PooledRun:
    """A run that waits for its turn, works, or is over."""

    def __init__(self, job: Job, on_event: OnEvent) -> None:
        self.job = job
        self.on_event = on_event
        self.worker: WorkerProcess | None = None
        self.problem: OSError | None = None
        """Why no worker could be started."""
        self.cancel_requested = False
        self._placed = asyncio.Event()
        self.ending: asyncio.Future[Event] = asyncio.get_running_loop().create_future()

    async def placed(self) -> WorkerProcess | None:
        """The worker, once there is one; None where there will be none."""
        await self._placed.wait()
        return self.worker

    def place(self, worker: WorkerProcess | None, problem: OSError | None = None) -> None:
        """Say which worker does the run, or why none does."""
        self.worker, self.problem = worker, problem
        self._placed.set()

    async def wait(self) -> Event:
        """The last event."""
        return await asyncio.shield(self.ending)

    async def cancel(self) -> Event:
        """End the run, within 3 s; one that still waits for its turn ends at once."""
        self.cancel_requested = True
        if self.worker is not None:
            await self.worker.cancel()
        elif not self.ending.done():
            self.finish(Cancelled(step=0, seconds=0.0), store=True)
        return await self.wait()

    def finish(self, event: Event, *, store: bool = False) -> None:
        """Make `event` the last one; `store` where no worker or client has written it to the run directory."""
        if self.ending.done():
            return
        self._placed.set()
        if store:
            directory = RunDirectory.of(self.job)
            directory.append(event)
            directory.end(event)
            self.on_event(event)
        self.ending.set_result(event)


# Seconds that an idle worker is kept: it holds some 300 MB.
IDLE = 600.0


class WorkerPool:
    """Runs at most `limit` jobs at once, in the order in which they were submitted.

    With `keep_warm` every run leaves an idle worker for the next one, which is ended after `idle` seconds.
    """

    def __init__(
        self, python: str = sys.executable, *, limit: int = 1, keep_warm: bool = True, idle: float = IDLE
    ) -> None:
        self.python = python
        self.limit = limit
        self.keep_warm = keep_warm
        self.idle = idle
        self._waiting: deque[PooledRun] = deque()
        self._active: dict[PooledRun, asyncio.Task[None]] = {}
        self._warm: asyncio.Task[WorkerProcess] | None = None
        self._closed = False

    def prewarm(self) -> None:
        """Start an idle worker, if there is none."""
        if self._warm is None and not self._closed:
            self._warm = asyncio.create_task(WorkerProcess.spawn(self.python))
            asyncio.get_running_loop().call_later(self.idle, self._retire, self._warm)

    def use(self, python: str) -> None:
        """Start workers in this interpreter from now on."""
        if python != self.python:
            self.python = python
            if self._warm is not None:
                self._retire(self._warm)

    def submit(self, job: Job, on_event: OnEvent) -> PooledRun:
        """Queue a run; it starts at once where there is room."""
        run = PooledRun(job, on_event)
        self._waiting.append(run)
        self._fill()
        return run

    def room(self) -> bool:
        """Whether a run that is submitted now starts at once."""
        return not self.waiting and len(self._active) < self.limit

    def kill(self) -> None:
        """End every process at once, without a word; for a client that is itself being torn down."""
        self._closed = True
        for run in self._active:
            if run.worker is not None:
                run.worker.kill()
        if self._warm is not None:
            self._retire(self._warm)

    @property
    def waiting(self) -> int:
        return sum(not run.ending.done() for run in self._waiting)

    async def close(self) -> None:
        """Cancel every run and end the idle worker."""
        self._closed = True
        runs = [*self._waiting, *self._active]
        await asyncio.gather(*(run.cancel() for run in runs))
        await asyncio.gather(*self._active.values(), return_exceptions=True)
        warm, self._warm = self._warm, None
        if warm is not None:
            with contextlib.suppress(OSError):
                await (await warm).cancel()

    def _retire(self, warm: asyncio.Task[WorkerProcess]) -> None:
        """End the idle worker, if it is still this one."""
        if self._warm is warm:
            self._warm = None
            warm.add_done_callback(_kill)

    def _fill(self) -> None:
        while self._waiting and len(self._active) < self.limit:
            run = self._waiting.popleft()
            if not run.ending.done():
                self._active[run] = asyncio.create_task(self._work(run))

    async def _work(self, run: PooledRun) -> None:
        try:
            worker = await self._take_worker()
            if run.cancel_requested:
                await worker.cancel()
                return
            run.place(worker)
            await worker.run(run.job, run.on_event)
            run.finish(await worker.wait())
        except OSError as error:
            run.place(None, error)
            run.finish(Crashed(returncode=None, log=(f"the worker could not be started: {error}",)), store=True)
        finally:
            del self._active[run]
            if not self._closed:
                self._fill()

    async def _take_worker(self) -> WorkerProcess:
        """The warm worker if it still lives, else a new one; the next one is started meanwhile."""
        warm, self._warm = self._warm, None
        worker = None
        if warm is not None:
            with contextlib.suppress(OSError):
                worker = await warm
        if worker is None or not worker.alive:
            worker = await WorkerProcess.spawn(self.python)
        if self.keep_warm:
            self.prewarm()
        return worker


def _kill(started: asyncio.Task[WorkerProcess]) -> None:
    if not started.cancelled() and started.exception() is None:
        started.result().kill()
