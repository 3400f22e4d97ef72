"""Pictures of the posterior and of the chains that drew it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np

from qvr_core.inference.labelled_datasets import Dataset, Variable
from qvr_core.runs.evaluation.loo import Array
from qvr_core.runs.pictures.look import (
    BAND,
    ENVELOPE,
    LETTERS,
    WIDTH,
    Entry,
    axes_of,
    between,
    chain_entries,
    figure_of,
    grid_size,
    legend_below,
)
from qvr_core.runs.pictures.stored import NoPicture, Stored, scalars

MOST = {"posterior": 24, "prior": 24, "trace": 12, "rank": 16, "forest": 80, "pairs": 6}
"""Numbers of a picture; the first of more are drawn, and that is said."""
MARK = "C4"
"""What is wrong: divergences."""
DOTS = 1000
"""Draws of a scatter."""


@contextmanager
def quiet() -> Generator[None]:
    """ArviZ warns of what the checks of the run say already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _chosen(stored: Stored, kind: str, group: str = "posterior") -> dict[str, Array]:
    found = stored.numbers(group, MOST[kind])
    if not found:
        raise NoPicture(f"the run stored no draws of what was chosen in the group `{group}`")
    return found


def _chains(stored: Stored, kind: str) -> None:
    if stored.algorithm != "nuts":
        raise NoPicture(
            f"`{kind}` shows how chains move, and a fit by {stored.algorithm} has none: its draws are independent; "
            "`qvr plot RUN posterior` draws them, and `qvr run nuts` runs chains"
        )


def _figures(draws: Array) -> str:
    """`mean 1.2, 90 % from 0.3 to 2.1`."""
    low, high = np.nanquantile(draws, (0.05, 0.95))
    return f"mean {np.nanmean(draws):.3g}, 90 % from {low:.3g} to {high:.3g}".replace("-", "−")


def posterior(stored: Stored) -> Any:
    """Densities with the mean and the 90 % interval."""
    import arviz_plots

    values = _chosen(stored, "posterior")
    with quiet():
        drawn = arviz_plots.plot_dist(
            scalars({"posterior": values}), ci_kind="eti", ci_prob=0.9, point_estimate="mean", col_wrap=2,
            figure_kwargs=grid_size(len(values), 2, 1.9), visuals={"point_estimate_text": False},
            stats={"point_estimate": {"round_to": "none"}},  # else the mark stands where the first two digits are
        )  # fmt: skip
    for name, draws in values.items():
        axes = axes_of(drawn, name)
        axes.set_xlabel(_figures(draws))
        axes.set_xlim(*between(draws))
    return figure_of(drawn)


def prior(stored: Stored) -> Any:
    """Densities of the posterior over those of the prior."""
    import arviz_plots

    if not stored.group("prior").data_vars:
        raise NoPicture("the run stored no draws from the prior: a program with fitted weights has none")
    values, before = _chosen(stored, "prior"), stored.numbers("prior", MOST["prior"])
    names = [name for name in values if name in before]
    if not names:
        raise NoPicture("the run stored no draws from the prior of what was chosen")
    groups = {"prior": {n: before[n] for n in names}, "posterior": {n: values[n] for n in names}}
    hidden: Any = {"legend": False}  # which its signature forgets
    with quiet():
        drawn = arviz_plots.plot_prior_posterior(
            scalars(groups), col_wrap=2, figure_kwargs=grid_size(len(names), 2, 1.9), visuals=hidden
        )
    for name in names:
        axes_of(drawn, name).set_xlim(*between(values[name], before[name], low=0.02, high=0.98, margin=0.1))
    figure = figure_of(drawn)
    legend_below(figure, [("prior", {"color": "C0"}), ("posterior", {"color": "C1"})])
    return figure


def trace(stored: Stored) -> Any:
    """Draws of each chain in their order, divergences below."""
    import arviz_plots

    _chains(stored, "trace")
    values = _chosen(stored, "trace")
    statistics = stored.group("sample_stats")
    with quiet():
        drawn = arviz_plots.plot_trace(
            scalars({"posterior": values}, statistics), cols=["__variable__"], col_wrap=1,
            figure_kwargs={**grid_size(len(values), 1, 1.3), "sharex": True},
            visuals={"trace": {"width": 0.6}, "divergence": False, "title": False, "xlabel": False},
        )  # fmt: skip
    diverged = _divergences(stored)
    for name, draws in values.items():
        axes = axes_of(drawn, name)
        axes.set_ylabel(name)
        # at the foot of the panel, whatever the range of its draws is
        at = np.unique(np.nonzero(diverged)[1])
        axes.plot(at, np.full(len(at), 0.05), "|", color=MARK, transform=axes.get_xaxis_transform())
        axes.set_ylim(*between(draws, low=0.0005, high=0.9995))
    axes_of(drawn, list(values)[-1]).set_xlabel("draw")
    figure = figure_of(drawn)
    entries = chain_entries(stored.chains())
    if diverged.any():
        entries.append(("divergence", {"color": MARK, "marker": "|", "linestyle": "none"}))
    legend_below(figure, entries)
    return figure


def rank(stored: Stored) -> Any:
    """How far the ranks of each chain's draws are from uniform, in the band where they are by chance."""
    import arviz_plots

    _chains(stored, "rank")
    if stored.chains() < 2:
        raise NoPicture("`rank` compares chains, and this run has one: qvr run nuts FILE --chains 4")
    values = _chosen(stored, "rank")
    with quiet():
        drawn = arviz_plots.plot_rank(
            scalars({"posterior": values}), col_wrap=2, figure_kwargs=grid_size(len(values), 2, 1.9),
            visuals={"xlabel": False, "credible_interval": ENVELOPE},
        )  # fmt: skip
    for name in list(values)[-2:]:
        axes_of(drawn, name).set_xlabel("rank among all draws, as a share")
    figure = figure_of(drawn)
    figure.supylabel("share of draws below, less what is expected", fontsize=LETTERS)
    legend_below(figure, [*chain_entries(stored.chains()), ("where 99 % of good chains stay", BAND)])
    return figure


def forest(stored: Stored) -> Any:
    """Means with their 50 % and 90 % intervals on one axis."""
    import arviz_plots
    from matplotlib import rcParams

    values = _chosen(stored, "forest")
    with quiet():
        drawn = arviz_plots.plot_forest(
            scalars({"posterior": values}), combined=True, ci_kind="eti", ci_probs=(0.5, 0.9), point_estimate="mean",
            figure_kwargs={"figsize": (WIDTH, max(0.28 * len(values) + 1.1, 2.6))},
            visuals={"ticklabels": False, "labels": {"color": rcParams["text.color"]}},
        )  # fmt: skip
    figure = figure_of(drawn)
    shown = figure.axes[-1]
    figure.axes[0].xaxis.set_visible(False)
    if any(np.min(draws) < 0 < np.max(draws) for draws in values.values()):
        shown.axvline(0.0, color="0.5", linewidth=0.8, linestyle="--", zorder=0)
    shown.set_xlabel("mean, with the intervals that hold 50 % and 90 % of the draws")
    return figure


def pairs(stored: Stored) -> Any:
    """Draws of two numbers at a time, those that diverged marked."""
    import arviz_plots

    values = _chosen(stored, "pairs")
    if len(values) < 2:
        raise NoPicture("`pairs` wants two numbers at least: --vars names others")
    chains, draws = next(iter(values.values())).shape
    divergences = _divergences(stored)
    # some draws of each chain, and all those at which one of them diverged
    some: list[int] = [*range(0, draws, max(1, chains * draws // DOTS)), *np.nonzero(divergences)[1].tolist()]
    kept = np.unique(some)
    thinned = {name: one[:, kept] for name, one in values.items()}
    side = min(1.7 * len(values), WIDTH)
    diverged = _marked(divergences[:, kept]) if divergences.any() else None
    with quiet():
        drawn = arviz_plots.plot_pair(
            scalars({"posterior": thinned}, diverged), figure_kwargs={"figsize": (WIDTH, side)},
            visuals={"scatter": {"alpha": 0.35, "width": 0, "size": 8},
                     "divergence": {"color": MARK, "size": 12} if diverged is not None else False},
        )  # fmt: skip
    figure = figure_of(drawn)
    entries: list[Entry] = [("draws", {"color": "C0", "marker": "o", "linestyle": "none", "markersize": 4})]
    if diverged is not None:
        entries.append(("diverged", {"color": MARK, "marker": "o", "linestyle": "none", "markersize": 4}))
    legend_below(figure, entries)
    return figure


def _divergences(stored: Stored) -> Array:
    """Whether each draw diverged: (chains, draws); none where the run has not kept it."""
    statistics = stored.group("sample_stats").data_vars
    if "diverging" in statistics:
        return np.asarray(statistics["diverging"].values, bool)
    return np.zeros((stored.chains(), 0), bool)


def _marked(divergences: Array) -> Dataset:
    coords: dict[str, Array] = {"chain": np.arange(divergences.shape[0]), "draw": np.arange(divergences.shape[1])}
    return Dataset({"diverging": Variable(("chain", "draw"), divergences, coords)})


def energy(stored: Stored) -> Any:
    """The energy of the draws beside that of a single move: where the second is narrower, chains move slowly."""
    import arviz_plots

    _chains(stored, "energy")
    if "energy" not in stored.group("sample_stats").data_vars:
        raise NoPicture("the run stored no energies")
    values = {"energy": stored.group("sample_stats")["energy"].values}
    with quiet():
        drawn = arviz_plots.plot_energy(
            scalars({"posterior": values}, stored.group("sample_stats")),
            figure_kwargs={"figsize": (WIDTH, 3.4)}, visuals={"legend": False, "bfmi_points": {"color": "C0"}},
        )  # fmt: skip
    figure = figure_of(drawn)
    figure.axes[0].set_yticks(range(stored.chains()), [str(at + 1) for at in range(stored.chains())])
    figure.axes[0].set_title("E-BFMI")
    legend_below(
        figure,
        [("of all draws, about their mean", {"color": "C0"}), ("from draw to draw", {"color": "C1"}),
         ("0.3, below which a chain explores poorly", {"color": "0.5", "linestyle": "--"})],
    )  # fmt: skip
    return figure


POSTERIORS: dict[str, Callable[[Stored], Any]] = {
    "posterior": posterior, "trace": trace, "rank": rank, "forest": forest, "pairs": pairs, "energy": energy,
    "prior": prior,
}  # fmt: skip
