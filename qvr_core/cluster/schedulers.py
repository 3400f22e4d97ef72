"""A cluster while it is used: its client, and for one of our own its processes."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from qvr_core.cluster.address import Address
from qvr_core.cluster.dispatch import LostCluster

if TYPE_CHECKING:
    from distributed import Client

CONNECT = 20.0
"""Seconds in which a scheduler must answer."""
CLOSE = 2.0
OWN = "127.0.0.1:0"
"""Where servers of pages listen that Dask starts in any case."""
QUIET: dict[str, Any] = {
    # what is wrong is told in words here
    "logging.distributed": "critical",
    # of a scheduler and a worker in this process nothing is shown
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # figures that nobody looks at, for which a scheduler and a worker that wait would use a tenth of a core
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.diagnostics.nvml": False,
}
MOST_JOBS = 16
"""Of SLURM, where nobody says how many."""


@contextlib.contextmanager
def opened(address: Address, units: int) -> Generator[Client]:
    """A client of the cluster, for so many units that can run at a time.  Raises `LostCluster` where there is none, and
    ModuleNotFoundError where Dask is not installed."""
    import distributed
    from dask import config

    with config.set({**QUIET, "distributed.comm.timeouts.connect": f"{CONNECT:g}s"}), contextlib.ExitStack() as stack:
        try:
            match address.kind:
                case "local":
                    cluster: Any = stack.enter_context(_local(address.count or os.cpu_count() or 1))
                case "slurm":
                    cluster = stack.enter_context(_slurm(address.count or min(units, MOST_JOBS)))
                case "scheduler":
                    cluster = address.place
            client: Any = distributed.Client(cluster, timeout=CONNECT, set_as_default=False)
        except (OSError, RuntimeError, TypeError, ValueError) as problem:
            raise LostCluster(_unreachable(address, problem)) from problem
        try:
            yield client
        finally:
            with contextlib.suppress(Exception):
                client.close(timeout=CLOSE)


def _unreachable(address: Address, problem: Exception) -> str:
    if address.kind != "scheduler":
        return f"the cluster could not be started: {problem}"
    if address.place.startswith("tls://") and isinstance(problem, TypeError | ValueError | RuntimeError):
        return (
            f"`{address.place}` wants certificates, which Dask's configuration names (distributed.comm.tls): {problem}"
        )
    return f"no scheduler answers at {address.place}: start one by `dask scheduler`"


@contextlib.contextmanager
def _local(count: int) -> Generator[Any]:
    """A scheduler and a worker of so many threads in this process, which nobody else reaches; units are done in
    processes of our own, which the worker starts."""
    import distributed

    unlisted: Any = distributed
    with _deaf_to_interrupts():
        cluster = unlisted.LocalCluster(
            n_workers=1,
            threads_per_worker=count,
            processes=False,
            dashboard_address=OWN,
            worker_dashboard_address=OWN,
            memory_limit=0,
        )
    try:
        yield cluster
    finally:
        with contextlib.suppress(Exception):
            cluster.close(timeout=CLOSE)


@contextlib.contextmanager
def _deaf_to_interrupts() -> Generator[None]:
    """Threads and processes that begin inside do not hear Ctrl-C, which a terminal sends to all: the command ends
    them."""
    if os.name != "posix":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _slurm(count: int) -> Generator[Any]:
    """Jobs of SLURM as Dask's own configuration describes them (jobqueue.yaml)."""
    from dask_jobqueue.slurm import SLURMCluster

    cluster: Any = SLURMCluster()
    try:
        cluster.scale(jobs=count)
        yield cluster
    finally:
        with contextlib.suppress(Exception):
            cluster.close(timeout=CLOSE)
