"""Leave-one-out cross-validation by Pareto-smoothed importance sampling, of a stored pointwise log likelihood.

Vehtari, Gelman & Gabry (2017); Vehtari, Simpson, Gelman, Yao & Gabry (2024) for the diagnostic k.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from qvr_core.inference.diagnostics.convergence import ess_mean
from qvr_core.inference.diagnostics.pareto import leave_one_out
from qvr_core.inference.diagnostics.thresholds import PARETO_K, fewest_for_pareto, good_k
from qvr_core.inference.labelled_datasets import Dataset, Tree, Variable

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Pointwise:
    """The expected log predictive density of each observation, by whichever estimate."""

    names: tuple[str, ...]
    elpd: Array

    @property
    def total(self) -> float:
        """elpd of all elements."""
        return float(self.elpd.sum())

    @property
    def se(self) -> float:
        """Its standard error over the elements."""
        return spread_of_sum(self.elpd)


@dataclass(frozen=True)
class Loo(Pointwise):
    """With Pareto k of each observed element, −∞ where it was refitted without it, and the effective number of
    parameters; `exact` names those that were refitted."""

    k: Array
    parameters: Array
    draws: int
    exact: frozenset[str] = frozenset()

    @property
    def good(self) -> float:
        """The largest k at which so many draws can be trusted."""
        return good_k(self.draws)

    @property
    def enough(self) -> int:
        """Draws of which the largest k can be trusted, where any number is; at least as many as it takes to tell."""
        largest = float(np.nan_to_num(self.k, nan=-math.inf).max())
        least = fewest_for_pareto()
        return max(least, math.ceil(10 ** (1 / (1 - largest)))) if largest <= PARETO_K else least

    @property
    def steps(self) -> list[str]:
        """The step of each element: `y` of `y[3]`."""
        return [name.partition("[")[0] for name in self.names]

    def of(self, steps: Collection[str]) -> Loo:
        """Of the elements of these steps alone."""
        at = np.flatnonzero([step in steps for step in self.steps])
        names = tuple(self.names[i] for i in at)
        return Loo(names, self.elpd[at], self.k[at], self.parameters[at], self.draws, self.exact.intersection(names))

    @property
    def joint(self) -> bool:
        """Whether all data are one observation, which leaves none where it is left out."""
        return len(self.elpd) == 1

    def refitted(self, exact: Mapping[str, float]) -> Loo:
        """With the figures of refits without an observation in place of those that its draws were weighted for."""
        at = [number for number, name in enumerate(self.names) if name in exact]
        elpd, k, parameters = self.elpd.copy(), self.k.copy(), self.parameters.copy()
        elpd[at] = [exact[self.names[number]] for number in at]
        # what the data add to the density of an observation that they hold
        parameters[at] = (self.parameters + self.elpd)[at] - elpd[at]
        k[at] = -math.inf
        return Loo(self.names, elpd, k, parameters, self.draws, frozenset(self.names[number] for number in at))

    @property
    def bad(self) -> NDArray[np.intp]:
        """The elements whose k is above what can be trusted, the worst first."""
        order = np.argsort(-self.k)
        return order[self.k[order] > self.good]


def spread_of_sum(each: Array) -> float:
    """√(n · variance) of numbers: the standard error of their sum."""
    return math.sqrt(len(each) * float(each.var()))


def loo_of(tree: Tree) -> Loo | None:
    """Of the groups `log_likelihood` and `posterior` of a stored fit; None where it holds no likelihood."""
    if "log_likelihood" not in tree.children:
        return None
    efficiency = _efficiency(tree["posterior"])
    names: list[str] = []
    parts: list[tuple[Array, Array, Array]] = []
    draws = 0
    for name, values in tree["log_likelihood"].data_vars.items():
        flat = values.to_numpy().astype(np.float64)
        flat = flat.reshape(*flat.shape[:2], -1)
        draws = flat.shape[0] * flat.shape[1]
        parts.append(leave_one_out(flat.reshape(draws, -1), efficiency))
        names += called(name, values)
    if not any(len(part[0]) for part in parts) or not any(np.isfinite(part[1]).any() for part in parts):
        return None
    elpd, k, p = (np.concatenate([part[at] for part in parts]) for at in range(3))
    return Loo(tuple(names), elpd, k, p, draws)


def _efficiency(posterior: Dataset) -> float:
    """Effective draws per draw, averaged over the latents; 1 for draws of one chain, as ArviZ has it."""
    if posterior.sizes.get("chain", 1) == 1:
        return 1.0
    flat = [value.to_numpy().reshape(*value.shape[:2], -1) for value in posterior.data_vars.values()]
    every = max(1, sum(one.shape[2] for one in flat) // 200)
    before = accumulate((one.shape[2] for one in flat), initial=0)
    some = [ess_mean(one[:, :, -at % every :: every]) for one, at in zip(flat, before, strict=False)]
    return float(np.nanmean(np.concatenate(some))) / (flat[0].shape[0] * flat[0].shape[1])


def _labelled(values: Variable, dims: list[str]) -> bool:
    """Whether the single element has a name that is no number."""
    return any(not np.issubdtype(np.asarray(values.coords[dim]).dtype, np.integer) for dim in dims)


def called(name: str, values: Variable) -> list[str]:
    """`mu`, or `theta[Choate]`, …: the elements of a stored variable by its coordinates."""
    dims = [dim for dim in values.dims if dim not in ("chain", "draw")]
    if not dims or (math.prod(values.sizes[dim] for dim in dims) == 1 and not _labelled(values, dims)):
        return [name]
    labels = np.meshgrid(*(np.asarray(values.coords[dim], dtype=object) for dim in dims), indexing="ij")
    return [f"{name}[{', '.join(map(str, index))}]" for index in zip(*(each.ravel() for each in labels), strict=True)]
