"""The functions of the closed list as those of a namespace."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from qvr_core.arrays.eager import array
from qvr_core.arrays.graph import Array
from qvr_core.arrays.listing import FUNCTIONS
from qvr_core.operations.table import NODES

_NODES = frozenset(name for node in NODES.values() for name in node.torch)
NAMES = _NODES | frozenset((
    "add", "addcmul", "all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "argsort", "bincount", "bmm",
    "broadcast_to", "ceil", "chunk", "clamp", "clip", "copysign", "cumprod", "cumsum", "det", "detach", "diag_embed",
    "diagonal", "diff", "dot", "erfinv", "exp2", "flatten", "flip", "floor_divide", "fmod", "frac", "full_like",
    "gather", "hypot", "index_add", "index_select", "inverse", "isfinite", "isinf", "isnan", "isneginf", "isposinf",
    "kron", "log10", "log2", "log_softmax", "logcumsumexp", "logdet", "logit", "logsumexp", "masked_fill", "matmul",
    "max", "mean", "median", "min", "mm", "movedim", "mv", "nan_to_num", "nansum", "narrow", "nonzero", "norm",
    "normalize", "ones_like", "outer", "permute", "polygamma", "pow", "prod", "quantile", "reciprocal", "relu",
    "remainder", "reshape", "roll", "round", "rsqrt", "searchsorted", "select", "sinc", "softmax", "sort", "split",
    "squeeze", "std", "sub", "sum", "t", "take_along_dim", "tril", "triu", "trunc", "unbind", "unflatten", "unique",
    "unsqueeze", "var", "where", "xlogy", "zeros_like", "einsum", "cat", "concat", "stack", "broadcast_tensors",
    "repeat_interleave", "deg2rad", "rad2deg",
))  # fmt: skip
"""Functions of the namespace itself: those that are a node each, and those made of nodes."""


@cache
def function(name: str) -> Callable[..., Any]:
    """A function of the list, whose first argument may be a number, too."""
    rule = FUNCTIONS[name]

    def apply(*args: Any, **keywords: Any) -> Any:
        if args and not isinstance(args[0], Array | list | tuple | str):
            args = (array(args[0]), *args[1:])
        return rule(*args, **keywords)

    apply.__name__, apply.__doc__ = name, rule.__doc__
    return apply
