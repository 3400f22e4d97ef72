"""Who compiles the sampler.  It serves all programs, so it is compiled once a machine and version; whoever needs it
meanwhile waits for its turn and then reads it from disk."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import IO

from qvr_core.inference.machine.build import cache_folder, placed, tell

PATIENCE = 60.0
"""Seconds that the compiler of another process is waited for; then this one compiles as well."""
LOOKS = 0.02


def compiled_before() -> bool:
    """Whether this sampler has been compiled here by these versions: it is read in no time."""
    return _mark().exists()


def compiled() -> None:
    """Note that it has been."""
    with contextlib.suppress(OSError):
        _mark().parent.mkdir(parents=True, exist_ok=True)
        placed(_mark(), b"")


@functools.cache
def _own() -> bytes:
    return Path(__file__).with_name("transition.py").read_bytes()


def _mark() -> Path:
    versions = [importlib.metadata.version(name) for name in ("numba", "llvmlite", "numpy")]
    place = os.environ.get("NUMBA_CACHE_DIR", __file__)
    parts = (_own(), *(part.encode() for part in (*versions, sys.version, platform.machine(), place)))
    return cache_folder() / f"sampler_{hashlib.sha256(b'|'.join(parts)).hexdigest()[:32]}"


@contextlib.contextmanager
def turn() -> Generator[None]:
    """One process at a time is inside; one that waits too long goes in as well, for more than time is not at stake."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            cache_folder().mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(open(cache_folder() / "sampler.lock", "ab"))
            until = time.monotonic() + PATIENCE
            waits = not _taken(file)
            if waits:
                tell()
            while waits and time.monotonic() < until:
                time.sleep(LOOKS)
                waits = not _taken(file)
        yield


if sys.platform == "win32":
    import msvcrt

    def _taken(file: IO[bytes]) -> bool:
        try:
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _taken(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
