"""A million rows, and ten thousand latents: milliseconds of one gradient, and how they grow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.engines.client import Missing, numpyro
from benchmarks.models import LOGISTIC
from qvr_core.dsl import loads
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.inference.mcmc.potential import potential_of

SIZES = (1_000, 10_000, 100_000, 1_000_000)
GOAL = 1.5
LINEAR = 1.5
"""How much more a row, or a latent, may cost in the largest table than in a middling one."""
GROUPS = (100, 1_000, 10_000)
HIERARCHY = """
object Group : FinSet SIZE
object Row : FinSet _
program hierarchy : Row -> Row
    data group : Row -> Group
    data x : Row
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfNormal(2.0)
    sample sigma <- HalfNormal(2.0)
    sample slope <- Normal(0.0, 1.0)
    sample a[g : Group] <- Normal(mu, tau) [noncentred]
    observe y[i : Row] <- Normal(a[group[i]] + slope * x[i], sigma)
    return mu
"""
Costs = dict[int, tuple[float, str]]


def data_of(rows: int) -> dict[str, torch.Tensor]:
    """A table of ten predictors."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(rows, 10, generator=g, dtype=torch.float64)
    chance = (x @ torch.linspace(-1.0, 1.0, 10).double()).sigmoid()
    return {"X": x, "y": torch.bernoulli(chance, generator=g).long()}


def groups_of(count: int) -> dict[str, torch.Tensor]:
    """Ten rows a group."""
    g = torch.Generator().manual_seed(0)
    group = torch.arange(count).repeat_interleave(10)
    x = torch.randn(len(group), generator=g, dtype=torch.float64)
    noise = torch.randn(len(group), generator=g, dtype=torch.float64)
    return {"group": group, "x": x, "y": torch.randn(count, generator=g).double()[group] + 0.5 * x + noise}


class Gradient:
    """Ours, on the engine that chains would take: machine code, or for large matrix products torch's operations."""

    def __init__(self, text: str, data: dict[str, torch.Tensor]) -> None:
        potential = potential_of(loads(text, data=data).morphism, None, data)
        choice = MCMC(NUTSKernel(), 500, 500).choose(potential)
        self.engine = choice.engine
        q = torch.zeros(1, potential.width, dtype=torch.float64)
        if choice.density is not None:
            self.evaluate: Callable[[], Any] = partial(choice.density, q[0].numpy())
            return
        self.evaluate = partial(potential.value_and_grad, q)

    def seconds(self, repeats: int) -> float:
        """The smallest processor time of a few evaluations."""
        times: list[float] = []
        for _ in range(repeats):
            began = time.process_time()
            self.evaluate()
            times.append(time.process_time() - began)
        return min(times)


def _measured(text: str, datas: Iterable[dict[str, torch.Tensor]], sizes: Iterable[int], repeats: int) -> Costs:
    """Milliseconds of a gradient by size, and the engine."""
    found: Costs = {}
    for size, data in zip(sizes, datas, strict=True):
        gradient = Gradient(text.replace("SIZE", str(size)), data)
        found[size] = (gradient.seconds(repeats) * 1e3, gradient.engine)
    return found


def _growth(table: Any, name: str, found: Costs, start: int) -> None:
    """What one of the largest table costs, beside one of the `start`."""
    figures = ", ".join(f"{size:,}: {cost:.3g} ({engine})" for size, (cost, engine) in found.items())
    largest = max(found)
    growth = found[largest][0] / largest / (found[start][0] / start)
    table.row(f"{name} in {largest:,} / one in {start:,}", figures, growth, LINEAR, at_most=True)


def rows(table: Any, quick: bool, plot: Path | None = None) -> None:
    """Growth with the rows and with the latents, and the largest table beside NumPyro's."""
    repeats = 5 if quick else 15
    print("\n-- logistic regression, 10 predictors: milliseconds a gradient", flush=True)
    text = LOGISTIC.text.replace("FinSet 1000", "FinSet SIZE")
    regression = _measured(text, map(data_of, SIZES), SIZES, repeats)
    # smaller tables lie in the cache, where a row costs half
    _growth(table, "a row", regression, 100_000)
    _beside_numpyro(table, regression[SIZES[-1]][0], repeats)
    print("\n-- groups of ten rows, one latent each: milliseconds a gradient", flush=True)
    hierarchy = _measured(HIERARCHY, map(groups_of, GROUPS), GROUPS, repeats)
    _growth(table, "a latent", hierarchy, 1_000)
    if plot is not None:
        drawn(plot, {"logistic regression, by rows": regression, "groups of ten rows, by latents": hierarchy})


def _beside_numpyro(table: Any, ours: float, repeats: int) -> None:
    try:
        with numpyro() as other:
            data = {name: value.numpy() for name, value in data_of(SIZES[-1]).items()}
            other.load(data, model="logistic")
            theirs = other.ask("gradient", repeats=repeats)["seconds"] * 1e3
    except Missing as missing:
        print(missing, flush=True)
        return
    table.row("1,000,000 rows", f"ours {ours:.1f} ms, NumPyro {theirs:.1f} ms", ours / theirs, GOAL, at_most=True)


def drawn(path: Path, curves: Mapping[str, Costs]) -> None:
    """Milliseconds of a gradient over sizes, both by powers of ten, beside lines of cost proportional to size."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    for number, (name, found) in enumerate(curves.items()):
        sizes, costs = list(found), [cost for cost, _ in found.values()]
        axes.plot(sizes, costs, "o-", color=f"C{number}", label=name)
        axes.plot(sizes, [costs[-1] * size / sizes[-1] for size in sizes], ":", color=f"C{number}", linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel="rows, or latents", ylabel="milliseconds a gradient")
    axes.set_title("dotted: in proportion to the largest", fontsize="medium")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path)
    pyplot.close(figure)
