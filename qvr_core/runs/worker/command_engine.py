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
from typing import TYPE_CHECKING, NoReturn

from qvr_core.arrays.engine_choice import VARIABLE, lacks_torch

if TYPE_CHECKING:
    from qvr_core.runs.record.protocol import Job


@dataclass(slots=True)
class _Process:
    """Whether this process runs one command and nothing else: then its engine is nobody else's."""

    own: bool = False


_process = _Process()


def own_process() -> None:
    """Said by the entry point of the command line."""
    _process.own = True


@contextlib.contextmanager
def engine_of(job: Job) -> Generator[None]:
    """Inside, figures of a job's program are computed on the engine that suits it; nothing is printed before all of
    them are there."""
    from qvr_core.runs.worker.engine_choice import choose, has_networks  # the command line starts without the checker

    chosen = _process.own and VARIABLE not in os.environ and choose(job, has_networks)
    try:
        yield
    except Exception as problem:
        if not chosen or not lacks_torch(problem):
            raise
        _again()


def _again() -> NoReturn:
    """Become the same command, with torch.  Raises ModuleNotFoundError where there is none."""
    from qvr_core.runs.worker.engine_choice import require_torch

    require_torch()
    sys.stdout.flush()
    sys.stderr.flush()
    command = [sys.executable, "-m", "qvr_core.cli", *sys.argv[1:]]
    os.execve(sys.executable, command, {**os.environ, VARIABLE: "torch"})
