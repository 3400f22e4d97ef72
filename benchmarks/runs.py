"""Runs: start-up cold and prewarmed, event latency, cancel, throughput, what a second process costs.

Times are in milliseconds from the client's side.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import UnionType

from qvr_core.runs.client.client import WorkerProcess
from qvr_core.runs.client.pool import WorkerPool
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.protocol import CheckpointWritten, Control, Event, Failed, Finished, Job, Progress, Started
from qvr_core.runs.record.store import RunStore

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "vanilla_rnn_lm.qvr"
# Seconds in which an idle worker has surely loaded everything.
WARM = 8
BATCH = 1024
SENTENCE = b"the quick brown fox jumps over the lazy dog and then it sleeps; "


def job(folder: Path, **config: object) -> Job:
    """A run of the next-byte example on a small text."""
    text = folder / "t.txt"
    if not text.exists():
        text.write_bytes(SENTENCE * 4000)
    asked = RunConfig.model_validate({"data": "text:t.txt", "held_out": 0, "threads": 1, **config})
    return RunStore(folder).create(
        path=str(EXAMPLE), text=EXAMPLE.read_text(), program=None, config=asked, base=str(folder)
    )


class Watch:
    """Waits for events of a kind, with the moment at which they came."""

    def __init__(self) -> None:
        self.came: asyncio.Queue[tuple[float, Event]] = asyncio.Queue()

    def __call__(self, event: Event) -> None:
        self.came.put_nowait((time.perf_counter(), event))

    async def next(self, kind: type | UnionType) -> tuple[float, Event]:
        while True:
            moment, event = await self.came.get()
            if isinstance(event, kind):
                return moment, event


async def startup(folder: Path, warm: bool) -> float:
    """Seconds from the request to the first event."""
    pool = WorkerPool(limit=1, keep_warm=False)
    if warm:
        pool.prewarm()
        await asyncio.sleep(WARM)
    watch = Watch()
    began = time.perf_counter()
    pool.submit(job(folder, steps=10**9), watch)
    moment, _ = await watch.next(Started)
    await pool.close()
    return moment - began


async def latencies(folder: Path, count: int) -> tuple[list[float], float]:
    """Seconds from asking for a checkpoint to the event that says it is written; and those of a cancel."""
    worker, watch = await WorkerProcess.spawn(), Watch()
    await worker.run(job(folder, steps=10**9), watch)
    await watch.next(Progress)
    found: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        await worker.send(Control(control="checkpoint"))
        moment, _ = await watch.next(CheckpointWritten)
        found.append(moment - began)
    began = time.perf_counter()
    await worker.cancel()
    return found, time.perf_counter() - began


def step_seconds(folder: Path, batch: int, steps: int, *more: str) -> float:
    """Median seconds of an optimiser step, over the progress events of the second half."""
    job(folder)
    command = [sys.executable, "-m", "qvr_core.cli", "run", "svi", str(EXAMPLE), "--data", f"text:{folder / 't.txt'}",
               "--batch-size", str(batch), "--sequence-length", "64", "--steps", str(steps), "--held-out", "0",
               "--threads", "1", "--json", *more]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[-1]["event"] == Finished.model_fields["event"].default
    times = [event["step_time"] for event in events if event["event"] == "progress"]
    return statistics.median(times[len(times) // 2 :])


REGRESSION = """\
object Group : FinSet 50
object Unit : Real 1
program regression : Unit -> Unit
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfNormal(2.0)
    sample alpha : Group <- Normal(mu, tau)
    sample beta <- Normal(0.0, 2.0)
    sample sigma <- HalfNormal(2.0)
    observe y <- Normal(alpha[group] + beta * x, sigma)
    return beta
"""


def ranks(folder: Path, rounds: int) -> dict[str, float]:
    """Two processes at 32 × 64 bytes each: `wall` and `processor`, a step together against one alone.

    `data_parallel.py` is what each of them runs.
    """
    file = folder / "job.json"
    file.write_text(job(folder, batch_size=32, sequence_length=64).model_dump_json())
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
               "-m", "benchmarks.data_parallel", str(file), str(rounds)]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    root = EXAMPLE.parents[1]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)


@dataclass(frozen=True)
class Table:
    """A regression of a csv by parts: rows a second that are checked and copied, then fitted; and peak megabytes."""

    copied: float
    fitted: float
    peak: float


def regression(folder: Path, rows: int) -> Table:
    """Write a csv of so many rows, and fit the hierarchical regression of it in a prewarmed worker."""
    import numpy as np
    import polars as pl

    file = folder / f"{rows}.csv"
    rng = np.random.default_rng(0)
    with open(file, "wb") as out:
        for start in range(0, rows, 1_000_000):
            count = min(1_000_000, rows - start)
            group, x = rng.integers(0, 50, count), rng.normal(size=count)
            table = pl.DataFrame({"group": group, "x": x, "y": group / 10 + 0.7 * x + rng.normal(size=count)})
            table.write_csv(out, include_header=start == 0)
    asked = RunConfig.model_validate({"data": f"csv:{file}", "batch_size": BATCH, "steps": 300, "threads": 1})
    made = RunStore(folder).create(
        path=str(folder / "m.qvr"), text=REGRESSION, program=None, config=asked, base=str(folder)
    )
    return asyncio.run(_fitted(made, rows))


async def _fitted(made: Job, rows: int) -> Table:
    worker = await WorkerProcess.spawn()
    await asyncio.sleep(WARM)
    watch = Watch()
    began = time.perf_counter()
    await worker.run(made, watch)
    copied, _ = await watch.next(Started)
    peak = 0
    while True:
        moment, event = await watch.next(Progress | Finished | Failed)
        peak = max(peak, high_water(worker.pid))
        if not isinstance(event, Progress):
            break
    assert isinstance(await worker.wait(), Finished), event
    return Table(rows / (copied - began), 300 * BATCH / (moment - copied), peak / 1024)


def high_water(pid: int) -> int:
    """The most memory that a process has held, in kB (Linux; 0 elsewhere or where it is gone)."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def main(argv: list[str] | None = None) -> int:
    """Print one line per quantity; 1 where a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    quick = parser.parse_args(argv).quick
    rows: list[tuple[str, str, str, bool]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cold = statistics.median(asyncio.run(startup(folder, warm=False)) for _ in range(1 if quick else 3))
        rows.append(("start-up, cold", f"{1000 * cold:.0f} ms", "", True))
        warm = statistics.median(asyncio.run(startup(folder, warm=True)) for _ in range(1 if quick else 3))
        rows.append(("start-up, prewarmed", f"{1000 * warm:.0f} ms", "3000 ms", warm < 3))
        waits, cancel = asyncio.run(latencies(folder, 5 if quick else 20))
        rows.append(("checkpoint asked for to event", f"{1000 * statistics.median(waits):.0f} ms", "", True))
        rows.append(("cancel", f"{1000 * cancel:.0f} ms", "3000 ms", cancel < 3))
        steps = 40 if quick else 120
        alone = step_seconds(folder, 32, steps)
        rows.append(("throughput, 32 × 64 bytes a step", f"{32 * 64 / alone:,.0f} bytes/s", "", True))
        shared = ranks(folder, 6 if quick else 16)
        ratio = shared["processor"]
        rows.append(("two ranks of 32 × 64, processor time", f"{ratio:.2f} ×", "1.10 ×", ratio <= 1.10))
        rows.append(("  by the clock", f"{shared['wall']:.2f} ×", "", True))
        few, many = (regression(folder, size) for size in (200_000, 2_000_000 if quick else 10_000_000))
        what = f"csv of {2 if quick else 10} million rows, checked and copied"
        rows.append((what, f"{many.copied:,.0f} rows/s", "", True))
        rows.append(("  fitted by minibatches", f"{many.fitted:,.0f} rows/s", "", True))
        rows.append(("  peak memory", f"{many.peak:.0f} MB", "", True))
        growth = many.peak / few.peak
        rows.append(("  against 200,000 rows", f"{growth:.2f} ×", "1.10 ×", growth <= 1.10))
    for what, figure, budget, met in rows:
        print(f"{what:44}{figure:>18}  {budget:>10}  {'' if met else 'MISSED'}")
    return 0 if all(met for *_, met in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
