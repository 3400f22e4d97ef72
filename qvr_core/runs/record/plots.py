"""Loss curves as an image."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qvr_core.runs.record.exports import losses_of
from qvr_core.runs.record.store import RunStore


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
