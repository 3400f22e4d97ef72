"""The cluster of a command: opened for its units, and told in the user's words where it cannot be had or is lost."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator

from qvr_core.arrays.engine_choice import TorchWanted
from qvr_core.cluster.address import Address
from qvr_core.cluster.dispatch import Dealer, LostCluster
from qvr_core.cluster.packing import UnitFailed
from qvr_core.cluster.schedulers import opened
from qvr_core.runs.prepare.failures import Refused


@contextlib.contextmanager
def on_cluster(address: Address, units: int, again: tuple[str, ...], tell: Callable[[str], None]) -> Generator[Dealer]:
    """Who deals out the units of a command, of which so many can be done at a time.  Raises `Refused`, with what goes
    on from there; `TorchWanted` where units ask for it."""
    try:
        with opened(address, units) as client:
            yield Dealer(client, tell)
    except LostCluster as problem:
        raise Refused("lost-cluster", str(problem), fixes=again) from problem
    except UnitFailed as problem:
        if problem.lacks == "torch":
            raise TorchWanted(str(problem)) from problem
        raise Refused("cluster", f"a worker of the cluster could not do its part: {problem}") from problem
