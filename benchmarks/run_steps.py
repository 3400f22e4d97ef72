"""What a run adds to a step (data, events, checkpoints) to loss, gradient and Adam alone; and how its first step waits.

One process and one thread, both sides by turns, medians of CPU time; the checkpoint by its share of the time between
two.  The first step is timed by the clock, from the command on.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks.goals import Table
from benchmarks.inference_steps import by_turns
from benchmarks.runs import EXAMPLE, job
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.fit.svi import SviFit
from qvr_core.runs.prepare.prepare import prepare
from qvr_core.runs.record.program import analysed
from qvr_core.runs.record.protocol import Job, Progress, parse_event
from qvr_core.runs.record.store import RunDirectory
from qvr_core.runs.worker.emitter import Emitter


def fit(made: Job) -> SviFit:
    """A run that stands before its first step."""
    return SviFit(prepare(made, analysed(made)), Stop())


def steps_of_a_run(made: Job) -> Callable[[], Any]:
    """One more step of a run, its events stored and sent."""
    running = fit(made)
    events, sent = running.run(), Emitter(RunDirectory.of(made), lambda event: None)

    def step() -> None:
        for event in events:
            sent.emit(event)
            if isinstance(event, Progress):
                return

    return step


def steps_alone(made: Job) -> Callable[[], Any]:
    """The same loss, gradient and Adam on one batch, with the loss and the norm of the gradient read."""
    made_here = fit(made)
    (x, observations), _ = made_here.batch(0)

    def step() -> tuple[float, float]:
        made_here.optimizer.zero_grad(set_to_none=True)
        loss = made_here.bound(x, observations)
        loss.backward()
        norm = torch.nn.utils.get_total_norm([p.grad for p in made_here.parameters if p.grad is not None])
        made_here.optimizer.step()
        return loss.item(), norm.item()

    return step


def first_steps(folder: Path, repeats: int) -> Iterator[float]:
    """Seconds from a command to its first step."""
    command = [sys.executable, "-m", "qvr_core.cli", "run", "svi", str(EXAMPLE), "--data", f"text:{folder / 't.txt'}",
               "--steps", "1", "--held-out", "0", "--threads", "1", "--json"]  # fmt: skip
    for _ in range(repeats):
        began = time.perf_counter()
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
            assert run.stdout is not None
            for line in run.stdout:
                if isinstance(parse_event(line), Progress):
                    yield time.perf_counter() - began
                    break
            run.communicate()


def imports(folder: Path, repeats: int) -> Iterator[float]:
    """Seconds that a process takes which imports torch and does nothing: the least of a first step."""
    for _ in range(repeats):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import torch"], cwd=folder, check=True)
        yield time.perf_counter() - began


def main(argv: list[str]) -> int:
    """Print the table; status 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="measure less often")
    quick = parser.parse_args(argv).quick
    threads = torch.get_num_threads()
    table = Table()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for batch, length in ((32, 64), (64, 8)):
            size: dict[str, Any] = {"batch_size": batch, "sequence_length": length, "steps": 10**6}
            ours, alone = by_turns(
                [steps_of_a_run(job(folder, **size)), steps_alone(job(folder, **size))], 30 if quick else 150
            )
            kept = fit(job(folder, **size))
            for _ in range(2):
                kept.advance()
            began = time.process_time()
            for _ in range(5):
                kept.save()
            share = (time.process_time() - began) / 5 / kept.config.checkpoint_seconds
            figures = f"{ours:.2f} ms, alone {alone:.2f}, checkpoints {100 * share:.2f} %"
            table.row(f"a step of a run, {batch} x {length}", figures, ours / alone + share, 1.1, at_most=True)
        pairs = list(zip(first_steps(folder, 1 if quick else 5), imports(folder, 1 if quick else 5), strict=True))
        first, alone = (statistics.median(each) for each in zip(*pairs, strict=True))
        table.row("from command to first step", f"{first:.2f} s, torch alone {alone:.2f}", first, 2.5, at_most=True)
    torch.set_num_threads(threads)
    return int(table.missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
