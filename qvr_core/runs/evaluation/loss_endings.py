"""Whether a fit has come down: a loss that ends above its start, or far above what it had been, is told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, median
from typing import Any

from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.protocol import Check

FEWEST = 20
"""Steps below which noise alone decides."""
SURE = 4.0
"""Standard errors between two means that are not noise."""
EXPLOSION = 20.0
"""So many times as far up as it ever came down, a loss did not rise by chance."""
BEGUN_THERE = 0.1
"""Nats that a fit may lose which begins where others end: its steps only move it about."""
DIFFERENCE = 0.954
"""Median of |a − b| for two standard normals."""


@dataclass(frozen=True)
class Complaint:
    """What is bad about a fit, what to do, and the settings of another run that does it."""

    text: str
    advice: str
    settings: dict[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        return f"{self.text}: {self.advice}"

    def check(self) -> Check:
        """As a check that failed."""
        return Check(name="loss", passed=False, text=self.text, advice=self.advice, settings=self.settings)


def ended_badly(losses: Sequence[float], config: RunConfig) -> Complaint | None:
    """What to say of losses that rose, with advice; None where the fit came down or has stayed."""
    finite = [loss for loss in losses if math.isfinite(loss)]
    if len(finite) < FEWEST:
        return None
    width = len(finite) // 10
    start, end = finite[: min(width, 10)], finite[-width:]
    windows = [finite[at : at + width] for at in range(0, len(finite) - width + 1, width)]
    best = min(windows, key=fmean)
    # Of steps that follow one another, so that neither a fall nor a jump counts as noise.
    noise = median(abs(after - before) for before, after in pairwise(finite)) / DIFFERENCE
    if config.guide == "pathfinder" and fmean(end) - fmean(best) < BEGUN_THERE:
        return None
    if _above(end, start, noise):
        what = f"the loss ended at {fmean(end):.4g}, above its start {fmean(start):.4g}"
    elif median(end) > finite[0] and max(finite) - finite[0] > EXPLOSION * (finite[0] - min(finite) + noise):
        peak = f"having gone up to {max(finite):.4g} on the way"
        what = f"the loss ended at {fmean(end):.4g}, above its start {finite[0]:.4g}, {peak}"
    elif _above(end, best, noise) and fmean(end) - fmean(best) > 0.5 * (fmean(start) - fmean(best)):
        what = f"the loss ended at {fmean(end):.4g}, and had been at {fmean(best):.4g} on the way"
    else:
        return None
    clip = "" if config.clip_gradient is not None else ", or set clip_gradient = 10.0"
    rate = config.learning_rate
    lower = {} if rate is None else {"learning_rate": float(f"{rate / 5:.2g}")}
    return Complaint(what, f"lower learning_rate (it is {config.learning_rate:g}){clip}", lower)


def _above(one: Sequence[float], other: Sequence[float], noise: float) -> bool:
    """Whether one part of the losses lies higher than another, and their means further apart than noise explains."""
    error = noise * math.sqrt(1 / len(one) + 1 / len(other))
    rise = fmean(one) - fmean(other)
    return median(one) > max(other) and rise > SURE * error + 1e-4 * abs(fmean(other))
