"""Optimisers by their names in a run's settings, and how the learning rate falls."""

from __future__ import annotations

import math
from typing import Any

from qvr_core.arrays.engine import TORCH, arrays

FUSED = ("adam", "adamw", "sgd", "adagrad")
"""Those that torch runs as one operation over all parameters."""
GUARDED = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
"""Methods that torch keeps from its compiler, by importing it."""
END_SHARE = 0.01
"""Of the first learning rate, what is left of it at the end."""


def _uncompiled(kind: type[arrays.optim.Optimizer]) -> type[arrays.optim.Optimizer]:
    """An optimiser of torch whose methods do not import `torch._dynamo`.

    No step of a run is compiled by it, and its import takes as long as that of torch itself.  What torch has wrapped
    is below its wrapper, and a step computes without gradients, as in there.
    """
    own: dict[str, Any] = {name: _unwrapped(kind, name) for name in GUARDED}
    own["step"] = arrays.no_grad()(_unwrapped(kind, "step"))
    return type(kind.__name__, (kind,), {**own, "updates_as": kind, "__doc__": kind.__doc__})


def _unwrapped(kind: type[arrays.optim.Optimizer], name: str) -> Any:
    method = getattr(kind, name)
    return getattr(method, "__wrapped__", method)


OPTIMIZERS: dict[str, type[arrays.optim.Optimizer]] = {
    name: _uncompiled(kind) if TORCH else kind
    for name, kind in {
        "adam": arrays.optim.Adam,
        "adamw": arrays.optim.AdamW,
        "sgd": arrays.optim.SGD,
        "rmsprop": arrays.optim.RMSprop,
        "adagrad": arrays.optim.Adagrad,
    }.items()
}


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
