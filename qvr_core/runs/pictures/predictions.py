"""Pictures of data beside what the posterior, or the prior, draws of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from qvr_core.data.column_names import listed, nearest
from qvr_core.runs.evaluation.loo import Array
from qvr_core.runs.pictures.look import LETTERS, WIDTH, Entry, axes_of, between, figure_of, grid_size, legend_below
from qvr_core.runs.pictures.posteriors import quiet
from qvr_core.runs.pictures.stored import NoPicture, Observed, Stored, scalars

MOST_PANELS = 12
MOST_BARS = 40
"""Different whole numbers that are drawn as bars."""
FEW = 30
"""Below so many observations a density says more of its smoothing than of them: their distribution is drawn."""
CURVES = 50
"""Replicated data sets of a picture."""
STATISTICS: dict[str, Callable[[Array], Array]] = {
    "mean": lambda values: values.mean(-1),
    "sd": lambda values: values.std(-1),
    "median": lambda values: np.median(values, -1),
    "min": lambda values: values.min(-1),
    "max": lambda values: values.max(-1),
    "zeros": lambda values: (values == 0).mean(-1),
}
"""Of replicated data (…, n): what is compared with the same of the data."""


def steps_of(stored: Stored, source: str, names: Sequence[str]) -> list[Observed]:
    """The observed steps that are drawn: those that are named, also by an element (`y[peru]`) or a pattern, else the
    outcomes, of which no predictor is one that is observed because its missing cells are filled in.  Raises
    `NoPicture`."""
    found = stored.observed(source)
    if not found:
        what = "prior" if source.startswith("prior") else "posterior"
        raise NoPicture(f"the run stored no draws from the {what} of what the program observes")
    known = list(dict.fromkeys([*(step.name for step in found), *stored.group(source).data_vars]))
    for name in names:
        if not any(_means(name, one) for one in known):
            near = nearest(name.partition("[")[0], known)
            guess = f"; did you mean `{near}`?" if near else ""
            raise NoPicture(f"the program observes and predicts no `{name}`: there are {listed(known)}{guess}")
    scored = stored.group("log_likelihood").data_vars
    chosen = [step for step in found if any(_means(name, step.name) for name in names)]
    return chosen or [step for step in found if step.name in scored] or found


def lines_of(stored: Stored, source: str, names: Sequence[str]) -> list[Observed]:
    """The steps of `steps_of` as series: of those with several axes one for each element of the shorter ones.  Raises
    `NoPicture`."""
    wanted = {step.name for step in steps_of(stored, source, names)}
    found = [line for line in stored.lines(source) if line.name.partition("[")[0] in wanted]
    parts = [name for name in names if "[" in name]
    if not parts:
        return found
    whole = [name for name in names if "[" not in name]
    every = [line.name for line in found]
    for name in parts:
        if name not in every:
            raise NoPicture(f"there is no series `{name}`: there are {listed(every)}")
    return [line for line in found if line.name in parts or any(_means(one, line.name) for one in whole)]


def _means(name: str, step: str) -> bool:
    """Whether a name, that of an element or a pattern speaks of a step, or of an element of it."""
    return fnmatchcase(step.partition("[")[0], name.partition("[")[0])


def grouped(stored: Stored, step: Observed, by: str, sets: Mapping[str, str]) -> list[Observed]:
    """The parts of a step's data, one a group, the largest first where there are too many.  `sets` are those that the
    values of data names are elements of.  Raises `NoPicture`."""
    if by == step.axis:
        codes, labels = step.places, [str(one) for one in step.labels]
    else:
        constant = stored.group("constant_data")
        suited = [name for name, one in constant.data_vars.items() if one.dims == (step.axis,)]
        if by not in suited:
            near = nearest(by, [*suited, step.axis])
            guess = f"; did you mean `{near}`?" if near else ""
            known = f"there are {listed([*suited, step.axis])}" if suited else f"there is only `{step.axis}`"
            raise NoPicture(f"`{step.name}` has no groups `{by}`{guess}: {known}")
        every = constant[by].values
        named = stored.labels(sets.get(by))
        values, at = np.unique(every, return_inverse=True)
        if named is None and len(values) > MOST_PANELS:
            raise NoPicture(f"`{by}` has {len(values)} different values, and groups want {MOST_PANELS} at most")
        labels = [named[int(one)] if named is not None else f"{one:g}" for one in values.tolist()]
        codes = at[step.places]
    parts = [
        replace(step, name=label, data=step.data[codes == at], drawn=step.drawn[:, codes == at])
        for at, label in enumerate(labels)
        if np.any(codes == at)
    ]
    if len(parts) > MOST_PANELS:
        parts = sorted(parts, key=lambda part: -part.data.size)[:MOST_PANELS]
    return parts


def predictive(steps: Sequence[Observed], source: str) -> Any:
    """Data and replicated data: curves of what is continuous, bars of whole numbers, steps of many whole numbers."""
    if all(step.discrete for step in steps) and len(_whole(steps)) <= MOST_BARS:
        return _bars(steps, source)
    return _curves(steps, source)


def _whole(steps: Iterable[Observed]) -> Array:
    """The whole numbers between those that all but a few of the data and draws lie between."""
    ends = [between(step.data, step.drawn, margin=0.0) for step in steps]
    data = [end for step in steps for end in (step.data.min(), step.data.max())]
    low, high = min(*(end[0] for end in ends), *data), max(*(end[1] for end in ends), *data)
    return np.arange(math.floor(low), math.ceil(high) + 1, dtype=np.float64)


def _curves(steps: Sequence[Observed], source: str) -> Any:
    import arviz_plots
    import xarray

    drawn_each, data_each = dict[str, Any](), dict[str, Any]()
    for at, step in enumerate(steps):
        rows = np.linspace(0, len(step.drawn) - 1, min(CURVES, len(step.drawn))).astype(int)
        drawn_each[step.name] = (("chain", "draw", f"element_{at}"), step.drawn[None, rows])
        data_each[step.name] = ((f"element_{at}",), step.data)
    tree = xarray.DataTree.from_dict(
        {"/posterior_predictive": xarray.Dataset(drawn_each), "/observed_data": xarray.Dataset(data_each)}
    )
    few = min(step.data.size for step in steps) < FEW
    kind = "ecdf" if few or all(step.discrete for step in steps) else "kde"
    columns = 1 if len(steps) == 1 else 2
    with quiet():
        collection = arviz_plots.plot_ppc_dist(
            tree, kind=kind, num_samples=min(CURVES, *(len(step.drawn) for step in steps)), col_wrap=columns,
            figure_kwargs=grid_size(len(steps), columns, 3.6 if columns == 1 else 2.2),
            visuals={"predictive_dist": {"color": "C0", "alpha": 0.25, "width": 0.8},
                     "observed_dist": {"color": "C1", "width": 2}},
        )  # fmt: skip
    for step in steps:
        axes = axes_of(collection, step.name)
        axes.set_xlim(*between(step.data, step.drawn, low=0.002, high=0.998))
        if kind == "ecdf":
            _from_zero(axes)
    figure = figure_of(collection)
    if kind == "ecdf":
        figure.supylabel("share of the observations up to here", fontsize=LETTERS)
    rows = min(CURVES, *(len(step.drawn) for step in steps))
    legend_below(
        figure,
        [("data", {"color": "C1", "linewidth": 2}), (f"{rows} data sets drawn from the {source}", {"color": "C0"})],
    )
    return figure


def _from_zero(axes: Any) -> None:
    """Distributions rise from 0, on an axis from 0 to 1, where they are drawn from their first step on."""
    for line in axes.lines:
        x, y = map(np.asarray, line.get_data())
        if len(x) > 1:
            line.set_data(np.r_[x[0], x], np.r_[0.0, y])
    axes.set_ylim(0.0, 1.03)


def _panels(count: int, height: float) -> tuple[Any, list[Any]]:
    from matplotlib import pyplot

    columns = 1 if count == 1 else 2
    rows = -(-count // columns)
    size = (WIDTH, max(height * rows, 2.8))
    figure, grid = pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for empty in grid.ravel()[count:]:
        empty.set_visible(False)
    return figure, list(grid.ravel()[:count])


def _bars(steps: Sequence[Observed], source: str) -> Any:
    """Shares of whole numbers, and the 90 % interval of what is drawn."""
    figure, panels = _panels(len(steps), 2.4)
    for axes, step in zip(panels, steps, strict=True):
        values = _whole([step])
        shares = np.array([(step.drawn == one).mean(1) for one in values])
        low, middle, high = np.quantile(shares, (0.05, 0.5, 0.95), axis=1)
        axes.bar(values, [(step.data == one).mean() for one in values], 0.8, color="C0", alpha=0.4)
        axes.vlines(values, low, high, color="C1", linewidth=2)
        axes.plot(values, middle, "o", color="C1", markersize=4)
        axes.set_title(step.name)
        if len(values) <= 12:
            axes.set_xticks(values)
    figure.supylabel("share of the observations", fontsize=LETTERS)
    legend_below(
        figure,
        [("data", {"facecolor": "C0", "alpha": 0.4}),
         (f"drawn from the {source}: median and 90 %", {"color": "C1", "marker": "o", "markersize": 4})],
    )  # fmt: skip
    return figure


def statistics(steps: Sequence[Observed], wanted: Sequence[str], source: str) -> Any:
    """Of each step the statistics of replicated data, and those of the data as a line.  Raises `NoPicture`."""
    import arviz_plots

    for name in wanted:
        if name not in STATISTICS:
            near = nearest(name, list(STATISTICS))
            guess = f"; did you mean `{near}`?" if near else ""
            raise NoPicture(f"there is no statistic `{name}`{guess}: {listed(list(STATISTICS))}")
    values, seen = dict[str, Array](), dict[str, float]()
    for step in steps:
        for name in wanted:
            called = f"{name} of {step.name}"
            values[called] = STATISTICS[name](step.drawn)[None]
            seen[called] = float(STATISTICS[name](step.data))
    varying = {name: each for name, each in values.items() if np.ptp(each) > 0}
    if not varying:
        raise NoPicture(f"{listed(wanted)} is the same in every draw: {listed([f'{v:.4g}' for v in seen.values()])}")
    with quiet():
        drawn = arviz_plots.plot_dist(
            scalars({"posterior": varying}), kind="hist", col_wrap=2, figure_kwargs=grid_size(len(varying), 2, 2.1),
            visuals={"point_estimate": False, "point_estimate_text": False, "credible_interval": False},
        )  # fmt: skip
    for name, each in varying.items():
        axes = axes_of(drawn, name)
        axes.axvline(seen[name], color="C1", linewidth=2)
        axes.set_xlim(*between(each, [seen[name]], low=0.001, high=0.999))
        axes.set_xlabel(
            f"data {seen[name]:.3g}; {100 * (each >= seen[name]).mean():.0f} % of the draws are as large".replace(
                "-", "−"
            )
        )
    figure = figure_of(drawn)
    same = [
        f"{name}: {each.flat[0]:.3g} in every draw, {seen[name]:.3g} in the data"
        for name, each in values.items()
        if name not in varying
    ]
    if same:
        figure.suptitle("\n".join(same).replace("-", "−"), fontsize=LETTERS)
    legend_below(figure, [("data", {"color": "C1", "linewidth": 2}), (f"drawn from the {source}", {"color": "C0"})])
    return figure


@dataclass(frozen=True)
class Ahead:
    """A predicted step: its draws (draws, n), and the labels of its elements."""

    name: str
    labels: Array
    drawn: Array


def ahead_of(stored: Stored, last: Collection[str], asked: Sequence[str], steps: Sequence[Observed]) -> list[Ahead]:
    """The steps `last`, or those of them that are `asked` for, that are predicted over a set of their own."""
    drawn = stored.group("posterior_predictive").data_vars
    named = set(asked) & set(drawn) - {step.name for step in stored.observed("posterior_predictive")}
    found = list[Ahead]()
    for name, values in drawn.items():
        alone = len(values.dims) == 3 and values.dims[2] not in {step.axis for step in steps}
        if alone and name in (named or last):
            labels = values.coords.get(values.dims[2], np.arange(values.shape[2]))
            found.append(Ahead(name, np.asarray(labels), values.values.reshape(-1, values.shape[2])))
    return found


def series(steps: Sequence[Observed], ahead: Sequence[Ahead], source: str) -> Any:
    """Data over their axis in the bands of what is drawn, and what is predicted behind them."""
    figure, panels = _panels_below(len(steps))
    for axes, step in zip(panels, steps, strict=True):
        times = _times(step.labels)[step.places]
        order = np.argsort(times, kind="stable")
        _bands(axes, times[order], step.drawn[:, order], "C0")
        axes.plot(times[order], step.data[order], ".", color="C1", markersize=5)
        axes.set_ylabel(step.name)
        spacing = float(np.median(np.diff(np.unique(times)))) if len(np.unique(times)) > 1 else 1.0
        for at, one in enumerate(ahead):
            later = _times(one.labels)
            if later[0] <= times.max():
                later = times.max() + spacing * np.arange(1, len(later) + 1)
            _bands(axes, later, one.drawn, f"C{2 + at}")
        shown = np.concatenate([step.data, *(one.drawn.ravel() for one in ahead)])
        axes.set_ylim(*between(step.data, step.drawn, shown, low=0.01, high=0.99, margin=0.08))
    panels[-1].set_xlabel(steps[-1].axis)
    entries: list[Entry] = [
        ("data", {"color": "C1", "marker": ".", "linestyle": "none"}),
        (f"drawn from the {source}: median, 50 % and 90 %", {"facecolor": "C0", "alpha": 0.45}),
        *((f"{one.name}, predicted", {"facecolor": f"C{2 + at}", "alpha": 0.45}) for at, one in enumerate(ahead)),
    ]
    legend_below(figure, entries)
    return figure


def _panels_below(count: int) -> tuple[Any, list[Any]]:
    from matplotlib import pyplot

    size = (WIDTH, max(2.6 * count, 3.6))
    figure, grid = pyplot.subplots(count, 1, figsize=size, squeeze=False, layout="constrained")
    return figure, list(grid[:, 0])


def _times(labels: Array) -> Array:
    """Labels as numbers, or as days of their dates; their places where they are neither."""
    try:
        return np.asarray(labels, np.float64)
    except ValueError:
        pass
    try:
        days = np.asarray(labels, "datetime64[D]")
    except ValueError:
        return np.arange(len(labels), dtype=np.float64)
    return days.astype(np.float64)


def _bands(axes: Any, times: Array, drawn: Array, colour: str) -> None:
    for low, high, opacity in ((0.05, 0.95, 0.22), (0.25, 0.75, 0.35)):
        ends = np.quantile(drawn, (low, high), axis=0)
        axes.fill_between(times, ends[0], ends[1], color=colour, alpha=opacity, linewidth=0)
    axes.plot(times, np.median(drawn, axis=0), color=colour, linewidth=1.2)
