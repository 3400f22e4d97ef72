"""Pictures of leave-one-out cross-validation: Pareto k, and where each observation lies in its own prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qvr_core.runs.evaluation.loo import Loo
from qvr_core.runs.pictures.look import BAND, LETTERS, WIDTH, axes_of, figure_of, legend_below
from qvr_core.runs.pictures.posteriors import quiet
from qvr_core.runs.pictures.stored import NoPicture, Observed, Stored

NAMED, FEW = 8, 3
"""Observations that are called by their names: of those whose Pareto k is too large, or of all where none is."""


def pareto(weighed: Loo | None, refitted: Loo | None) -> Any:
    """Pareto k of each observation, by importance weights alone; the largest are named.  The figures are those with the
    refits that a run has, whose observations are marked.  Raises `NoPicture`."""
    from matplotlib import pyplot

    if weighed is None:
        raise NoPicture("the run stored no log likelihood of single observations to leave out")
    found = refitted or weighed
    figure, axes = pyplot.subplots(figsize=(WIDTH, 3.8), layout="constrained")
    k, places = weighed.k, np.arange(len(weighed.k))
    exact = np.array([name in found.exact for name in found.names])
    bad = (k > found.good) & ~exact
    axes.plot(places[~bad & ~exact], k[~bad & ~exact], ".", color="C0")
    axes.plot(places[bad], k[bad], "o", color="C4", markersize=5)
    axes.plot(places[exact], k[exact], "o", color="C2", markersize=5, fillstyle="none")
    axes.axhline(found.good, color="C1", linewidth=1.2, linestyle="--")
    names = list[Any]()
    told = min(int((bad | exact).sum()), NAMED) or FEW
    for at in map(int, np.argsort(-k)[:told]):
        side = "right" if at > 0.75 * len(k) else "left"
        offset = (-5 if side == "right" else 5, 2)
        place = (at, float(k[at]))
        names.append(
            axes.annotate(
                found.names[at], place, offset, textcoords="offset points", fontsize=LETTERS - 1, ha=side, va="center"
            )
        )
    axes.set_xlabel("observation")
    axes.set_ylabel("Pareto k")
    axes.set_title(
        f"elpd {found.total:.1f} ± {found.se:.1f}, {float(found.parameters.sum()):.1f} effective parameters".replace(
            "-", "−"
        )
    )
    entries: list[tuple[str, dict[str, Any]]] = [
        ("an observation", {"color": "C0", "marker": ".", "linestyle": "none"})
    ]
    if bad.any():
        entries.append(("left out badly", {"color": "C4", "marker": "o", "linestyle": "none"}))
    if exact.any():
        entries.append(
            ("refitted without it", {"color": "C2", "marker": "o", "linestyle": "none", "fillstyle": "none"})
        )
    legend_below(
        figure, [*entries, (f"{found.good:.2f}, the largest to be trusted", {"color": "C1", "linestyle": "--"})]
    )
    _thin(figure, names)
    return figure


def _thin(figure: Any, names: list[Any]) -> None:
    """Of names that stand on each other, the first stays, and another moves up or down, or goes."""
    figure.draw_without_rendering()
    kept = list[Any]()
    for name in names:
        across, _ = name.get_position()
        for up in (2, LETTERS, -LETTERS):
            name.set_position((across, up))
            edges = name.get_window_extent()
            if not any(edges.overlaps(other) for other in kept):
                kept.append(edges)
                break
        else:
            name.remove()


def loo_pit(stored: Stored, steps: Sequence[Observed]) -> Any:
    """Where each observation lies in what the others predict of it: uniform in a model that is calibrated."""
    import arviz_plots
    import xarray

    likelihood = stored.group("log_likelihood")
    step = next((one for one in steps if one.name in likelihood.data_vars), None)
    if step is None:
        raise NoPicture("the run stored no log likelihood of single observations to leave out")
    chains, draws = stored.group("posterior").sizes["chain"], stored.group("posterior").sizes["draw"]
    scores = likelihood[step.name].values.reshape(chains, draws, -1)
    if scores.shape[2] != step.data.size:
        raise NoPicture(f"`{step.name}` has draws of {step.data.size} observations and scores of {scores.shape[2]}")
    lead = ("chain", "draw", "observation")
    one = stored.group("posterior").data_vars
    name, first = next(iter(one.items()))
    tree = xarray.DataTree.from_dict(
        {
            "/posterior": xarray.Dataset({name: (lead[:2], first.values.reshape(chains, draws, -1)[:, :, 0])}),
            "/posterior_predictive": xarray.Dataset({step.name: (lead, step.drawn.reshape(chains, draws, -1))}),
            "/log_likelihood": xarray.Dataset({step.name: (lead, scores)}),
            "/observed_data": xarray.Dataset({step.name: (lead[2:], step.data)}),
        }
    )
    with quiet():
        drawn = arviz_plots.plot_loo_pit(
            tree,
            var_names=step.name,
            figure_kwargs={"figsize": (WIDTH, 3.8)},
            visuals={
                "xlabel": False,
                "ylabel": False,
                "credible_interval": {"color": BAND["facecolor"], "alpha": BAND["alpha"]},
            },
        )
    figure = figure_of(drawn)
    axes_of(drawn, step.name).set_xlabel("where the observation lies in its prediction from all others (LOO-PIT)")
    axes_of(drawn, step.name).set_ylabel("share below, less what is expected")
    legend_below(figure, [(step.name, {"color": "C0"}),
                          ("where a calibrated model stays, with 99 %", BAND)])  # fmt: skip
    return figure
