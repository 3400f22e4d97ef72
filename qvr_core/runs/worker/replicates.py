"""Replicates of calibration as units: the data of some of them out, thinned draws of their posteriors back.

A replicate is a function of its data and its seed, so it does not matter how many are in a unit; there are as many as
take about a second, in which a scheduler's work for a unit is little.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays.engine import Tensor
from qvr_core.cluster.dispatch import Dealer, seconds_each
from qvr_core.cluster.packing import UnitFailed, answered, packed, unpacked
from qvr_core.inference.calibration import Elsewhere, Replicates, Watch
from qvr_core.inference.machine.density import NotCompiled
from qvr_core.runs.record.protocol import Job
from qvr_core.runs.worker.sent_programs import archive_of, arrived, received_values, sent_values
from qvr_core.semantics.file.open_sets import KnownSet

KIND = "replicates"
SECONDS = 1.0
"""That a unit takes about."""
EACH = 4
"""Units of each worker at least, so that none waits long for the last."""
FIRST = 3
"""Replicates of a worker's first unit: making the machine code is no measure for those that follow."""


def on_cluster(
    dealer: Dealer, job: Job, known: Mapping[str, KnownSet], data: Mapping[str, Any], watch: Watch
) -> Elsewhere:
    """Who samples the replicates of a job's program on a cluster."""

    def sampled(observed: Mapping[str, Tensor], seeds: Sequence[int]) -> dict[str, Tensor]:
        values = sent_values(observed)
        first = {name: value[:1] for name, value in values.items()}
        archive = archive_of(KIND, job, known, {**data, **received_values(first)})
        blocks, found, whole = _Blocks(len(seeds)), dict[int, dict[str, Any]](), 0
        sent: dict[int, range] = {}

        def send(numbers: range) -> None:
            number = len(sent)
            sent[number] = numbers
            own = {name: value[numbers.start : numbers.stop] for name, value in values.items()}
            dealer.send(number, archive, packed({"seeds": seeds[numbers.start : numbers.stop]}, own))

        threads = dealer.threads()
        for numbers in blocks.first(threads):
            send(numbers)
        for number, answer in dealer.answers():
            head, draws = answered(answer)
            found[sent[number].start] = draws
            whole += len(sent[number])
            watch(whole, len(seeds))
            for numbers in blocks.rest(head["seconds"], threads):
                send(numbers)
        joined = [found[start] for start in sorted(found)]
        return received_values({name: np.concatenate([part[name] for part in joined]) for name in joined[0]})

    return sampled


class _Blocks:
    """Which replicates make a unit: at first a few for each worker, then as many as these have shown to be a unit."""

    def __init__(self, count: int) -> None:
        self.count, self.next = count, 0

    def first(self, threads: int) -> Iterator[range]:
        """The first unit of each worker."""
        size = max(1, min(FIRST, self.count // (2 * threads)))
        for _ in range(min(threads, self.count)):
            yield self._cut(size)

    def rest(self, seconds: float, threads: int) -> Iterator[range]:
        """All the others, where a replicate takes so many seconds."""
        left = self.count - self.next
        size = max(1, min(int(seconds_each(SECONDS, threads) / max(seconds, 1e-6)), left // (EACH * threads)))
        while self.next < self.count:
            yield self._cut(size)

    def _cut(self, size: int) -> range:
        start, self.next = self.next, min(self.count, self.next + size)
        return range(start, self.next)


class ReplicateUnits:
    """The other end."""

    def __init__(self, head: Mapping[str, Any], values: Mapping[str, NDArray[Any]]) -> None:
        sent = arrived(head, values)
        self.data, self.model = sent.data, sent.model
        self.replicates: Replicates | None = None

    def answer(self, asked: bytes) -> bytes:
        """The thinned draws of the replicates that are asked for, and the seconds that each has taken."""
        head, values = unpacked(asked)
        observed = received_values(values)
        if self.replicates is None:
            fixed = {name: value for name, value in self.data.items() if name not in observed}
            self.replicates = Replicates(self.model, fixed, {name: self.data[name] for name in observed})
        seeds = [int(seed) for seed in head["seeds"]]
        ends = [time.perf_counter()]
        try:
            draws = self.replicates.some(observed, seeds, lambda done, of: ends.append(time.perf_counter()))
        except NotCompiled as problem:
            raise UnitFailed(f"a cluster samples replicates as machine code, which these are not: {problem}") from None
        # without the first, for which the machine code is made or looked up
        begun = 1 if len(seeds) > 1 else 0
        seconds = (ends[-1] - ends[begun]) / (len(seeds) - begun)
        return packed({"seconds": seconds}, sent_values(draws))
