"""Draws from a posterior while somebody types: what chains find in so many seconds, told as they go."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from qvr_core.arrays.engine import arrays
from qvr_core.arrays.engine_choice import TorchWanted
from qvr_core.data.needs import needs_of
from qvr_core.inference.axes import axes_of
from qvr_core.inference.dataset import dataset
from qvr_core.inference.labelled_datasets import Tree
from qvr_core.inference.mcmc.budgeted import CHAINS, Found, Learned, OutOfTime, sampled
from qvr_core.inference.mcmc.engines import reported
from qvr_core.inference.mcmc.nuts import NUTSKernel
from qvr_core.inference.mcmc.potential import ProgramPotential
from qvr_core.runs.evaluation.summaries import summary_of
from qvr_core.runs.fit.nuts import Asked as Chains
from qvr_core.runs.fit.nuts import asked_of
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.prepare import prepare
from qvr_core.runs.prepare.runnable import chosen
from qvr_core.runs.record.live import MOST_DRAWS, Asked, Drawn
from qvr_core.runs.record.program import analysed
from qvr_core.semantics.programs.parameter_count import parameter_count

MOST_TOLD, MOST_NUMBERS = 2_000, 400_000
"""Draws that are told of, and their numbers: of more, evenly spread ones."""
HERE = {"algorithm": "nuts", "engine": "compiled", "init": "random", "device": "cpu", "threads": 1, "lift": False}
"""Of every job, whatever its settings say of runs."""
MOST_KEPT = 10_000_000
"""Numbers of all draws."""
FEWEST = 10

Sampling = Callable[[], None]


def posterior_draws(asked: Asked, learned: Learned, sampling: Sampling) -> Iterator[tuple[Drawn, Learned]]:
    """Summaries of all draws so far, and what the next chains may begin with; the last one is marked.  `sampling` is
    called once everything is prepared.  Raises `Refused`, `DataProblem`, `RuntimeProblem`, `TorchWanted`."""
    wanted = min(asked.job.config.samples, MOST_DRAWS)
    # how many draws there is room for is seen once there are latents
    config = asked.job.config.model_copy(update={**HERE, "samples": FEWEST, "warmup": FEWEST})
    job = asked.job.model_copy(update={"config": config})
    snapshot = analysed(job)
    program = chosen(job, snapshot.model)
    if parameter_count(snapshot.model, program):
        raise Refused("live", f"`{program.name}` has parameters without a prior: a run fits them")
    if needs_of(program).all and job.config.source == "synthetic" and not job.config.tables:
        raise Refused("live", f"qvr.toml names no data for `{program.name}`")
    prepared = prepare(job, snapshot)
    chains = asked_of(prepared)
    choice = chains.chains.choose(chains.potential)
    if choice.density is None or not isinstance(chains.potential, ProgramPotential):
        raise TorchWanted(choice.why or "there is no machine code for its density")
    kernel = chains.chains.kernel
    assert isinstance(kernel, NUTSKernel)
    sampling()
    began = time.perf_counter()
    draws = max(FEWEST, min(wanted, MOST_KEPT // (CHAINS * chains.potential.width)))
    try:
        for found in sampled(
            chains.potential, choice.density, kernel, draws=draws, seed=job.config.seed, budget=asked.budget,
            learned=learned,
        ):  # fmt: skip
            drawn = _told(found, chains)
            yield (
                drawn.model_copy(update={"number": asked.number, "seconds": time.perf_counter() - began}),
                found.learned,
            )
    except OutOfTime:
        short = f"{asked.budget:g} s do not suffice for chains of `{program.name}`, nor for an approximation"
        why = f"{short}: a run has the time"
        raise Refused("live", why) from None


def _told(found: Found, chains: Chains) -> Drawn:
    positions, given = found.columns["q"], chains.given
    count, draws, width = positions.shape
    most = max(2, min(draws, MOST_TOLD // count, MOST_NUMBERS // (count * width)))
    spread = np.unique(np.linspace(0, draws - 1, most, dtype=np.int64))
    each = [reported(chains.potential, np.ascontiguousarray(of_chain[spread])) for of_chain in positions]
    samples = {name: arrays.stack([values[name] for values in each]) for name in each[0]}
    lets = given.deterministic({name: value.flatten(0, 1) for name, value in samples.items()})
    values = {**samples, **{name: value.reshape(count, len(spread), *value.shape[1:]) for name, value in lets.items()}}
    groups = {"posterior": dataset(values, axes_of(given.program, given.observations))}
    diverging = found.columns.get("diverging")
    if diverging is not None:
        groups["sample_stats"] = dataset({"diverging": arrays.from_numpy(diverging[:, spread])}, {})
    summary = summary_of(Tree(groups)).model_copy(update={"draws": draws})
    diverged = 0 if diverging is None else int(diverging.sum())
    return Drawn(number=0, last=found.last, method=found.method, summary=summary, diverged=diverged)
