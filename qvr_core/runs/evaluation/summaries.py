"""The summary of a stored fit: of each number its mean and spread, its density beside the prior's, its ranks by chain.

Vehtari et al. (2021) for R-hat, effective sample sizes and rank plots.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.inference.diagnostics.by_site import MixingBySite
from qvr_core.inference.diagnostics.thresholds import FEWEST_DRAWS
from qvr_core.inference.diagnostics.verdicts import r_hat_is_large
from qvr_core.inference.labelled_datasets import Array, Tree, Variable, arrays_of
from qvr_core.runs.evaluation.loo import called
from qvr_core.runs.record.protocol import Message
from qvr_core.runs.record.store import RunDirectory
from qvr_core.runs.record.summary import (
    Band,
    ChainDraws,
    Density,
    Element,
    Predictive,
    SiteSummary,
    Summary,
    write_summary,
)

Draws = NDArray[np.float64]

MOST_OF_SITE, MOST_IN_ALL = 64, 400
"""Numbers that are shown one by one."""
LOOKED_AT = 1_000
"""Numbers of a site whose R-hat is looked at: of a larger one evenly spread ones."""
AT_ONCE = 100_000
"""Draws whose moments are computed in one go."""
BINS, RANK_BINS = 32, 20
MOST_DRAWN, MOST_TRACED, MOST_DIVERGED = 12, 200, 200
"""Numbers with draws; draws of a chain, and those of them that diverged."""
MOST_PREDICTED, PREDICTED_BINS, MOST_BINS = 8, 24, 40
"""Observed steps, most bins of each, and bins of whole numbers."""
TAILS = (0.001, 0.999)
"""What lies between the ends of a density."""


def keep_summary(run: RunDirectory, tree: Tree, mixed: MixingBySite | None = None) -> list[Message]:
    """Write the summary of a fit beside it; what to say where that cannot be."""
    try:
        write_summary(run, summary_of(tree, mixed))
    except OSError as error:
        return [Message(level="warning", text=f"the summary of the draws could not be stored: {error}")]
    return []


def summary_of(tree: Tree, mixed: MixingBySite | None = None) -> Summary:
    """Of a `Tree`, or an open xarray.DataTree; `mixed` is what others ask about its posterior, too."""
    posterior = tree["posterior"]
    mixed = mixed or MixingBySite(arrays_of(posterior))
    prior = tree["prior"].data_vars if "prior" in tree.children else dict[str, Variable]()
    chained = "sample_stats" in tree.children and "diverging" in tree["sample_stats"].data_vars
    room = MOST_IN_ALL
    numbers = sum(int(np.prod(value.shape[2:])) for value in posterior.data_vars.values())
    sites: list[SiteSummary] = []
    for name, value in posterior.data_vars.items():
        before = prior[name].to_numpy() if name in prior and prior[name].shape[2:] == value.shape[2:] else None
        sites.append(_site(name, value, before, min(room, MOST_OF_SITE), numbers, mixed if chained else None))
        room -= len(sites[-1].elements)
    chains, draws = posterior.sizes.get("chain", 0), posterior.sizes.get("draw", 0)
    drawn = _worth_drawing(sites)
    return Summary(
        chains=chains,
        draws=draws,
        sites=tuple(sites),
        drawn=drawn,
        traces=tuple(_traces(tree, drawn)),
        predictive=tuple(predictive(tree)),
    )


def _worth_drawing(sites: list[SiteSummary]) -> tuple[str, ...]:
    """Single numbers first, then elements whose chains disagree most; `MOST_DRAWN` at most."""
    single = [one for site in sites if site.size == 1 for one in site.elements]
    others = [one for site in sites if site.size > 1 for one in site.elements]
    others.sort(key=lambda one: -(one.r_hat or 0.0))
    return tuple(one.name for one in [*single, *others] if one.density is not None)[:MOST_DRAWN]


def _traces(tree: Tree, drawn: tuple[str, ...]) -> Iterator[ChainDraws]:
    """Evenly spread draws of each chain, and those at which it diverged."""
    columns: dict[str, Draws] = {}
    for name, value in tree["posterior"].data_vars.items():
        wanted = [(at, label) for at, label in enumerate(called(name, value)) if label in drawn]
        if wanted:
            every = value.to_numpy()
            every = every.reshape(*every.shape[:2], -1)
            columns |= {label: every[:, :, at].astype(np.float64) for at, label in wanted}
    if not columns:
        return
    chains, draws = next(iter(columns.values())).shape
    stats = tree["sample_stats"].data_vars if "sample_stats" in tree.children else dict[str, Variable]()
    bad = stats["diverging"].to_numpy() if "diverging" in stats else np.zeros((chains, draws), dtype=bool)
    spread = np.unique(np.linspace(0, draws - 1, min(draws, MOST_TRACED), dtype=np.int64))
    for chain in range(chains):
        diverged = np.flatnonzero(bad[chain])[:MOST_DIVERGED]
        kept = np.union1d(spread, diverged)
        yield ChainDraws(
            draws=tuple(kept.tolist()),
            diverging=tuple(np.flatnonzero(bad[chain][kept]).tolist()),
            values=tuple(tuple(map(_rounded, columns[label][chain, kept])) for label in drawn),
        )


def _rounded(value: Any) -> float | None:
    return float(f"{value:.5g}") if np.isfinite(value) else None


# ---------------------------------------------------------------- predictions


def predictive(tree: Tree) -> Iterator[Predictive]:
    """The data of each observed step beside draws of it from the posterior and the prior, where these are stored."""
    observed = tree["observed_data"].data_vars if "observed_data" in tree.children else dict[str, Variable]()
    for name, value in list(observed.items())[:MOST_PREDICTED]:
        data = np.asarray(value.to_numpy(), dtype=np.float64).ravel()
        data = data[np.isfinite(data)]
        groups = {one: _drawn_again(tree, f"{one}_predictive", name) for one in ("posterior", "prior")}
        if not data.size or groups["posterior"] is None:
            continue
        yield shares_of(name, data, groups["posterior"], groups["prior"])


def shares_of(name: str, data: Draws, drawn: Draws, prior: Draws | None = None) -> Predictive:
    """Data, none where none are known, and what is drawn of them, (draws, elements), in common bins."""
    edges = _edges(data if data.size else drawn[np.isfinite(drawn)], drawn)
    shares = tuple((np.histogram(data, edges)[0] / data.size).tolist()) if data.size else ()
    before = None if prior is None else _band(prior, edges)
    low, high = float(edges[0]), float(edges[-1])
    return Predictive(name=name, low=low, high=high, observed=shares, posterior=_band(drawn, edges), prior=before)


def _drawn_again(tree: Tree, group: str, name: str) -> Draws | None:
    """Draws of an observed step, (draws, elements): `MOST_TRACED` of them, evenly spread."""
    if group not in tree.children or name not in tree[group].data_vars:
        return None
    flat = _flat(tree[group][name].to_numpy())
    flat = flat.reshape(-1, flat.shape[2])
    return flat[np.unique(np.linspace(0, len(flat) - 1, min(len(flat), MOST_TRACED), dtype=np.int64))]


def _edges(data: Draws, drawn: Draws) -> Draws:
    """Of bins over the data and nearly all that the posterior predicts; of few whole numbers one for each."""
    finite = drawn[np.isfinite(drawn)]
    low, high = (float(one) for one in np.quantile(finite, (0.005, 0.995))) if finite.size else (0.0, 0.0)
    low, high = min(low, float(data.min())), max(high, float(data.max()))
    whole = bool((data == data.round()).all() and (finite == finite.round()).all())
    if whole and high - low < MOST_BINS:
        return np.arange(math.floor(low), math.ceil(high) + 2, dtype=np.float64) - 0.5
    bins = min(PREDICTED_BINS, 2 * (1 + math.ceil(math.log2(data.size))))
    return np.linspace(low, high if high > low else low + 1.0, bins + 1)


def _band(drawn: Draws, edges: Draws) -> Band:
    each = np.array([np.histogram(one[np.isfinite(one)], edges)[0] / max(1, one.size) for one in drawn])
    low, high = np.quantile(each, (0.05, 0.95), axis=0)
    return Band(
        mean=tuple(each.mean(0).tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        outside=float(1 - each.sum(1).mean()),
    )


def _site(
    name: str, value: Variable, prior: Array | None, room: int, numbers: int, chained: MixingBySite | None
) -> SiteSummary:
    every = value.to_numpy()
    every = every.reshape(*every.shape[:2], -1)
    exists, means, spreads = _moments(every)
    there = np.flatnonzero(exists)
    size = len(there)
    if not size:
        return SiteSummary(name=name, size=0, elements=())
    called_all = called(name, value)
    names = [called_all[at] for at in there.tolist()]
    means, spreads = means[there], spreads[there]
    looked = np.unique(np.r_[: min(room, size), : size : -(-size // LOOKED_AT)])
    r_hat, ess, unmixed = np.full(size, np.nan), np.full(size, np.nan), np.zeros(size, dtype=bool)
    if chained and every.shape[1] >= FEWEST_DRAWS:
        mixed = chained.of(name, there[looked])
        ess[looked] = mixed.bulk
        r_hat[looked] = mixed.r_hat
        unmixed[looked] = r_hat_is_large(every.shape, mixed.r_hat, mixed.inefficiency, numbers)
    shown = there[: min(room, size)]
    flat = _flat(every[:, :, shown])
    before = None if prior is None else _flat(prior.reshape(-1, 1, every.shape[2])[:, :, shown])[:, 0]
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
            unmixed=bool(unmixed[at]) if np.isfinite(r_hat[at]) else None,
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


def _moments(every: Array) -> tuple[NDArray[np.bool_], Draws, Draws]:
    """Of draws (chains, draws, numbers): which numbers exist, an element that does not having no draws, with means and
    standard deviations, by blocks, since each is made of copies in double precision."""
    each = every.shape[0] * every.shape[1]
    width = max(1, AT_ONCE // max(1, each))
    exists, (means, spreads) = np.zeros(every.shape[2], dtype=bool), np.full((2, every.shape[2]), np.nan)
    for at in range(0, every.shape[2], width):
        some = slice(at, at + width)
        block = _flat(every[:, :, some])
        exists[some] = ~np.isnan(block).all((0, 1))
        means[some], spreads[some] = block.mean((0, 1)), block.std((0, 1), ddof=1 if each > 1 else 0)
    return exists, means, spreads


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
