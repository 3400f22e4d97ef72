"""Leave-one-out cross-validation by Pareto-smoothed importance sampling, of a stored pointwise log likelihood.

Vehtari, Gelman & Gabry (2017); Vehtari, Simpson, Gelman, Yao & Gabry (2024) for the diagnostic k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.inference.mcmc.warnings import statistic

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Loo:
    """Of each observed element: its expected log predictive density, Pareto k, and effective number of parameters."""

    names: tuple[str, ...]
    elpd: Array
    k: Array
    parameters: Array
    good: float
    """The largest k at which so many draws can be trusted."""

    @property
    def total(self) -> float:
        """elpd of all elements."""
        return float(self.elpd.sum())

    @property
    def se(self) -> float:
        """Its standard error over the elements."""
        return spread_of_sum(self.elpd)

    @property
    def bad(self) -> NDArray[np.intp]:
        """The elements whose k is above what can be trusted, the worst first."""
        order = np.argsort(-self.k)
        return order[self.k[order] > self.good]


def spread_of_sum(each: Array) -> float:
    """√(n · variance) of numbers: the standard error of their sum."""
    return math.sqrt(len(each) * float(each.var()))


def good_k(draws: int) -> float:
    """min(1 − 1 / log₁₀ S, 0.7) for S draws."""
    return min(1 - 1 / math.log10(draws), 0.7) if draws > 10 else 0.0


def loo_of(tree: Any) -> Loo | None:
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
        parts.append(_scores(flat, efficiency))
        names += called(str(name), values)
    if not any(len(part[0]) for part in parts) or not any(np.isfinite(part[1]).any() for part in parts):
        return None
    elpd, k, p = (np.concatenate([part[at] for part in parts]) for at in range(3))
    return Loo(tuple(names), elpd, k, p, good_k(draws))


def _scores(flat: Array, efficiency: float) -> tuple[Array, Array, Array]:
    """elpd, Pareto k and effective parameters of the elements of a log likelihood (chains, draws, elements).

    Where the draws do not differ, the first is what they all say, and there is no k (−∞).
    """
    from arviz_stats.base.array import array_stats

    elpd, k, p = flat[0, 0].copy(), np.full(flat.shape[2], -np.inf), np.zeros(flat.shape[2])
    for at in np.flatnonzero(flat.min((0, 1)) != flat.max((0, 1))):
        try:
            with np.errstate(all="ignore"):
                found: Any = array_stats.loo(flat[:, :, at], chain_axis=0, draw_axis=1, r_eff=efficiency)
            elpd[at], k[at], p[at] = (float(np.asarray(one)) for one in found)
        except ValueError:
            # too few different draws for a tail: plain importance sampling, which nobody should trust
            draws = -flat[:, :, at].ravel()
            elpd[at], k[at] = -_log_mean_exp(draws), np.inf
            p[at] = _log_mean_exp(-draws) - elpd[at]
    return elpd, k, p


def _log_mean_exp(values: Array) -> float:
    high = float(values.max())
    return high + math.log(float(np.exp(values - high).mean()))


def _efficiency(posterior: Any) -> float:
    """Effective draws per draw, averaged over the latents; 1 for draws of one chain, as ArviZ has it."""
    if posterior.sizes.get("chain", 1) == 1:
        return 1.0
    flat = [value.to_numpy().reshape(*value.shape[:2], -1) for value in posterior.data_vars.values()]
    every = np.concatenate(flat, 2)[:, :, :: max(1, sum(one.shape[2] for one in flat) // 200)]
    sizes = statistic("ess", "mean", every.astype(np.float64))
    return float(np.nanmean(sizes)) / (every.shape[0] * every.shape[1])


def _labelled(values: Any, dims: list[Any]) -> bool:
    """Whether the single element has a name that is no number."""
    return any(not np.issubdtype(np.asarray(values.coords[dim]).dtype, np.integer) for dim in dims)


def called(name: str, values: Any) -> list[str]:
    """`mu`, or `theta[Choate]`, …: the elements of a stored variable by its coordinates."""
    dims = [dim for dim in values.dims if dim not in ("chain", "draw")]
    if not dims or (math.prod(values.sizes[dim] for dim in dims) == 1 and not _labelled(values, dims)):
        return [name]
    labels = np.meshgrid(*(np.asarray(values.coords[dim].to_numpy(), dtype=object) for dim in dims), indexing="ij")
    return [f"{name}[{', '.join(map(str, index))}]" for index in zip(*(each.ravel() for each in labels), strict=True)]
