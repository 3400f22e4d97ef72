"""`observe log(y)[i : Row] <- Normal(…)`: the family of y where a function of y has a family.

It is called as the other family in `Computed[…](…)`, which names the operations from y outwards; its parameters are
that family's, then one for each operation that takes a number of the program, `by 1`, `by 2`, …, as no program can
call one.  Its density is that of the function's value times |d value / dy|, so censoring and truncation are on y's own
scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from qvr_core.semantics.language.family import Family, Parameter, Support

COMPUTED = "Computed"


class Interval(NamedTuple):
    low: float
    high: float


_EVERYTHING = Interval(-math.inf, math.inf)


class Function(NamedTuple):
    """An increasing function of one number: where it is defined, where its values lie, and what is mapped to an end."""

    domain: Interval
    range: Interval
    inverse: Callable[[float], float]


def _exp(x: float) -> float:
    return math.inf if x > 709 else math.exp(x)


def _log(x: float) -> float:
    return -math.inf if x <= 0 else math.log(x)


def _square(x: float) -> float:
    return x * x


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + _exp(-x))


def _logit(x: float) -> float:
    return math.inf if x >= 1 else _log(x) - math.log1p(-x)


def _expm1(x: float) -> float:
    return _exp(x) - 1.0


def _log1p(x: float) -> float:
    return _log(x + 1.0)


_POSITIVE, _UNIT, _ABOVE = Interval(0.0, math.inf), Interval(0.0, 1.0), Interval(-1.0, math.inf)

FUNCTIONS: Mapping[str, Function] = {
    "log": Function(_POSITIVE, _EVERYTHING, _exp),
    "exp": Function(_EVERYTHING, _POSITIVE, _log),
    "sqrt": Function(_POSITIVE, _POSITIVE, _square),
    "logit": Function(_UNIT, _EVERYTHING, _sigmoid),
    "sigmoid": Function(_EVERYTHING, _UNIT, _logit),
    "log1p": Function(_ABOVE, _EVERYTHING, _expm1),
    "expm1": Function(_EVERYTHING, _ABOVE, _log1p),
}
ARITHMETIC = ("plus", "minus", "times", "over")
"""The operations that take a number of the program."""
NEGATE = "negate"


class Reach(NamedTuple):
    """What is known of the values of y without the program's numbers.

    `known` is false where these bound y, too; `narrow` is true where the family draws what no y is mapped to.
    """

    low: float
    high: float
    known: bool
    narrow: bool


def reach(operations: Sequence[str], low: float | None, high: float | None) -> Reach:
    """The y whose function lies between two numbers, ends that are None being infinite."""
    ends = Interval(-math.inf if low is None else low, math.inf if high is None else high)
    known, narrow = True, False
    for name in reversed(operations):
        if name == NEGATE:
            ends = Interval(-ends.high, -ends.low)
        elif name in ARITHMETIC:
            known = known and ends == _EVERYTHING
            ends = _EVERYTHING
        else:
            one = FUNCTIONS[name]
            narrow = narrow or ends.low < one.range.low or ends.high > one.range.high
            inside = Interval(max(ends.low, one.range.low), min(ends.high, one.range.high))
            ends = Interval(
                max(one.domain.low, one.inverse(inside.low)), min(one.domain.high, one.inverse(inside.high))
            )
    return Reach(ends.low, ends.high, known, narrow)


def computed_name(name: str) -> tuple[tuple[str, ...], str] | None:
    """The operations and the family of a computed outcome's family; None of any other name."""
    if not name.startswith(f"{COMPUTED}[") or not name.endswith(")"):
        return None
    operations, _, inner = name[len(COMPUTED) + 1 : -1].partition("](")
    return tuple(operations.split(",")), inner


def name_of(operations: Sequence[str], family: str) -> str:
    """What the family of a computed outcome is called."""
    return f"{COMPUTED}[{','.join(operations)}]({family})"


def outcome_text(operations: Sequence[str], name: str) -> str:
    """What is observed, with dots for the program's numbers: `(y - …) / …`."""
    signs = {"plus": "+", "minus": "-", "times": "*", "over": "/"}
    for at, operation in enumerate(operations):
        if operation in signs:
            name = f"({name})" if at and operations[at - 1] in signs else name
            name = f"{name} {signs[operation]} …"
        elif operation == NEGATE:
            name = f"-({name})" if " " in name else f"-{name}"
        else:
            name = f"{operation}({name})"
    return name


def drawn_words(family: str, name: str) -> str:
    """What a value is drawn from, `Normal` or `Normal, of log(y)`, from how its family is called and its own name."""
    found = computed_name(family)
    return family if found is None else f"{found[1]}, of {outcome_text(found[0], name)}"


def arguments(operations: Sequence[str]) -> tuple[Parameter, ...]:
    """The parameters of the operations that take a number, in their order."""
    count = sum(name in ARITHMETIC for name in operations)
    return tuple(Parameter(f"by {at + 1}", raw="none") for at in range(count))


def computed(operations: Sequence[str], family: Family) -> Family:
    """The facts of y where a function of it is from `family`."""
    own = reach(operations, family.support.low, family.support.high)
    low, high = (end if math.isfinite(end) else None for end in (own.low, own.high))
    return replace(
        family,
        name=name_of(operations, family.name),
        parameters=(*family.parameters, *arguments(operations)),
        support=Support("real", low, high),
        noise="uniform" if own.narrow else family.noise,
        summary=f"what a function of is from {family.name}",
        bounded_by=None,
        above=None,
        counts_to=None,
        head_options={},
        common=False,
        noncentred=False,
        step_only=True,
        open=True,
    )
