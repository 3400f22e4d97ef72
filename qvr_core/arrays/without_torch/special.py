"""torch.special, as far as programs use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qvr_core.arrays.listing import FUNCTIONS

NAMES = frozenset(
    ("ndtr", "ndtri", "log_ndtr", "i0e", "i1e", "expit", "logit", "xlogy", "log_softmax", "logsumexp", "softmax")
)


def __getattr__(name: str) -> Callable[..., Any]:
    if name in NAMES:
        return FUNCTIONS.get(f"special_{name}") or FUNCTIONS[name]
    raise AttributeError(name)
