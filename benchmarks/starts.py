"""Starts of chains by Pathfinder beside random ones, on ten models: gradients in warm-up, R-hat, effective draws.

Gradients of the search for starts count.  Means over seeds; four chains of 500 + 500 draws each.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from typing import Any

import torch

from benchmarks.engines.table import smallest_ess
from benchmarks.models import MODELS, Data, Model
from qvr_core.dsl import loads
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.inference.mcmc.potential import potential_of

WARMUP = DRAWS = 500


def _children(g: torch.Generator) -> Data:
    iq = 100.0 + 15.0 * torch.randn(400, generator=g, dtype=torch.float64)
    noise = 18.0 * torch.randn(400, generator=g, dtype=torch.float64)
    return {"iq": iq, "mark": 26.0 + 0.6 * iq + noise}


CHILDREN = Model(
    """
object Child : FinSet 400
program children : Child -> Child
    sample a <- Normal(0.0, 100.0)
    sample b <- Normal(0.0, 10.0)
    sample sigma <- HalfNormal(50.0)
    observe mark : Child <- Normal(a + b * iq, sigma)
    return b
""",
    _children,
)


def _far(g: torch.Generator) -> Data:
    return {"y": 2000.0 + torch.randn(30, 5, generator=g, dtype=torch.float64).cumsum(1)}


FAR = Model(
    """
object Row : FinSet 30
object Place : FinSet 5
program far : Row -> Row
    sample mu : Place <- Normal(0.0, 5000.0)
    sample sigma : Place <- HalfNormal(10.0)
    observe y : Row * Place <- Normal(mu, sigma)
    return mu
""",
    _far,
)

TEN = {**MODELS, "children": CHILDREN, "far from zero": FAR}


def measured(given: Model, init: Any, seed: int) -> tuple[float, float, float]:
    """Gradients of a chain's warm-up, largest R-hat, smallest bulk ESS."""
    potential = potential_of(loads(given.text).morphism, None, given.data())
    chains = MCMC(NUTSKernel(), WARMUP, DRAWS, 4, seed=seed, engine="compiled", init=init)
    chains.choose(potential)
    steps: list[float] = []
    result = chains.chains_of(potential, chains.seeds(), lambda now: steps.append(float(now.steps.sum())))
    warming = (chains.start_gradients + sum(steps[:WARMUP])) / 4
    return warming, max(float(value.max()) for value in result.r_hat.values()), smallest_ess(result.samples)


def main(argv: list[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks starts")
    parser.add_argument("--quick", action="store_true")
    seeds = range(1 if parser.parse_args(argv).quick else 5)
    torch.set_num_threads(1)
    print(f"{'gradients in warm-up, R-hat, ESS':34} {'random':>26} {'pathfinder':>26}  ratio of gradients")
    for name, given in TEN.items():
        figures: list[tuple[float, ...]] = []
        for init in ("random", "pathfinder"):
            each = zip(*(measured(given, init, seed) for seed in seeds), strict=True)
            figures.append(tuple(statistics.mean(column) for column in each))
        told = [f"{warming:9,.0f}  {r_hat:6.3f}  {ess:6.0f}" for warming, r_hat, ess in figures]
        print(f"{name:34} {told[0]:>26} {told[1]:>26}  {figures[1][0] / figures[0][0]:6.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
