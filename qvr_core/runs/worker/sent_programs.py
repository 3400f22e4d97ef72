"""A program with its data as the archive of units: its text and what it imports, the elements of its open sets, and its
numbers.  No file is read where it arrives, and nothing of it is run but what the language means by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays.engine import TORCH, Tensor, arrays, is_tensor
from qvr_core.cluster.packing import Archive, packed
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.runnable import built
from qvr_core.runs.record.protocol import Job
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.semantics.file.open_sets import KnownSet

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Sent:
    """A program that has arrived, with its data by name."""

    job: Job
    model: ProgramModule
    data: dict[str, Tensor]


def archive_of(kind: str, job: Job, known: Mapping[str, KnownSet], data: Mapping[str, Any]) -> Archive:
    """The program of a job for units of that kind.  Raises `Refused` where data are no arrays."""
    # of the places where it was found only the file's name is told, in messages
    own = job.model_copy(update={"run_id": "", "directory": "", "base": "", "path": Path(job.path).name})
    head = {
        "kind": kind,
        "job": own.model_dump_json(),
        "known": {name: [one.size, one.labels] for name, one in known.items()},
        # the same arithmetic there as here
        "torch": TORCH,
        "threads": arrays.get_num_threads(),
    }
    return Archive(packed(head, sent_values(data)))


def sent_values(values: Mapping[str, Any]) -> dict[str, Array]:
    """Arrays of numpy of what a program is given.  Raises `Refused`."""
    lost = [name for name, value in values.items() if not is_tensor(value)]
    if lost:
        raise Refused("cluster", f"`{lost[0]}` is no array of numbers, and only arrays can be sent to a cluster")
    return {name: value.detach().cpu().numpy() for name, value in values.items()}


def received_values(values: Mapping[str, Array]) -> dict[str, Tensor]:
    """What `sent_values` was given."""
    return {name: arrays.from_numpy(np.asarray(value)) for name, value in values.items()}


def arrived(head: Mapping[str, Any], values: Mapping[str, Array]) -> Sent:
    """The program of an archive, in a process whose engine is that of the command."""
    job = Job.model_validate_json(head["job"])
    known = {
        name: KnownSet(int(size), None if labels is None else tuple(labels))
        for name, (size, labels) in head["known"].items()
    }
    arrays.set_num_threads(int(head["threads"]) if TORCH else 1)
    # what can be left out or replicated has no weights: its chains move in double precision
    arrays.set_default_dtype(arrays.float64)
    arrays.manual_seed(job.config.seed)
    return Sent(job, built(job, known), received_values(values))
