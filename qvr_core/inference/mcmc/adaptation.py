"""Warm-up: the step size by dual averaging, and the windows in which the mass matrix is learned (as in Stan)."""

from __future__ import annotations

import numpy as np

from qvr_core.inference.mcmc.mass import Array

INITIAL_BUFFER, FIRST_WINDOW, FINAL_BUFFER = 75, 25, 50


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


def window_ends(warmup: int) -> tuple[int, list[int]]:
    """The first draw of the first window, and the draw after each window, in `warmup` draws.

    Windows double; with too few draws for 75 + 25 + 50 they are 15 %, 75 % and 10 %; below 20 there are none.
    """
    if warmup < 20:
        return warmup, []
    start, final = INITIAL_BUFFER, FINAL_BUFFER
    size = FIRST_WINDOW
    if start + size + final > warmup:
        start, final = int(0.15 * warmup), int(0.1 * warmup)
        return start, [warmup - final]
    ends: list[int] = []
    end = start
    while end < warmup - final:
        step = size
        size *= 2
        if end + step + size > warmup - final:
            step = warmup - final - end
        end += step
        ends.append(end)
    return start, ends
