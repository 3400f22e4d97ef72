"""NUTS on eight models: microseconds of processor time a leapfrog and chain, compiled and replayed.

One process, one thread, the engines by turns.  Stan's figures are of one machine, by its own clock, on data of the same
sizes: they say of what order the goal is.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import torch

from benchmarks.inference import Table, smallest_ess
from benchmarks.models import MODELS
from qvr_core.dsl import loads
from qvr_core.inference import MCMC, NUTSKernel

STAN = {
    "eight schools": 6.5,
    "nile": 10.4,
    "varying slopes": 17.0,
    "radon": 7.4,
    "logistic": 46.0,
    "missing": 185.0,
    "ordinal": 97.0,
    "crossed": 61.0,
}


def spent(model: Any, data: Any, engine: Any, warmup: int, draws: int) -> float:
    """Microseconds a leapfrog of the warm-up's second half and all sampling: what is compiled is so by then."""
    marks: list[tuple[float, float]] = []

    def watch(progress: Any) -> None:
        marks.append((time.process_time(), float(progress.steps.sum())))

    MCMC(NUTSKernel(), warmup, draws, 1, seed=0, engine=engine).run(model, None, data, watch=watch)
    half = warmup // 2
    return (marks[-1][0] - marks[half][0]) / sum(steps for _, steps in marks[half + 1 :]) * 1e6


def main(argv: list[str]) -> int:
    """Print the table; status 1 where Stan's time is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks leapfrogs")
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args(argv).quick
    torch.set_num_threads(1)
    table = Table()
    for name, given in MODELS.items():
        model, data = loads(given.text).morphism, given.data()
        compiled = min(spent(model, data, "compiled", 500, 500) for _ in range(2 if quick else 3))
        replayed = spent(model, data, "replay", 60, 40 if quick else 100)
        figures = f"{compiled:.2f} µs, replay {replayed:.0f} µs, Stan {STAN[name]:g} µs"
        table.row(f"NUTS per leapfrog, {name}", figures, compiled / STAN[name], 1.0, at_most=True)
        result = MCMC(NUTSKernel(), 500, 500, 4, seed=0, engine="compiled").run(model, None, data)
        gradients = float(result.leapfrog_steps.sum())
        print(f"    ESS per 1,000 gradients {smallest_ess(result.samples) / gradients * 1e3:.2f}", flush=True)
    return int(table.missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
