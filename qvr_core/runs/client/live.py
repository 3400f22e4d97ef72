"""A process that draws from priors and posteriors while somebody types: `await LiveWorker(python).ask(asked)`.

It is kept warm, does one thing at a time, drops what nobody waits for any more, and is ended where it does not, where
it takes too long, and after a while without a question.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable

from qvr_core.runs.client.client import LINE_LIMIT
from qvr_core.runs.record.live import Asked, Drawn, Line

PATIENCE = 30.0
"""Seconds after which a question is given up, the start of the process included."""
DROPPED = 0.05
"""Seconds in which it must have dropped a question."""
IDLE = 600.0

Tell = Callable[[Drawn], None]


class LiveWorker:
    """The process and what it is asked; `python` may be changed between two questions."""

    def __init__(self, python: str, *, idle: float = IDLE, patience: float = PATIENCE) -> None:
        self.python = python
        self._idle, self._patience = idle, patience
        self._process: asyncio.subprocess.Process | None = None
        self._killed: asyncio.subprocess.Process | None = None
        self._started_in = ""
        self._starting = asyncio.Lock()
        self._reading: asyncio.Task[None] | None = None
        self._number = 0
        self._asked: dict[int, tuple[Tell, asyncio.Future[Drawn]]] = {}
        """By number the questions that wait."""
        self._dropping: dict[int, asyncio.TimerHandle] = {}
        """Those that were dropped, until the process says so."""
        self._given_up: asyncio.subprocess.Process | None = None
        """The last process that was ended because it did not drop a question."""
        self._ready = False
        """Whether the process has loaded what it needs: until then it hears nothing."""
        self._retiring: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int | None:
        """Of the process, while it lives."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def warm(self) -> None:
        """Have the process there before it is asked anything.  Raises OSError where none can be started."""
        self._stay()
        await self._running()
        self._retire_later()

    async def ask(self, asked: Asked, tell: Tell = lambda drawn: None) -> Drawn:
        """The last answer to a question; `tell` gets those before it.  Raises OSError where no process can be started,
        or where it has ended, TimeoutError where it takes too long; cancelled, it leaves the process to the next
        question."""
        self._stay()
        while True:
            process = await self._running()
            try:
                return await self._answered(process, asked, tell)
            except ConnectionResetError:
                if process is not self._given_up:
                    raise

    async def _answered(self, process: asyncio.subprocess.Process, asked: Asked, tell: Tell) -> Drawn:
        self._number += 1
        number = self._number
        answer: asyncio.Future[Drawn] = asyncio.get_running_loop().create_future()
        self._asked[number] = (tell, answer)
        try:
            async with asyncio.timeout(self._patience):
                self._send(process, Line(asked=asked.model_copy(update={"number": number})))
                return await answer
        except (TimeoutError, OSError):
            if process is self._process:
                self.kill()
            raise
        except asyncio.CancelledError:
            self._drop(number)
            raise
        finally:
            self._asked.pop(number, None)
            self._retire_later()

    @staticmethod
    def _send(process: asyncio.subprocess.Process, line: Line) -> None:
        assert process.stdin is not None
        if process.stdin.is_closing():
            raise ConnectionResetError(ENDED)
        process.stdin.write(line.model_dump_json(exclude_none=True).encode("utf-8", "surrogatepass") + b"\n")

    def _drop(self, number: int) -> None:
        """Have a question dropped; the process is ended where it does not do so at once."""
        process = self._process
        if process is None or self.pid is None:
            return
        with contextlib.suppress(OSError):
            self._send(process, Line(drop=number))
        if self._ready:
            self._dropping[number] = asyncio.get_running_loop().call_later(DROPPED, self._give_up)

    def _give_up(self) -> None:
        """End a process that does not drop a question; another one answers those that wait."""
        self._given_up = self._process
        self.kill()

    # ------------------------------------------------------------ the process

    async def _running(self) -> asyncio.subprocess.Process:
        async with self._starting:
            if self.pid is not None and self._started_in != self.python:
                self.kill()
            if self._process is None or self._process.returncode is not None:
                self._process = await asyncio.create_subprocess_exec(
                    self.python, "-m", "qvr_core.runs.worker.live",
                    stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
                    start_new_session=True, limit=LINE_LIMIT,
                    env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONSAFEPATH": "1"},
                )  # fmt: skip
                self._started_in, self._ready = self.python, False
                self._reading = asyncio.get_running_loop().create_task(self._read(self._process))
            return self._process

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Hand on what the process says, until it ends."""
        assert process.stdout is not None
        with contextlib.suppress(ValueError, ConnectionError):
            while line := await process.stdout.readline():
                self._take(Drawn.model_validate_json(line))
        if self._process is process:
            self.kill()
        await process.wait()

    def _take(self, drawn: Drawn) -> None:
        self._ready = True
        if (dropping := self._dropping.pop(drawn.number, None)) is not None and not drawn.dropped and not drawn.last:
            self._dropping[drawn.number] = dropping
            return
        if dropping is not None:
            dropping.cancel()
        tell, answer = self._asked.get(drawn.number, (None, None))
        if tell is None or answer is None or answer.done():
            return
        if drawn.last:
            answer.set_result(drawn)
        else:
            tell(drawn)

    def _stay(self) -> None:
        if self._retiring is not None:
            self._retiring.cancel()
            self._retiring = None

    def _retire_later(self) -> None:
        self._stay()
        if self.pid is not None and not self._asked:
            self._retiring = asyncio.get_running_loop().call_later(self._idle, self.kill)

    async def close(self) -> None:
        """End the process, and wait until it is gone."""
        self.kill()
        if self._reading is not None:
            await self._reading
        if self._killed is not None:
            await self._killed.wait()

    def kill(self) -> None:
        """End the process, and what it has started, at once; the next question starts another."""
        self._stay()
        for timer in self._dropping.values():
            timer.cancel()
        self._dropping.clear()
        process, self._process = self._process, None
        self._killed = process or self._killed
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if hasattr(os, "killpg"):
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.kill()
        for _, answer in self._asked.values():
            if not answer.done():
                answer.set_exception(ConnectionResetError(ENDED))


ENDED = "the process that draws ended"
