"""The cluster of a job: opened for its units, and told in the user's words where it cannot be had or is lost."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator

from qvr_core.cluster.address import Address
from qvr_core.cluster.dealing import Dealer, LostCluster
from qvr_core.cluster.opened import opened
from qvr_core.cluster.packing import UnitFailed
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.record.protocol import Event, Job, Message


@contextlib.contextmanager
def on_cluster(job: Job, address: Address, units: int, emit: Callable[[Event], None]) -> Generator[Dealer]:
    """Who deals out the units of a run, of which so many can be done at a time.  Raises `Refused`."""
    again = (
        f"Go on here: qvr run {job.config.algorithm} --resume {job.run_id} --cluster none",
        "Go on there, or on another one: --cluster tcp://HOST:PORT in its place",
    )
    with told(again), opened(address, units) as client:
        yield Dealer(client, lambda text: emit(Message(level="warning", text=text)))


@contextlib.contextmanager
def told(again: tuple[str, ...]) -> Generator[None]:
    """Inside, what is wrong with a cluster or its units becomes a `Refused`, with what goes on from there."""
    try:
        yield
    except LostCluster as problem:
        raise Refused("lost-cluster", str(problem), fixes=again) from problem
    except UnitFailed as problem:
        raise Refused("cluster", f"a worker of the cluster could not do its part: {problem}") from problem
