"""Whether a job is computed without torch: it says so before anything that computes is loaded."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from typing import NoReturn

from qvr_core.arrays.engine_choice import VARIABLE, without_torch
from qvr_core.data.needs import needs_of, reachable
from qvr_core.runs.record.config import OF_TORCH
from qvr_core.runs.record.program import analysed
from qvr_core.runs.record.protocol import Job
from qvr_core.runs.record.settings import main_program
from qvr_core.semantics.programs.parameter_count import parameter_count
from qvr_core.semantics.types.model.arrows import Pool, TermArrowBase
from qvr_core.semantics.types.model.programs import Program

KEPT = ((-3, 32 * 2**20), (-1, 512 * 2**20))
"""M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of glibc's mallopt, in bytes."""
AGAIN = "QVR_JOB"
"""Of the environment: the descriptor of the file that holds the job of a worker that has begun anew."""


def choose(job: Job, torch_for: Callable[[Job], bool] | None = None) -> bool:
    """Have this process compute without torch, where the job is one of a program without weights of networks; whether
    it does.  `torch_for` says otherwise which jobs want torch."""
    # a process that has its engine already keeps it, and one that cannot begin anew must not be wrong
    if "qvr_core.arrays.engine" in sys.modules or os.name != "posix" or (torch_for or wants_torch)(job):
        keep_memory()
        return False
    without_torch()
    return True


def keep_memory() -> None:
    """Have glibc keep what is freed after a step, which is wanted again in the next, instead of faulting it in anew."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        allocator = ctypes.CDLL(None)
        for option, size in KEPT:
            allocator.mallopt(option, size)


def wants_torch(job: Job) -> bool:
    """Whether the job is one of networks, on a device, in a team, or asked to be plain; or of parts of the rows, where
    there is torch, which is faster at them."""
    config = job.config
    if config.engine == "plain" or config.device != "cpu" or "RANK" in os.environ:
        return True
    program = _without_networks(job)
    if program is None or config.algorithm == "nuts":
        return program is None
    if guides_of(job) or config.guide in OF_TORCH or config.gradient == "doubly":
        return True
    # a guide of what each row draws anew is shared by rows, of which machine code knows nothing
    if config.precision == "bfloat16" or not needs_of(program).statistical:
        return True
    return config.batch_size is not None and importlib.util.find_spec("torch") is not None


def guides_of(job: Job) -> bool:
    """Whether a fit by svi draws from a program `[guide=…]`: its parameters are torch's."""
    model = analysed(job).model
    automatic = job.config.guide not in ("auto", *model.programs)
    return not automatic and bool(model.guides_of(job.program or main_program(model) or ""))


def has_networks(job: Job) -> bool:
    """Whether the job's program has weights that are no latents of its own, or nobody can tell."""
    return _without_networks(job) is None


def _without_networks(job: Job) -> Program | None:
    """The program of a job, where it has no networks."""
    if job.config.lift or job.config.source in ("text", "pairs"):
        return None
    model = analysed(job).model
    program = model.own_programs.get(job.program or main_program(model) or "")
    if program is None or parameter_count(model, program):
        return None
    # it has no weights, and nobody but torch knows it
    return None if any(isinstance(node, Pool | TermArrowBase) for node in reachable(program, model)) else program


def require_torch() -> None:
    """Raises ModuleNotFoundError where there is no torch."""
    if importlib.util.find_spec("torch") is None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")


def again_with_torch(line: bytes, events: int) -> NoReturn:
    """Become a worker that has torch and the same job, in the same process, whose stdout is the descriptor `events`.
    Raises ModuleNotFoundError where there is no torch."""
    require_torch()
    file = tempfile.TemporaryFile()  # noqa: SIM115
    file.write(line)
    file.seek(0)
    os.set_inheritable(file.fileno(), True)
    kept = {name: value for name, value in os.environ.items() if name != VARIABLE}
    sys.stderr.flush()
    os.dup2(events, 1)
    os.execve(sys.executable, [sys.executable, "-m", "qvr_core.runs.worker"], {**kept, AGAIN: str(file.fileno())})


def job_again() -> bytes | None:
    """The job of a worker that has begun anew."""
    held = os.environ.pop(AGAIN, None)
    if held is None:
        return None
    with os.fdopen(int(held), "rb") as file:
        return file.read()
