"""One process at a time works on a run: a lock on a file of its directory, which the kernel drops with the process."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import IO


class Held(Exception):
    """Another process works on the run; the message names it."""


class Lock:
    """The lock of a run, held until `release` or the end of this process.

    The file says who holds it, as pid and start time, for messages alone: what counts is the lock of the system, which
    a killed process cannot leave behind.
    """

    def __init__(self, directory: Path, started: str | None) -> None:
        """Take the lock.  `started`: when this process started, as the kernel counts it.  Raises `Held`, OSError."""
        self._file = open(directory / "lock", "a+b")  # noqa: SIM115 - open as long as the lock is held
        try:
            _lock(self._file)
        except OSError as error:
            self._file.seek(0)
            holder = self._file.read()
            self._file.close()
            raise Held(f"process {_pid(holder)} is at work on this run") from error
        self._file.truncate(0)
        self._file.write(json.dumps({"pid": os.getpid(), "started": started}).encode())
        self._file.flush()

    def release(self) -> None:
        """Let others have the run."""
        self._file.close()


def _pid(holder: bytes) -> str:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return str(json.loads(holder)["pid"])
    return "of an unknown number"


if sys.platform == "win32":
    import msvcrt

    FAR = 2**30
    """A byte behind the text: Windows lets nobody read a locked one."""

    def _lock(file: IO[bytes]) -> None:
        file.seek(FAR)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        # Not `flock`: a child would inherit it and keep it beyond this process.
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
