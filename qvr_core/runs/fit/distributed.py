"""Processes that fit one program together, as `torchrun` starts them: data-parallel by torch.distributed."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
from dataclasses import dataclass

from qvr_core.arrays.engine import TORCH, Tensor, arrays
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.prepare import Prepared

SIOCGIFADDR = 0x8915
"""Linux' number of the question for an interface's address."""


@dataclass(frozen=True)
class Team:
    """This process' place.  A team of one never communicates."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """True for the one process that writes events and checkpoints."""
        return self.rank == 0

    def share(self, rows: Tensor) -> Tensor:
        """This process' rows of a batch, which has at least as many as there are processes."""
        return rows[self.rank :: self.size]


def started_by_torchrun() -> bool:
    """True in a process that `torchrun` has started."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ and "MASTER_ADDR" in os.environ


def join(device: str) -> Team:
    """Meet the other processes; a team of one without `torchrun`.  NCCL on GPUs, gloo elsewhere."""
    if not started_by_torchrun():
        return Team()
    if not arrays.distributed.is_initialized():
        gpus = device.startswith("cuda") and arrays.cuda.is_available()
        if gpus:
            # Before the first message: NCCL sends from the current device.
            arrays.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % arrays.cuda.device_count())
        else:
            _keep_apart(int(os.environ.get("LOCAL_RANK", "0")), int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
            _talk_where_the_others_are()
        arrays.distributed.init_process_group("nccl" if gpus else "gloo")
    return Team(arrays.distributed.get_rank(), arrays.distributed.get_world_size())


def _keep_apart(place: int, processes: int) -> None:
    """Give each process of a machine cores of its own, so that gloo's threads run where the gradients are in the cache.

    Not where the cores are fewer, or where something else, such as a scheduler, has given them out.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    cores = sorted(os.sched_getaffinity(0))
    share = len(cores) // processes
    if share and len(cores) == os.cpu_count():
        os.sched_setaffinity(0, cores[place * share : (place + 1) * share])


def _talk_where_the_others_are() -> None:
    """gloo listens where the name of its machine leads, on many machines to 127.0.1.1, which no other one reaches: it
    is told the interface that leads to the first process, unless the user has."""
    if "GLOO_SOCKET_IFNAME" not in os.environ and sys.platform == "linux":
        name = interface_towards(os.environ["MASTER_ADDR"], int(os.environ.get("MASTER_PORT", "0")))
        if name is not None:
            os.environ["GLOO_SOCKET_IFNAME"] = name


def interface_towards(host: str, port: int) -> str | None:
    """The network interface of this machine from which packets go to `host`; None where it is the machine alone, or
    nobody knows.  Nothing is sent."""
    import fcntl

    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, port or 9))
        own = probe.getsockname()[0]
        for _, name in [] if own.startswith("127.") else socket.if_nameindex():
            with contextlib.suppress(OSError):
                found = fcntl.ioctl(probe, SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                if socket.inet_ntoa(found[20:24]) == own:
                    return name
    return None


def cannot_share(prepared: Prepared, rows: int, processes: int) -> Refused:
    """What is said where a step has fewer rows than there are processes."""
    if prepared.needs.statistical and rows == 1:
        message = f"`{prepared.program.name}` sees all of its data in every step"
        advice = "Set batch_size and read a table, so that a step sees a part of the rows"
    else:
        message, advice = f"a step has only {rows} rows", "Set a larger batch_size"
    return Refused(
        "processes",
        f"{message}: there is nothing for {processes} processes to share",
        fixes=("Run it in one process", advice),
    )


def broken(error: Exception) -> bool:
    """Whether an exception says that another process of the team is gone.  gloo's own have no class."""
    if TORCH and isinstance(error, arrays.distributed.DistError):
        return True
    return isinstance(error, RuntimeError) and "gloo" in str(error)


def leave() -> None:
    """Undo `join`."""
    if arrays.distributed.is_initialized():
        arrays.distributed.destroy_process_group()
