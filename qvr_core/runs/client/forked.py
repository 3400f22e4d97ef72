"""A worker that is a fork of the command line, which has loaded the checker and the protocol already: it need not load
them again.

Linux alone, and only where the process that forks has one thread: what other threads hold locked stays locked in a
fork.
"""

from __future__ import annotations

import asyncio
import gc
import os
import runpy
import signal
import socket
import sys
import traceback
from typing import NoReturn

MODULE = "qvr_core.runs.worker"


def can_fork() -> bool:
    """Whether a fork of this process is a sound one."""
    return sys.platform == "linux" and len(os.listdir("/proc/self/task")) == 1


class ForkedProcess:
    """What `asyncio.subprocess.Process` tells of a process, of a fork that waits for its job on stdin."""

    def __init__(self, environment: dict[str, str]) -> None:
        """Fork, outside any event loop.  Raises OSError where there can be no other process."""
        pairs = [socket.socketpair() for _ in range(3)]
        started = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _become([theirs.fileno() for _, theirs in pairs], environment)
        for _, theirs in pairs:
            theirs.close()
        os.close(started[1])
        os.read(started[0], 1)  # it has a session of its own by then, to which signals are sent
        os.close(started[0])
        self.returncode: int | None = None
        self._ends = [ours for ours, _ in pairs]
        self._writers: list[asyncio.StreamWriter] = []
        self._ended: asyncio.Future[int] | None = None
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None

    async def connect(self, limit: int) -> None:
        """Make streams of its pipes in this loop, with lines of at most `limit` bytes, and watch for its end."""
        connected = [await asyncio.open_connection(sock=end, limit=limit) for end in self._ends]
        self._writers = [writer for _, writer in connected]
        self.stdin, self.stdout, self.stderr = connected[0][1], connected[1][0], connected[2][0]
        loop = asyncio.get_running_loop()
        self._ended, watched = loop.create_future(), os.pidfd_open(self.pid)

        def over() -> None:
            loop.remove_reader(watched)
            os.close(watched)
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            if self._ended is not None and not self._ended.done():
                self._ended.set_result(self.returncode)

        loop.add_reader(watched, over)

    async def wait(self) -> int:
        """Its exit status, negative for a signal, once it has ended."""
        assert self._ended is not None, "its streams are not connected"
        return await asyncio.shield(self._ended)


def _become(ends: list[int], environment: dict[str, str]) -> NoReturn:
    """Be `python -m qvr_core.runs.worker` with these as stdin, stdout and stderr."""
    status = 1
    try:
        os.setsid()
        for number, end in enumerate(ends):
            os.dup2(end, number)
        os.closerange(3, 1 + max(map(int, os.listdir("/proc/self/fd"))))
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        gc.freeze()
        os.environ.update(environment)
        if sys.path[:1] in ([""], [os.getcwd()]):
            del sys.path[0]  # nothing is imported from where the user stands
        sys.argv = [MODULE]
        runpy.run_module(MODULE, run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        os.write(2, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        os._exit(status)
