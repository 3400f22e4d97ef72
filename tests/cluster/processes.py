"""A scheduler of Dask and its workers as processes, as people start them by hand."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.patience import HANG

Process = subprocess.Popen[bytes]


@dataclass
class Started:
    """A cluster that listens on loopback, or on another `host`, behind what is put in front of each command."""

    folder: Path
    host: str = "127.0.0.1"
    in_front: Sequence[str] = ()
    """Of the scheduler's command."""
    address: str = ""
    scheduler: Process | None = None
    workers: list[Process] = field(default_factory=list[Process])

    def start_scheduler(self, *options: str) -> None:
        file = self.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        own = ("--host", self.host, "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
        self.scheduler = self._dask(self.in_front, "scheduler", *own, *options)
        until(lambda: file.exists() and file.read_text().endswith("}"))
        self.address = json.loads(file.read_text())["address"]

    def start_worker(self, *options: str, in_front: Sequence[str] = ()) -> Process:
        own = ("--nthreads", "1", "--no-dashboard", "--local-directory", str(self.folder), "--memory-limit", "0")
        self.workers.append(self._dask(in_front, "worker", self.address, *own, *options))
        return self.workers[-1]

    def _dask(self, in_front: Sequence[str], *command: str) -> Process:
        with open(self.folder / "dask.log", "ab") as log:
            return subprocess.Popen(
                [*in_front, sys.executable, "-m", "dask", *command],
                stdout=log, stderr=log, cwd=self.folder, start_new_session=True,
            )  # fmt: skip

    def end(self) -> None:
        """SIGKILL to all that was started, with all that it has started."""
        for process in (self.scheduler, *self.workers):
            if process is not None:
                killed(process)


def killed(process: Process) -> None:
    """SIGKILL to a process and its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(HANG)


NO_NANNY = "--no-nanny"
"""A worker is one process then, not a second one's child that would start it again: half of what its start takes."""


@contextlib.contextmanager
def started(folder: Path, workers: int = 2, *options: str) -> Iterator[Started]:
    """Inside, a scheduler and so many workers with these options."""
    cluster = Started(folder)
    try:
        cluster.start_scheduler()
        for _ in range(workers):
            cluster.start_worker(*options)
        yield cluster
    finally:
        cluster.end()


def until(true: object) -> None:
    """Wait until something is so; only a hang takes longer."""
    for _ in range(int(HANG * 20)):
        if true():  # pyright: ignore
            return
        time.sleep(0.05)
    raise TimeoutError("it never came")


def session_of(leader: int) -> dict[int, bytes]:
    """The processes of a session that have not ended, with their command lines."""
    found: dict[int, bytes] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                found[int(folder.name)] = (folder / "cmdline").read_bytes()
    return found
