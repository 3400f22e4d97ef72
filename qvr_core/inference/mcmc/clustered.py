"""Chains on a cluster: each goes from slice to slice by itself, wherever there is a worker that has nothing to do.

The chains live here, with their draws and checkpoints; a worker gets the state of one and gives back the next.  What a
lost worker had begun is begun again by another one from the same state, so the draws are those of a run on this machine
to the last bit, where the machines are of one kind.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import numpy as np

from qvr_core.cluster.dispatch import LOOKS, Dealer, seconds_each
from qvr_core.codegen.kernels.nuts_and_hmc import REPORTED
from qvr_core.inference.machine.compiled import MachineDensity
from qvr_core.inference.machine.slices import SECONDS, archive_of, kind_of_machine, request, taken
from qvr_core.inference.mcmc.collected import Collected
from qvr_core.inference.mcmc.engines import Compiled
from qvr_core.inference.mcmc.interruptible import Enough

NUMBERS = 500_000
"""That a slice brings back at most, 8 bytes each."""
COMPARED = 3
"""Starts of chains at which the machine code of each processor is compared."""


class Placed:
    """A chain of a cluster's run, with what it has drawn."""

    def __init__(self, running: Compiled, collected: Collected) -> None:
        self.running, self.collected = running, collected
        (self.chain,) = running.chains

    @property
    def whole(self) -> bool:
        """Whether it has come to its end."""
        return self.running.done >= self.running.total

    def next_request(self, seconds: float) -> bytes:
        """The request for its next slice, of about so many seconds."""
        most = self.running.done + max(1, NUMBERS // (len(self.chain.q) + REPORTED))
        return request(self.chain, min(self.running.until(), most), seconds)

    def take(self, answer: bytes) -> str:
        """Take the slice; the kind of machine that has made it."""
        advanced = taken(self.chain, answer)
        self.collected.take(self.running.slice_of(advanced.positions[None], advanced.reports[None]))
        return advanced.machine


def run_on(
    dealer: Dealer,
    density: MachineDensity,
    chains: Sequence[Placed],
    ended: Callable[[], bool],
    tell: Callable[[str], None],
) -> None:
    """Bring chains to their end, or as far as they are when `ended` says that it is enough; `tell` is told once where
    machines of several kinds take part.  Raises `LostCluster`, `UnitFailed`; the chains stand then where they were."""
    going = [(number, one) for number, one in enumerate(chains) if not one.whole]
    if not going:
        return
    positions = np.stack([one.running.first[0] for one in chains[:COMPARED]])
    archive = archive_of(density, chains[0].running.settings, positions)
    kinds, seconds = {kind_of_machine()}, seconds_each(SECONDS, len(going))
    try:
        for number, one in going:
            dealer.send(number, archive, one.next_request(seconds))
        with contextlib.suppress(Enough):
            while dealer.open and not ended():
                found = dealer.receive(LOOKS)
                if found is None:
                    continue
                one = chains[found[0]]
                kind = one.take(found[1])
                if kind not in kinds and len(kinds) == 1:
                    tell(
                        f"a worker is another kind of machine ({kind}) than this one ({kind_of_machine()}): the draws "
                        "of a chain depend on which kinds it has been on"
                    )
                kinds.add(kind)
                if not one.whole:
                    dealer.send(found[0], archive, one.next_request(seconds))
    finally:
        end = dealer.end()
        for one in chains:
            one.collected.close()
        end()
