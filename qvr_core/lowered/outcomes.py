"""`observe log(y)[i : Row] <- Normal(…)`: the density of the function's value, and log |d value / dy| beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial, reduce

from qvr_core.lowered.factors import Factor
from qvr_core.lowered.tails import call
from qvr_core.semantics.language.outcomes import ARITHMETIC, NEGATE, computed_name
from qvr_core.semantics.types.model.expressions import Constant, Expr

_SLOPES: Mapping[str, Callable[[Expr], Expr]] = {
    "log": lambda x: call("neg", call("log", x)),
    "exp": lambda x: x,
    "sqrt": lambda x: call("sub", -math.log(2.0), call("mul", 0.5, call("log", x))),
    "logit": lambda x: call("neg", call("add", call("log", x), call("log1p", call("neg", x)))),
    "sigmoid": lambda x: call("neg", call("add", call("softplus", x), call("softplus", call("neg", x)))),
    "log1p": lambda x: call("neg", call("log1p", x)),
    "expm1": lambda x: x,
}
"""log |f'(x)|."""
_SIGNS = {"plus": "add", "minus": "sub", "times": "mul", "over": "div"}


def imaged(factor: Factor) -> tuple[Factor, Expr | None]:
    """The factor of the function's value, and the logarithm of the function's slope, which its density has more; any
    other factor is its own.  A falling function swaps the sides that are censored."""
    known = computed_name(factor.draw.family)
    if known is None:
        return factor, None
    operations, family = known
    given = dict(factor.draw.args)
    numbers = iter([given.pop(name) for name in list(given) if name.startswith("by ")])
    value, slopes, falls = factor.value, list[Expr](), False
    for operation in operations:
        if operation == NEGATE:
            value, falls = call("neg", value), not falls
        elif operation in ARITHMETIC:
            by = next(numbers)
            if operation in ("times", "over"):
                slope = call("log", call("abs", by))
                slopes.append(slope if operation == "times" else call("neg", slope))
                falls ^= isinstance(by, Constant) and not isinstance(by.value, str) and by.value < 0
            value = call(_SIGNS[operation], value, by)
        else:
            slopes.append(_SLOPES[operation](value))
            value = call(operation, value)
    swapped = {"right_censored": "left_censored", "left_censored": "right_censored"} if falls else {}
    limits = tuple((swapped.get(key, key), one) for key, one in factor.limits)
    draw = replace(factor.draw, family=family, args=tuple(given.items()))
    more = reduce(partial(call, "add"), slopes) if slopes else None
    return replace(factor, draw=draw, value=value, limits=limits), more


def unsaid(factor: Factor) -> str | None:
    """What of a computed outcome's options is not said here."""
    known = computed_name(factor.draw.family)
    if known is None or not factor.limits:
        return None
    if any(key not in ("right_censored", "left_censored") for key, _ in factor.limits):
        return "intervals and truncation"
    signed = {name for name, one in factor.draw.args if name.startswith("by ") and not isinstance(one, Constant)}
    return "censoring" if signed and {"times", "over"} & {*known[0]} else None
