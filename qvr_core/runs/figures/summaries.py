"""The summary of a stored fit: of each number its mean and spread, its density beside the prior's, its ranks by chain.

Vehtari et al. (2021) for R-hat, effective sample sizes and rank plots.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.inference.mcmc.warnings import SHORTEST, statistic
from qvr_core.runs.figures.loo import called
from qvr_core.runs.record.protocol import Message
from qvr_core.runs.record.store import RunDirectory
from qvr_core.runs.record.summary import Density, Element, SiteSummary, Summary, write_summary

Draws = NDArray[np.float64]

MOST_OF_SITE, MOST_IN_ALL = 64, 400
"""Numbers that are shown one by one."""
LOOKED_AT = 1_000
"""Numbers of a site whose R-hat is looked at: of a larger one evenly spread ones."""
BINS, RANK_BINS = 32, 20
TAILS = (0.001, 0.999)
"""What lies between the ends of a density."""


def keep_summary(run: RunDirectory, tree: Any) -> list[Message]:
    """Write the summary of a fit beside it; what to say where that cannot be."""
    try:
        write_summary(run, summary_of(tree))
    except OSError as error:
        return [Message(level="warning", text=f"the summary of the draws could not be stored: {error}")]
    return []


def summary_of(tree: Any) -> Summary:
    """Of an open xarray.DataTree."""
    posterior = tree["posterior"]
    prior = tree["prior"].data_vars if "prior" in tree.children else {}
    chained = "sample_stats" in tree.children and "diverging" in tree["sample_stats"].data_vars
    room = MOST_IN_ALL
    sites: list[SiteSummary] = []
    for name, value in posterior.data_vars.items():
        before = prior[name].to_numpy() if name in prior and prior[name].shape[2:] == value.shape[2:] else None
        sites.append(_site(str(name), value, before, min(room, MOST_OF_SITE), chained=chained))
        room -= len(sites[-1].elements)
    chains, draws = posterior.sizes.get("chain", 0), posterior.sizes.get("draw", 0)
    return Summary(chains=chains, draws=draws, sites=tuple(sites))


def _site(name: str, value: Any, prior: Any, room: int, *, chained: bool) -> SiteSummary:
    flat = _flat(value.to_numpy())
    size = flat.shape[2]
    if not size:
        return SiteSummary(name=name, size=0, elements=())
    names = called(name, value)
    means, spreads = flat.mean((0, 1)), flat.std((0, 1), ddof=1 if flat[:, :, 0].size > 1 else 0)
    looked = np.unique(np.r_[: min(room, size), : size : -(-size // LOOKED_AT)])
    r_hat, ess = np.full(size, np.nan), np.full(size, np.nan)
    if chained and flat.shape[1] >= SHORTEST:
        ess[looked] = statistic("ess", "bulk", flat[:, :, looked])
        if flat.shape[0] > 1:
            r_hat[looked] = statistic("rhat", "rank", flat[:, :, looked])
    before = None if prior is None else _flat(prior).reshape(-1, size)
    elements = tuple(
        Element(
            name=names[at],
            mean=_number(means[at]),
            sd=_number(spreads[at]),
            q05=_number(low),
            median=_number(median),
            q95=_number(high),
            r_hat=_number(r_hat[at]),
            ess=_number(ess[at]),
            density=density_of(flat[:, :, at].ravel(), None if before is None else before[:, at]),
            ranks=ranks_of(flat[:, :, at]) if chained and flat.shape[0] > 1 else (),
        )
        for at in range(min(room, size))
        for low, median, high in [np.quantile(flat[:, :, at], (0.05, 0.5, 0.95))]
    )
    apart = np.nan_to_num(r_hat, nan=-np.inf)
    return SiteSummary(
        name=name,
        size=size,
        low=_number(means.min()),
        high=_number(means.max()),
        sd=_number(spreads.max()),
        r_hat=_number(apart.max()),
        ess=_number(np.nan_to_num(ess, nan=np.inf).min()),
        worst=names[int(apart.argmax())] if np.isfinite(apart).any() else None,
        elements=elements,
    )


def _flat(values: Any) -> Draws:
    """(chains, draws, numbers)."""
    return np.asarray(values, dtype=np.float64).reshape(*values.shape[:2], -1)


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def density_of(draws: Draws, prior: Draws | None) -> Density | None:
    """Counts of finite draws in `BINS` bins between their outermost quantiles, with those of the prior's draws."""
    finite = draws[np.isfinite(draws)]
    if not finite.size or finite.min() == finite.max():
        return None
    low, high = (float(one) for one in np.quantile(finite, TAILS))
    if not low < high:
        low, high = float(finite.min()), float(finite.max())
    edges = np.linspace(low, high, BINS + 1)
    counts = np.histogram(finite, edges)[0]
    before = () if prior is None else tuple(np.histogram(prior[np.isfinite(prior)], edges)[0].tolist())
    share = None if prior is None or not prior.size else sum(before) / prior.size
    return Density(low=low, high=high, posterior=tuple(counts.tolist()), prior=before, prior_share=share)


def ranks_of(draws: Draws) -> tuple[tuple[int, ...], ...]:
    """Of (chains, draws): how many ranks of each chain's draws among all of them fall into each of `RANK_BINS` bins."""
    ranks = draws.ravel().argsort(kind="stable").argsort(kind="stable").reshape(draws.shape)
    edges = np.linspace(0, draws.size, RANK_BINS + 1)
    return tuple(tuple(np.histogram(one, edges)[0].tolist()) for one in ranks)
