"""What a command computes on: no torch where its program has no weights of networks, as in the worker of a run.

The engine of a process is chosen before anything that computes is loaded, and for good; what arrays cannot compute
after all begins anew, with torch.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator
from dataclasses import dataclass

from qvr_core.arrays.choice import VARIABLE, lacks_torch
from qvr_core.runs.record.protocol import Job
from qvr_core.runs.worker.choice import choose, has_networks


@dataclass(slots=True)
class _Process:
    """Whether this process runs one command and nothing else."""

    own: bool = False


_process = _Process()


def own_process() -> None:
    """Said by the entry point of the command line: the engine of this process is nobody else's."""
    _process.own = True


@contextlib.contextmanager
def engine_of(job: Job) -> Generator[None]:
    """Inside, figures of a job's program are computed on the engine that suits it; nothing is printed before all of
    them are there."""
    chosen = _process.own and VARIABLE not in os.environ and choose(job, has_networks)
    try:
        yield
    except Exception as problem:
        if not chosen or not lacks_torch(problem):
            raise
        _again()


def _again() -> None:
    """Become the same command, with torch.  Raises ModuleNotFoundError where there is none."""
    from qvr_core.runs.worker.choice import require_torch

    require_torch()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(
        sys.executable, [sys.executable, "-m", "qvr_core.cli", *sys.argv[1:]], {**os.environ, VARIABLE: "torch"}
    )
