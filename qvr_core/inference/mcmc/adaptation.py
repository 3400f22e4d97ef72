"""Warm-up: the step size by dual averaging, and the windows in which the mass matrix is learned.

Windows double as in Stan, but the first ends after 10 draws, not 100: a chain that knows the scales needs a fraction of
the steps.  While it does not know them, in the first 100 draws, long trees are not worth their steps.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from qvr_core.inference.mcmc.mass import Array

FIRST_ENDS, FINAL_BUFFER = (10, 25, 50, 100), 50
EARLY_DRAWS, EARLY_DEPTH = FIRST_ENDS[-1], 6
"""Draws in which trees are not deeper than this."""


class DualAveraging:
    """Nesterov's dual averaging of log step sizes (Hoffman & Gelman 2014, section 3.2), per chain."""

    def __init__(
        self, step_size: Array, target: float, *, gamma: float = 0.05, offset: float = 10.0, decay: float = 0.75
    ) -> None:
        self.target, self.gamma, self.offset, self.decay = target, gamma, offset, decay
        self.restart(step_size)

    def restart(self, step_size: Array) -> None:
        """Begin anew around ten times a step size (C,)."""
        self.step_size = step_size.copy()
        self.centre = np.log(10.0 * step_size)
        self.log_average = np.log(step_size)
        self.error = np.zeros_like(step_size)
        self.count = 0

    def update(self, acceptance: Array) -> None:
        """Learn from one transition's mean acceptance statistic (C,)."""
        self.count += 1
        weight = 1.0 / (self.count + self.offset)
        self.error = (1.0 - weight) * self.error + weight * (self.target - acceptance)
        log_step = self.centre - self.count**0.5 / self.gamma * self.error
        decay = self.count**-self.decay
        self.log_average = decay * log_step + (1.0 - decay) * self.log_average
        self.step_size = np.exp(log_step)

    @property
    def final(self) -> Array:
        """The averaged step size (C,), for sampling."""
        return np.exp(self.log_average) if self.count else self.step_size

    def arrays(self) -> dict[str, Array]:
        """What each chain has learned, (C,); `count` is common to them."""
        kept = {"tried": self.step_size, "centre": self.centre}
        return kept | {"log_average": self.log_average, "error": self.error}

    def restore(self, arrays: Mapping[str, Array], count: int) -> None:
        """Undo `arrays`."""
        self.step_size, self.centre = arrays["tried"], arrays["centre"]
        self.log_average, self.error, self.count = arrays["log_average"], arrays["error"], count


def window_ends(warmup: int) -> tuple[int, list[int]]:
    """The first draw of the first window, and the draw after each window, in `warmup` draws.

    They end at 10, 25, 50, 100, 200, …, the last one 50 draws before the end, and at least as long as the one before.
    With too few draws for that there is one, after the first 15 % and up to the last 10 %; below 20 there is none.
    """
    if warmup < 20:
        return warmup, []
    last = warmup - FINAL_BUFFER
    if last < FIRST_ENDS[-1]:
        return int(0.15 * warmup), [warmup - int(0.1 * warmup)]
    ends = [end for end in FIRST_ENDS if 2 * end <= last]
    while 4 * ends[-1] <= last:
        ends.append(2 * ends[-1])
    return 0, [*ends, last]


def is_early(draw: int, warmup: int) -> bool:
    """Whether a draw of the warm-up is one of those with short trees."""
    return draw < EARLY_DRAWS <= warmup - FINAL_BUFFER
