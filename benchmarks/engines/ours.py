"""Our chains on the compiled engine: what is asked of the other engines, too."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from benchmarks.engines.client import Sample
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.inference.mcmc.potential import potential_of


def sample(model: Any, data: Mapping[str, Any], warmup: int, draws: int, chains: int, seed: int) -> Sample:
    """Draws and gradients of chains."""
    early: list[Any] = []

    def watch(progress: Any) -> None:
        if progress.warmup:
            early.append(progress.steps.astype(float))

    run = MCMC(NUTSKernel(), warmup, draws, chains, seed=seed, engine="compiled")
    result = run.run(model, None, data, watch=watch)
    assert result.engine == "compiled"
    return Sample(
        {name: value.double().numpy() for name, value in result.samples.items()},
        sum(early).tolist(),
        result.leapfrog_steps.sum(1).double().tolist(),
        int(result.diverging.sum()),
    )


class Timed:
    """One chain after another of a program that is compiled already, by processor time."""

    def __init__(self, model: Any, data: Mapping[str, Any], warmup: int, draws: int) -> None:
        self.run = MCMC(NUTSKernel(), warmup, draws, 1, seed=1, engine="compiled")
        self.potential = potential_of(model, None, dict(data))
        assert self.run.choose(self.potential).engine == "compiled"

    def seconds(self) -> float:
        """Of a chain with its start, its warm-up, and the values of all latents at its draws."""
        began = time.process_time()
        self.run.chains_of(self.potential, self.run.seeds(), None)
        return time.process_time() - began

    def gradients(self) -> float:
        """Of that same chain."""
        steps: list[float] = []
        self.run.chains_of(self.potential, self.run.seeds(), lambda progress: steps.append(float(progress.steps.sum())))
        return sum(steps)
