"""Pictures of runs: losses, traces of chains, and data beside what is drawn of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from qvr_core.runs.record.exports import losses_of
from qvr_core.runs.record.store import RunDirectory, RunStore
from qvr_core.runs.record.summary import Predictive, Summary, read_summary


def plot_run(run: RunDirectory, store: RunStore, output: Path) -> bool:
    """Draw the traces of a run of chains, or the loss of another, into `output` (PNG, SVG or PDF by its name); false
    where the run has neither."""
    summary = read_summary(run)
    if summary is not None and summary.traces:
        plot_traces(summary, output)
    elif losses_of(run):
        plot_losses([run.run_id], store, output)
    else:
        return False
    return True


def plot_traces(summary: Summary, output: Path) -> None:
    """Draw of each number that the summary holds draws of its chains one over another, divergences as red marks below,
    into `output` (PNG, SVG or PDF by its name)."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    count = len(summary.drawn)
    figure, grid = pyplot.subplots(count, 1, figsize=(8, 1.7 * count), sharex=True, layout="constrained", squeeze=False)
    for number, (name, axes) in enumerate(zip(summary.drawn, grid[:, 0], strict=True)):
        for chain, trace in enumerate(summary.traces):
            values = [float("nan") if value is None else value for value in trace.values[number]]
            axes.plot(trace.draws, values, color=f"C{chain % 10}", linewidth=0.7)
            diverged = [trace.draws[at] for at in trace.diverging]
            axes.plot(diverged, [0.02] * len(diverged), "|", color="red", transform=axes.get_xaxis_transform())
        axes.set_ylabel(name)
    grid[-1, 0].set_xlabel("draw")
    figure.savefig(output, dpi=144)
    pyplot.close(figure)


def plot_losses(run_ids: Sequence[str], store: RunStore, output: Path) -> None:
    """Draw the loss of each run over its steps, with its running mean, into `output` (PNG, SVG or PDF by its name)."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    for number, run_id in enumerate(run_ids):
        losses = losses_of(store.open(run_id))
        colour = f"C{number % 10}"
        window = max(len(losses) // 100, 1)
        means = [
            sum(losses[max(0, i - window) : i + 1]) / len(losses[max(0, i - window) : i + 1])
            for i in range(len(losses))
        ]
        steps = range(1, len(losses) + 1)
        axes.plot(steps, losses, color=colour, alpha=0.25, linewidth=0.8)
        axes.plot(steps, means, color=colour, label=run_id)
    axes.set_xlabel("step")
    axes.set_ylabel("−ELBO per row")
    axes.legend()
    figure.savefig(output, dpi=144)
    pyplot.close(figure)


def plot_predictive(steps: Sequence[Predictive], drawn: str, output: Path, censored: Collection[str] = ()) -> None:
    """Of each observed step its data as bars, and the mean and the 5 % to 95 % interval of what is drawn of them, into
    `output` (PNG, SVG or PDF by its name).  `drawn` says from what, as "posterior", `censored` of which steps data are
    cut off."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    count = len(steps)
    figure, grid = pyplot.subplots(1, count, figsize=(6.4 * count, 4.2), layout="constrained", squeeze=False)
    for axes, step in zip(grid[0], steps, strict=True):
        band = step.posterior
        assert band is not None
        width = (step.high - step.low) / len(band.mean)
        centres = [step.low + (at + 0.5) * width for at in range(len(band.mean))]
        if step.observed:
            label = "data, cut off where censored" if step.name in censored else "data"
            axes.bar(centres, step.observed, 0.9 * width, color="C0", alpha=0.35, label=label)
        # A mean may lie outside the quantiles: that of a share which is 0 in nearly all draws.
        axes.vlines(centres, band.low, band.high, color="C1")
        axes.plot(centres, band.mean, "o", color="C1", markersize=4, label=f"drawn from the {drawn}, with 90 %")
        axes.set_xlabel(step.name)
        axes.set_ylabel("share of the values")
        if len(centres) <= 12 and all(float(at).is_integer() for at in centres):
            axes.set_xticks(centres)
        axes.legend()
    figure.savefig(output, dpi=144)
    pyplot.close(figure)
