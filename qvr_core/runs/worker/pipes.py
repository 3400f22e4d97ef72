"""How a process of ours speaks with the one that started it: lines over pipes, and an end with it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from typing import IO

PR_SET_PDEATHSIG = 1


def claim_stdout() -> IO[bytes]:
    """The real stdout for messages alone; file descriptor 1 now leads to stderr."""
    real = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return os.fdopen(real, "wb")


def follow_parent() -> None:
    """Ask the kernel (Linux) for SIGTERM when the parent dies; the closed stdin says it everywhere."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def stdin_lines() -> Iterator[bytes]:
    """Lines of stdin, unbuffered: a daemon thread that blocks in a buffered read stops the interpreter's shutdown."""
    held = b""
    while chunk := os.read(0, 1 << 16):
        *lines, held = (held + chunk).split(b"\n")
        yield from lines
