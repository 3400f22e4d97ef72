"""torch.nn.functional, as far as programs use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qvr_core.arrays.listing import FUNCTIONS

NAMES = frozenset((
    "celu", "cross_entropy", "elu", "embedding", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
    "layer_norm", "leaky_relu", "linear", "logsigmoid", "mish", "normalize", "one_hot", "pad", "relu", "relu6", "selu",
    "sigmoid", "silu", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "log_softmax",
))  # fmt: skip


def __getattr__(name: str) -> Callable[..., Any]:
    if name in NAMES:
        return FUNCTIONS[name]
    raise AttributeError(name)
