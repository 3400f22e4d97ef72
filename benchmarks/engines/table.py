"""Eight models on three engines: time a leapfrog, gradients of the warm-up, effective draws a gradient.

Engines run in processes of their own, one thread each, by turns; times are processor time.  Ours and Stan's are of a
whole chain with its warm-up, NumPyro's of its draws alone, after compiling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from math import hypot
from typing import Any

import numpy as np

from benchmarks.engines import ours
from benchmarks.engines.client import STAN_PROGRAMS, Engine, Missing, Sample, numpyro, stan
from benchmarks.models import MODELS
from qvr_core.dsl import loads
from qvr_core.inference.diagnostics import convergence

CHAINS = 4
FUSED = ("logistic", "ordinal", "crossed")
"""Models for which Stan has a density that takes the regression itself."""
COSTS = "µs a leapfrog"


@dataclass(frozen=True, slots=True)
class Length:
    """How much is run."""

    warmup: int
    draws: int
    seeds: int
    repeats: int


def smallest_ess(draws: Mapping[str, Any]) -> float:
    """The smallest bulk ESS of any element that varies."""
    found: list[float] = []
    for value in draws.values():
        flat = np.asarray(value, dtype=np.float64).reshape(*value.shape[:2], -1)
        if (varying := flat[:, :, np.ptp(flat, (0, 1)) > 1e-12]).shape[2]:
            found.append(float(convergence.ess_bulk(varying).min()))
    return min(found)


@dataclass(frozen=True, slots=True)
class Mixing:
    """Over several seeds of four chains: gradients of a chain's warm-up, effective draws a 1,000 gradients, each with
    its standard error."""

    warmup: float
    warmup_error: float
    ess: float
    ess_error: float
    divergences: int
    means: dict[str, tuple[Any, Any]]
    """Mean and sd of every latent, over all draws."""


def mixing(samples: list[Sample]) -> Mixing:
    """What several runs say together."""
    warmup = np.array([count for sample in samples for count in sample.warmup])
    ess = np.array([smallest_ess(sample.draws) / sum(sample.sampling) * 1e3 for sample in samples])
    joined = {
        name: np.concatenate([sample.draws[name].reshape(-1, *sample.draws[name].shape[2:]) for sample in samples])
        for name in samples[0].draws
    }
    return Mixing(
        float(warmup.mean()),
        float(warmup.std(ddof=1) / len(warmup) ** 0.5),
        float(ess.mean()),
        float(ess.std(ddof=1) / len(ess) ** 0.5) if len(ess) > 1 else float("nan"),
        sum(sample.divergences for sample in samples),
        {name: (value.mean(0), value.std(0)) for name, value in joined.items()},
    )


def apart(one: Mixing, other: Mixing) -> float:
    """The largest distance of the means of any latent, in standard deviations of the posterior."""
    worst = 0.0
    for name, (mean, sd) in one.means.items():
        if name in other.means:
            varies = np.asarray(sd) > 1e-12
            off = np.abs(mean - other.means[name][0])[varies] / np.asarray(sd)[varies]
            worst = max(worst, float(off.max(initial=0.0)))
    return worst


class Others:
    """The engines that are here."""

    def __init__(self, stack: ExitStack) -> None:
        self.engines: dict[str, Engine] = {}
        for name, make in (("Stan", stan), ("NumPyro", numpyro)):
            try:
                self.engines[name] = stack.enter_context(make())
                print(f"{name}: {self.engines[name].version}", flush=True)
            except Missing as missing:
                print(missing, flush=True)


def gradients_of(sample: Sample) -> float:
    """All gradients of the first chain."""
    return sample.warmup[0] + sample.sampling[0]


def costs(
    name: str, model: Any, data: Mapping[str, Any], others: Mapping[str, Engine], length: Length
) -> dict[str, float]:
    """Microseconds of processor time a leapfrog by engine, the smallest of a few turns."""
    sizes = {"warmup": length.warmup, "draws": length.draws, "seed": 1}
    mine = ours.Timed(model, data, length.warmup, length.draws)
    sides: dict[str, Callable[[], tuple[float, float]]] = {}
    steps = mine.gradients()
    sides["ours"] = lambda: (mine.seconds(), steps)
    if "Stan" in others:
        engine = others["Stan"]
        path = STAN_PROGRAMS / f"{name.replace(' ', '_')}.stan"
        paths = {"Stan": path}
        if name in FUSED:
            paths["Stan, fused"] = path.with_stem(f"{path.stem}_fused")
        for label, program in paths.items():
            sides[label] = _stan_side(engine, str(program), data, length, sizes)
    if "NumPyro" in others:
        python = others["NumPyro"]
        python.load(data, model=name)

        def further() -> tuple[float, float]:
            answer = python.ask("seconds", **sizes)
            return answer["seconds"], answer["gradients"]

        sides["NumPyro"] = further
    taken: dict[str, list[float]] = {label: [] for label in sides}
    for _ in range(length.repeats):
        for label, side in sides.items():
            seconds, gradients = side()
            taken[label].append(seconds / gradients * 1e6)
    return {label: min(times) for label, times in taken.items()}


def _stan_side(
    engine: Engine, program: str, data: Mapping[str, Any], length: Length, sizes: Mapping[str, int]
) -> Callable[[], tuple[float, float]]:
    engine.load(data, program=program)
    gradients = gradients_of(engine.sample(length.warmup, length.draws, 1, sizes["seed"]))

    def side() -> tuple[float, float]:
        engine.load(data, program=program)
        return engine.ask("seconds", **sizes)["seconds"], gradients

    return side


def mixed(
    name: str, model: Any, data: Mapping[str, Any], others: Mapping[str, Engine], length: Length
) -> dict[str, Mixing]:
    """How chains of each engine mix."""
    found = {"ours": mixing([
        ours.sample(model, data, length.warmup, length.draws, CHAINS, seed) for seed in range(length.seeds)
    ])}  # fmt: skip
    for label, engine in others.items():
        if label == "Stan":
            engine.load(data, program=str(STAN_PROGRAMS / f"{name.replace(' ', '_')}.stan"))
        else:
            engine.load(data, model=name)
        found[label] = mixing([
            engine.sample(length.warmup, length.draws, CHAINS, seed + 1) for seed in range(length.seeds)
        ])  # fmt: skip
    return found


def rows(table: Any, quick: bool) -> None:
    """Print the table; rows against Stan have goals."""
    length = Length(1000, 1000, 4, 3) if quick else Length(1000, 1000, 20, 5)
    with ExitStack() as stack:
        others = Others(stack).engines
        for name, given in MODELS.items():
            print(f"\n-- {name}", flush=True)
            model, data = loads(given.text).morphism, given.data()
            _cost_rows(table, costs(name, model, data, others, length))
            _mixing_rows(table, mixed(name, model, data, others, length))


def _cost_rows(table: Any, found: Mapping[str, float]) -> None:
    figures = ", ".join(f"{label} {time:.2f}" for label, time in found.items())
    if "Stan" in found:
        table.row(f"{COSTS}", figures, found["ours"] / found["Stan"], 1.0, at_most=True)
    else:
        print(f"{COSTS:44} {figures}", flush=True)


def _mixing_rows(table: Any, found: Mapping[str, Mixing]) -> None:
    mine = found["ours"]
    warmups = ", ".join(f"{label} {each.warmup:.0f} ± {each.warmup_error:.0f}" for label, each in found.items())
    draws = ", ".join(f"{label} {each.ess:.2f} ± {each.ess_error:.2f}" for label, each in found.items())
    if (other := found.get("Stan")) is None:
        print(f"{'gradients in warm-up':44} {warmups}\n{'ESS per 1,000 gradients':44} {draws}", flush=True)
    else:
        fewer, more = mine.warmup / other.warmup, mine.ess / other.ess
        error = fewer * hypot(mine.warmup_error / mine.warmup, other.warmup_error / other.warmup)
        table.row("gradients in warm-up", warmups, fewer, 1.05, at_most=True, error=error)
        error = more * hypot(mine.ess_error / mine.ess, other.ess_error / other.ess)
        table.row("ESS per 1,000 gradients", draws, more, 0.9, error=error)
    said = ", ".join(f"{label} {each.divergences}" for label, each in found.items())
    print(f"{'divergences':44} {said}", flush=True)
    for label, each in found.items():
        if label != "ours":
            print(f"{f'means apart from those of {label}, sd':44} {apart(mine, each):.3f}", flush=True)
