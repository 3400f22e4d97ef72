"""A logistic regression of a million rows: milliseconds of one gradient, and how they grow with the rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from benchmarks.engines.client import Missing, numpyro
from benchmarks.models import LOGISTIC
from qvr_core.dsl import loads
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.inference.density.recorded import TRACE_AFTER
from qvr_core.inference.mcmc.potential import potential_of

SIZES = (1_000, 10_000, 100_000, 1_000_000)
GOAL = 1.5
LINEAR = 1.5
"""How much more a row may cost in the largest table than in one of 10,000 rows."""


def data_of(rows: int) -> dict[str, torch.Tensor]:
    """A table of ten predictors."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(rows, 10, generator=g, dtype=torch.float64)
    chance = (x @ torch.linspace(-1.0, 1.0, 10).double()).sigmoid()
    return {"X": x, "y": torch.bernoulli(chance, generator=g).long()}


class Gradient:
    """Ours, on the engine that chains would take: machine code, or for large matrix products torch's operations."""

    def __init__(self, data: dict[str, torch.Tensor]) -> None:
        text = LOGISTIC.text.replace("FinSet 1000", f"FinSet {len(data['y'])}")
        potential = potential_of(loads(text).morphism, None, data)
        choice = MCMC(NUTSKernel(), 500, 500).choose(potential)
        self.engine = choice.engine
        q = torch.zeros(1, potential.width, dtype=torch.float64)
        if choice.density is not None:
            self.evaluate: Callable[[], Any] = partial(choice.density, q[0].numpy())
            return
        for _ in range(TRACE_AFTER):
            potential.value_and_grad(q)
        self.evaluate = partial(potential.value_and_grad, q)

    def seconds(self, repeats: int) -> float:
        """The smallest processor time of a few evaluations."""
        times: list[float] = []
        for _ in range(repeats):
            began = time.process_time()
            self.evaluate()
            times.append(time.process_time() - began)
        return min(times)


def rows(table: Any, quick: bool) -> None:
    """Growth with the rows, and the largest beside NumPyro's."""
    print("\n-- logistic regression, 10 predictors: milliseconds a gradient", flush=True)
    repeats = 5 if quick else 15
    found: dict[int, float] = {}
    said: list[str] = []
    data = data_of(SIZES[0])
    for size in SIZES:
        data = data_of(size)
        gradient = Gradient(data)
        found[size] = gradient.seconds(repeats) * 1e3
        said.append(f"{size:,}: {found[size]:.3g} ({gradient.engine})")
    figures = ", ".join(said)
    growth = found[SIZES[-1]] / SIZES[-1] / (found[SIZES[1]] / SIZES[1])
    table.row("a row in 1,000,000 / one in 10,000", figures, growth, LINEAR, at_most=True)
    try:
        with numpyro() as other:
            other.load({name: value.numpy() for name, value in data.items()}, model="logistic")
            theirs = other.ask("gradient", repeats=repeats)["seconds"] * 1e3
    except Missing as missing:
        print(missing, flush=True)
        return
    ours = found[SIZES[-1]]
    table.row("1,000,000 rows", f"ours {ours:.1f} ms, NumPyro {theirs:.1f} ms", ours / theirs, GOAL, at_most=True)
