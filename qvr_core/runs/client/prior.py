"""A process that draws from priors, kept warm: `await PriorWorker(python).draw(job, draws)`.

It does one thing at a time, is ended where it takes too long, and after a while without a question.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal

from qvr_core.runs.client.client import LINE_LIMIT
from qvr_core.runs.record.prior import PriorAsked, PriorDrawn
from qvr_core.runs.record.protocol import Job

PATIENCE = 30.0
"""Seconds after which a draw is given up, the loading of torch included."""
STALE = 2.0
"""Seconds that an answer which nobody wants any more may still take."""
IDLE = 600.0


class PriorWorker:
    """The process and what it is asked; `python` may be changed between two questions."""

    def __init__(self, python: str, *, idle: float = IDLE, patience: float = PATIENCE) -> None:
        self.python = python
        self._idle, self._patience = idle, patience
        self._process: asyncio.subprocess.Process | None = None
        self._killed: asyncio.subprocess.Process | None = None
        self._started_in = ""
        self._turn = asyncio.Lock()
        self._number = 0
        self._owed: int | None = None
        """The last question, while its answer has not come."""
        self._loaded = False
        """Whether the process has torch loaded: until then it takes some seconds, whatever it was asked."""
        self._retiring: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int | None:
        """Of the process, while it lives."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def draw(self, job: Job, draws: int) -> PriorDrawn:
        """Draws from the prior of a job's program.  Raises OSError where no process can be started, TimeoutError where
        it takes too long; cancelled, it leaves the process to the next question."""
        async with self._turn:
            self._stay()
            await self._settle()
            process = await self._running()
            self._number += 1
            asked = PriorAsked(number=self._number, job=job, draws=draws)
            self._owed = asked.number
            try:
                async with asyncio.timeout(self._patience):
                    return await self._answer(process, asked)
            except (TimeoutError, ConnectionError, ValueError):
                self.kill()
                raise
            finally:
                self._retire_later()

    async def _answer(self, process: asyncio.subprocess.Process, asked: PriorAsked) -> PriorDrawn:
        assert process.stdin is not None
        process.stdin.write(asked.model_dump_json().encode("utf-8", "surrogatepass") + b"\n")
        await process.stdin.drain()
        return await self._read(process, asked.number)

    async def _read(self, process: asyncio.subprocess.Process, number: int) -> PriorDrawn:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            found = PriorDrawn.model_validate_json(line)
            self._loaded = True
            if found.number == number:
                self._owed = None
                return found
        raise ConnectionResetError("the process that draws from priors ended")

    async def _settle(self) -> None:
        """Let a process finish what nobody waits for, or end it where that takes long."""
        process, owed = self._process, self._owed
        if process is None or owed is None:
            return
        try:
            async with asyncio.timeout(STALE if self._loaded else self._patience):
                await self._read(process, owed)
        except (TimeoutError, ConnectionError, ValueError):
            self.kill()

    async def _running(self) -> asyncio.subprocess.Process:
        if self.pid is not None and self._started_in != self.python:
            self.kill()
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                self.python, "-m", "qvr_core.runs.worker.prior",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True, limit=LINE_LIMIT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONSAFEPATH": "1"},
            )  # fmt: skip
            self._started_in, self._owed, self._loaded = self.python, None, False
        return self._process

    def _stay(self) -> None:
        if self._retiring is not None:
            self._retiring.cancel()
            self._retiring = None

    def _retire_later(self) -> None:
        self._stay()
        if self.pid is not None:
            self._retiring = asyncio.get_running_loop().call_later(self._idle, self.kill)

    async def close(self) -> None:
        """End the process, and wait until it is gone."""
        self.kill()
        if self._killed is not None:
            await self._killed.communicate()

    def kill(self) -> None:
        """End the process, at once; the next question starts another."""
        self._stay()
        process, self._process, self._owed = self._process, None, None
        self._killed = process or self._killed
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if hasattr(os, "killpg"):
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.kill()
