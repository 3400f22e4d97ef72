"""Start, watch and cancel worker processes: for the command line and for the language server.

    run = await start(job, on_event)      # on_event(event) is called in the loop for every event, the last included
    await run.cancel()                    # answers when the process is gone, at most 3 s later
    ending = await run.wait()             # Finished | Cancelled | Failed | Crashed

A worker is its own process group: a signal reaches whatever it started.  `pool.py` keeps one worker warm (Python and
torch loaded, waiting for its job) and runs at most so many at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from qvr_core.runs.client.forked import ForkedProcess
from qvr_core.runs.record.protocol import (
    ENDINGS,
    Cancelled,
    CheckpointWritten,
    Control,
    Crashed,
    Event,
    Job,
    Message,
    Progress,
    parse_event,
)
from qvr_core.runs.record.store import RunDirectory

OnEvent = Callable[[Event], None]

# Seconds after the request at which each rung of the ladder is taken; SIGKILL leaves time to be over within 3 s.
CANCEL_LADDER = ((0.9, signal.SIGINT), (1.6, signal.SIGTERM), (2.3, getattr(signal, "SIGKILL", signal.SIGTERM)))
LINE_LIMIT = 16 * 2**20
ENVIRONMENT = {"PYTHONUNBUFFERED": "1", "PYTHONSAFEPATH": "1"}
"""Of a worker, beside the environment of its client."""
LOG_LINES = 20
LOG_BYTES = 64_000


class WorkerProcess:
    """A started worker, perhaps still without a job."""

    def __init__(self, process: asyncio.subprocess.Process | ForkedProcess) -> None:
        self._process = process
        self._cancelled = False
        self._finished: asyncio.Task[Event] | None = None
        self._log = b""
        self.job: Job | None = None

    @classmethod
    async def spawn(cls, python: str = sys.executable, *, cwd: str | None = None) -> WorkerProcess:
        """Start an interpreter that loads what every run wants and then waits for its job on stdin."""
        process = await asyncio.create_subprocess_exec(
            python,
            "-m",
            "qvr_core.runs.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=LINE_LIMIT,
            cwd=cwd,
            env={**os.environ, **ENVIRONMENT},
        )
        return cls(process)

    @classmethod
    async def of_fork(cls, process: ForkedProcess) -> WorkerProcess:
        """The worker that was forked before this loop."""
        await process.connect(LINE_LIMIT)
        return cls(process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def run(self, job: Job, on_event: OnEvent) -> None:
        """Hand the worker its job and watch it."""
        assert self._finished is None, "a worker does one job"
        self.job = job
        self._finished = asyncio.create_task(self._watch(job, on_event))
        await self._send(job.encoded())

    async def wait(self) -> Event:
        """The last event, once the process is gone."""
        assert self._finished is not None, "this worker has no job"
        return await asyncio.shield(self._finished)

    async def send(self, control: Control) -> None:
        """Ask something of a worker that has a job; nothing happens where it is gone."""
        await self._send(control.encoded())

    async def cancel(self) -> Event | None:
        """End the worker: message, SIGINT, SIGTERM, SIGKILL, within 3 s.  The run's last event, where it had a job."""
        self._cancelled = True
        if self.job is None:
            self._close_stdin()
        else:
            await self.send(Control(control="cancel"))
        waited = 0.0
        for after, rung in CANCEL_LADDER:
            if await self._gone(after - waited):
                break
            waited = after
            self._signal(rung)
        await self._process.wait()
        return await self.wait() if self._finished is not None else None

    async def _gone(self, seconds: float) -> bool:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._process.wait()), seconds)
        return not self.alive

    def _signal(self, number: int) -> None:
        """Signal the worker's whole group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def kill(self) -> None:
        """SIGKILL, at once; for a client that is itself being torn down."""
        if self.alive:
            self._signal(CANCEL_LADDER[-1][1])

    async def _send(self, line: str) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(ConnectionError):
            stdin.write(line.encode("utf-8", "surrogatepass"))
            await stdin.drain()

    def _close_stdin(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def _watch(self, job: Job, on_event: OnEvent) -> Event:
        log = asyncio.create_task(self._copy_log(Path(job.directory) / "worker.log"))
        ending: Event | None = None
        so_far = Cancelled(step=0, seconds=0.0)
        stdout = self._process.stdout
        assert stdout is not None
        while line := await stdout.readline():
            event = read_event(line)
            if isinstance(event, ENDINGS):
                ending = event
                continue
            if isinstance(event, Progress):
                so_far = so_far.model_copy(update={"step": event.step, "seconds": event.seconds})
            elif isinstance(event, CheckpointWritten):
                so_far = so_far.model_copy(update={"checkpoint": event.path})
            on_event(event)
        await self._process.wait()
        await log
        # What the worker left running in its group (a data loader, another rank) goes with it.
        self._signal(CANCEL_LADDER[-1][1])
        self._close_stdin()
        if ending is None:
            # A worker that had to be killed because it did not hear the request was cancelled all the same.
            ending = so_far if self._cancelled else self._ended_silently()
            directory = RunDirectory.of(job)
            with contextlib.suppress(OSError):
                directory.append(ending)
                directory.end(ending)
        on_event(ending)
        return ending

    async def _copy_log(self, path: Path) -> None:
        """The worker's stderr goes to a file; its last lines are kept for a crash."""
        stderr = self._process.stderr
        assert stderr is not None
        with contextlib.ExitStack() as stack:
            file = None
            with contextlib.suppress(OSError):
                file = stack.enter_context(open(path, "ab"))
            while chunk := await stderr.read(65536):
                self._log = (self._log + chunk)[-LOG_BYTES:]
                if file is not None:
                    with contextlib.suppress(OSError):
                        file.write(chunk)
                        file.flush()

    def _ended_silently(self) -> Event:
        code = self._process.returncode
        name = None
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                name = signal.Signals(-code).name
        log = self._log.decode("utf-8", "replace").splitlines()[-LOG_LINES:]
        return Crashed(returncode=code, signal=name, log=tuple(log))


def read_event(line: bytes) -> Event:
    """The event on a line; a line that is none (a library that prints to stdout) becomes a message."""
    try:
        return parse_event(line)
    except ValueError:
        return Message(level="info", text=line.decode("utf-8", "replace").rstrip())
