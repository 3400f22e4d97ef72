"""One rank of `benchmarks.runs`' data-parallel figure, under torchrun: steps alone and together in turn.

Alone a rank steps over 32 windows of 64 bytes; together the ranks share 64, so each has as many.  Both are measured in
the same processes at the same time, so that what else the machine does falls on both.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

from torch import distributed

from qvr_core.analysis import Analyzer
from qvr_core.runs.fit.distributed import join, leave
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.fit.svi import SviFit
from qvr_core.runs.prepare.prepare import prepare
from qvr_core.runs.record.protocol import Job

STEPS = 10


def seconds(fit: SviFit) -> tuple[float, float]:
    """Wall-clock and processor seconds of a step, all threads of this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(STEPS):
        fit.advance()
    return (time.perf_counter() - wall) / STEPS, (time.process_time() - cpu) / STEPS


def main(job: Job, rounds: int) -> None:
    """Print rank 0's figures as JSON: seconds of a step alone, and together against alone by clock and processor."""
    team = join("cpu")
    snapshot = Analyzer(job.text).snapshot()
    doubled = job.model_copy(update={"config": job.config.model_copy(update={"batch_size": 64})})
    alone = SviFit(prepare(job, snapshot), Stop())
    together = SviFit(prepare(doubled, snapshot), Stop(), team)
    pairs: list[tuple[tuple[float, float], tuple[float, float]]] = []
    for _ in range(rounds + 1):
        distributed.barrier()
        one = seconds(alone)
        distributed.barrier()
        pairs.append((one, seconds(together)))
    wall, cpu = (statistics.median(both[i] / one[i] for one, both in pairs[1:]) for i in (0, 1))
    if team.leads:
        step = statistics.median(one[0] for one, _ in pairs[1:])
        print(json.dumps({"step": step, "wall": wall, "processor": cpu}))
    leave()


if __name__ == "__main__":
    main(Job.model_validate_json(Path(sys.argv[1]).read_text()), int(sys.argv[2]))
