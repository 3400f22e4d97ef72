"""Counts behind a gate as arithmetic: `ZeroInflated(gate, …)` and `Hurdle(gate, …)` of families whose log P(T = 0) is
known."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from qvr_core.lowered.tails import call, log_none, number
from qvr_core.semantics.language.gates import GATE, HURDLE, gated_name
from qvr_core.semantics.types.model.expressions import Builtin, Constant, Expr
from qvr_core.semantics.types.model.families import FamilyDraw


@dataclass(frozen=True)
class Gated:
    """Counts behind a gate: 0 has the log probability `zero`, another count `more` and that of `counts`."""

    counts: FamilyDraw
    zero: Expr
    more: Expr


def is_gated(draw: FamilyDraw) -> bool:
    """Whether the counts are behind a gate."""
    return gated_name(draw.family) is not None


def gated(draw: FamilyDraw) -> Gated | None:
    """What a draw behind a gate is; None of any other, and where log P(T = 0) of its counts is not known."""
    named = gated_name(draw.family)
    if named is None:
        return None
    kind, family = named
    (key, gate), *args = sorted(draw.args, key=lambda arg: not arg[0].startswith(GATE.name))
    counts = replace(draw, family=family, args=tuple(args))
    none = log_none(counts)
    if none is None:
        return None
    if key == GATE.name:
        shut, open_ = call("log", gate), call("log1p", call("neg", gate))
    else:
        shut, open_ = call("logsigmoid", gate), call("logsigmoid", call("neg", gate))
    if kind == HURDLE:
        return Gated(counts, folded(shut), folded(call("sub", open_, call("log1mexp", none))))
    return Gated(counts, folded(call("logaddexp", shut, call("add", open_, none))), folded(open_))


def folded(expr: Expr) -> Expr:
    """The same with the numbers that are known of its parts: targets have functions of arrays, not of those."""
    if not isinstance(expr, Builtin):
        return expr
    args = tuple(folded(arg) for arg in expr.args)
    known = [float(arg.value) for arg in args if isinstance(arg, Constant) and not isinstance(arg.value, str)]
    function = _OF_NUMBERS.get(expr.function)
    if function is None or len(known) < len(args):
        return replace(expr, args=args)
    with suppress(ValueError, OverflowError, ZeroDivisionError):
        return number(function(*known), expr)
    return replace(expr, args=args)


def _log_add(a: float, b: float) -> float:
    high, low = max(a, b), min(a, b)
    return high + math.log1p(math.exp(low - high))


def _log_rest(a: float) -> float:
    return math.log(-math.expm1(a))


def _log_sigmoid(a: float) -> float:
    return -_log_add(0.0, -a)


_OF_NUMBERS: Mapping[str, Callable[..., float]] = {
    "neg": float.__neg__,
    "add": float.__add__,
    "sub": float.__sub__,
    "mul": float.__mul__,
    "div": float.__truediv__,
    "exp": math.exp,
    "log": math.log,
    "log1p": math.log1p,
    "lgamma": math.lgamma,
    "log1mexp": _log_rest,
    "logsigmoid": _log_sigmoid,
    "logaddexp": _log_add,
}
