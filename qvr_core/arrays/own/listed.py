"""The functions of the closed list as those of a namespace."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from qvr_core.arrays.eager import array
from qvr_core.arrays.graph import Array
from qvr_core.arrays.listing import FUNCTIONS

NAMES = frozenset((
    "abs", "acos", "acosh", "add", "addcmul", "all", "amax", "amin", "aminmax", "any", "argmax", "argmin",
    "argsort", "asin", "asinh", "atan", "atan2", "atanh", "bincount", "bitwise_and", "bitwise_or", "bmm",
    "broadcast_to", "ceil", "chunk", "clamp", "clip", "copysign", "cos", "cosh", "cumprod", "cumsum", "det",
    "detach", "diag_embed", "diagonal", "diff", "digamma", "div", "dot", "eq", "erf", "erfc", "erfinv", "exp",
    "exp2", "expm1", "flatten", "flip", "floor", "floor_divide", "fmod", "frac", "full_like", "gather", "ge", "gt",
    "hypot", "i0e", "index_add", "index_select", "inverse", "isfinite", "isinf", "isnan", "isneginf", "isposinf",
    "kron", "le", "lgamma", "log", "log10", "log1p", "log2", "log_ndtr", "log_softmax", "logaddexp", "logcumsumexp",
    "logdet", "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "logsumexp", "lt", "masked_fill",
    "matmul", "max", "maximum", "mean", "median", "min", "minimum", "mm", "movedim", "mul", "mv", "nan_to_num",
    "nansum", "narrow", "ne", "neg", "nonzero", "norm", "normalize", "ones_like", "outer", "permute", "polygamma",
    "pow", "prod", "quantile", "reciprocal", "relu", "remainder", "reshape", "roll", "round", "rsqrt",
    "searchsorted", "select", "sigmoid", "sign", "sin", "sinc", "sinh", "softmax", "sort", "split", "sqrt",
    "square", "squeeze", "std", "sub", "sum", "t", "take_along_dim", "tan", "tanh", "tril", "triu", "trunc",
    "unbind", "unflatten", "unique", "unsqueeze", "var", "where", "xlogy", "zeros_like", "einsum", "cat", "concat",
    "stack", "broadcast_tensors", "repeat_interleave", "deg2rad", "rad2deg",
))  # fmt: skip
"""Functions of the namespace itself."""


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
