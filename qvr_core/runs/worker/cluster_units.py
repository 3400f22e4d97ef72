"""The process in which a worker of a cluster does units: `python -m qvr_core.runs.worker.cluster_units`.

First an archive comes over stdin, then requests; each has one answer over stdout.  Which kind the archive is decides
what is loaded: slices of chains want numpy and the compiler alone, programs the engine of their command.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable
from typing import IO, Any, Protocol, TypeVar

from qvr_core.arrays.engine_choice import lacks_torch, torch_wanted, without_torch
from qvr_core.cluster.packing import UnitFailed, failure, read_frame, unpacked, write_frame
from qvr_core.runs.worker.pipes import claim_stdout

Made = TypeVar("Made")
IDLE = 60.0
"""Seconds without a request after which it ends."""


class Units(Protocol):
    """What answers requests of one kind."""

    def answer(self, asked: bytes) -> bytes:
        """The answer to one."""
        ...


def main() -> None:
    """Answer until stdin closes, or nobody asks any more."""
    out = claim_stdout()
    frames: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, frames), daemon=True).start()
    units = tried(units_of, frames.get())
    while True:
        try:
            asked = frames.get(timeout=IDLE)
        except queue.Empty:
            return
        # an archive that cannot be opened is the answer to whatever is asked of it
        answer = units if isinstance(units, bytes) else tried(units.answer, asked)
        write_frame(out, answer)


def tried(work: Callable[[bytes], Made], given: bytes) -> Made | bytes:
    """What `work` makes of it, or in words why it cannot."""
    try:
        return work(given)
    except UnitFailed as problem:
        return failure(str(problem))
    except Exception as problem:
        if lacks_torch(problem):
            return failure(str(problem), lacks="torch")
        traceback.print_exc(file=sys.stderr)
        return failure(f"{type(problem).__name__}: {problem}")


def _read(source: IO[bytes], frames: queue.SimpleQueue[bytes]) -> None:
    """Take frames as they come; where there are no more, the worker is gone, and this process goes with it."""
    while (frame := read_frame(source)) is not None:
        frames.put(frame)
    os._exit(0)


def units_of(archive: bytes) -> Units:
    """What answers the requests of an archive."""
    head, arrays = unpacked(archive)
    return _of_kind(head["kind"], head.get("torch", False))(head, arrays)


def _of_kind(kind: str, torch: bool) -> Any:
    if not torch:
        without_torch()
    elif not torch_wanted():
        raise ModuleNotFoundError("a worker of the cluster does not have the package `torch`", name="torch")
    if kind == "chains":
        from qvr_core.inference.machine.slices import Slices

        return Slices
    if kind == "replicates":
        from qvr_core.runs.worker.replicates import ReplicateUnits

        return ReplicateUnits
    if kind == "refits":
        from qvr_core.runs.worker.refit_units import RefitUnits

        return RefitUnits
    raise ValueError(f"no units of the kind `{kind}`")


if __name__ == "__main__":
    main()
    sys.stderr.flush()
    # Everything is written: the thread that reads would only be waited for.
    os._exit(0)
