"""Optimisers by their names in a run's settings, and how the learning rate falls."""

from __future__ import annotations

import math

from qvr_core.arrays.engine import arrays

OPTIMIZERS: dict[str, type[arrays.optim.Optimizer]] = {
    "adam": arrays.optim.Adam,
    "adamw": arrays.optim.AdamW,
    "sgd": arrays.optim.SGD,
    "rmsprop": arrays.optim.RMSprop,
    "adagrad": arrays.optim.Adagrad,
}
FUSED = (arrays.optim.Adam, arrays.optim.AdamW, arrays.optim.SGD, arrays.optim.Adagrad)
"""Those that torch runs as one operation over all parameters."""
END_SHARE = 0.01
"""Of the first learning rate, what is left of it at the end."""


def learning_rate(schedule: str, start: float, step: int, steps: int) -> float:
    """The learning rate of a step: a pure function, so that a resumed run has the same one."""
    done = step / max(steps - 1, 1)
    match schedule:
        case "linear":
            return start * (1 - (1 - END_SHARE) * done)
        case "cosine":
            return start * (END_SHARE + (1 - END_SHARE) * 0.5 * (1 + math.cos(math.pi * done)))
        case "exponential":
            return start * END_SHARE**done
        case _:
            return start
