"""Censoring and truncation as arithmetic: where an element is only known to lie somewhere, its density is the
probability of that; truncation divides by the probability of what can be seen.

Of a discrete family both ends of `T ≥ t` and of the bounds count, so the open end below t is t − 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qvr_core.lowered.factors import Factor
from qvr_core.lowered.tails import Tails, call, number, tails
from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.types.model.expressions import Constant, Expr


@dataclass(frozen=True)
class Case:
    """Where `when` holds of an element, `density` is its log density."""

    when: Expr
    density: Expr


@dataclass(frozen=True)
class Limited:
    """The cases, of which a later one goes before an earlier one, and truncation: an element outside `within` has
    density 0, and `mass` is the logarithm of the probability of all others."""

    cases: tuple[Case, ...] = ()
    within: Expr | None = None
    mass: Expr | None = None


def limited(factor: Factor) -> Limited | None:
    """What the limits of a factor say; None where the tails of its family are not known."""
    try:
        return _limited(factor)
    except _NoTails:
        return None


class _NoTails(Exception):
    """The tails of a family are not known."""


def _limited(factor: Factor) -> Limited:
    given = dict(factor.limits)
    value = factor.value
    support = facts_of_draw(factor.draw).support
    low = _bound(given.get("truncate_lower"), lambda end: support.low is not None and end <= support.low)
    high = _bound(given.get("truncate_upper"), lambda end: support.high is not None and end >= support.high)
    # beyond its support a family has no tails
    if support.low is not None and low is not None and not isinstance(low, Constant):
        low = call("maximum", low, support.low)
    if support.high is not None and high is not None and not isinstance(high, Constant):
        high = call("minimum", high, support.high)
    cases: list[Case] = []
    if (flag := given.get("right_censored")) is not None:
        cases.append(Case(flag, _mass(factor, _below(factor, value), high)))
    if (flag := given.get("left_censored")) is not None:
        cases.append(Case(flag, _mass(factor, None if low is None else _below(factor, low), value)))
    if (end := given.get("interval")) is not None:
        top = end if high is None else call("minimum", end, high)
        cases.append(Case(call("ne", end, value), _mass(factor, value, top)))
    if low is None and high is None:
        return Limited(tuple(cases))
    ends = [call(sign, value, end) for sign, end in (("ge", low), ("le", high)) if end is not None]
    within = ends[0] if len(ends) == 1 else call("logical_and", *ends)
    mass = _mass(factor, None if low is None else _below(factor, low), high)
    return Limited(tuple(cases), within, mass)


def _bound(bound: Expr | None, idle: Callable[[float], bool]) -> Expr | None:
    """A bound; None of a number that leaves out nothing of the family's support."""
    if not isinstance(bound, Constant) or isinstance(bound.value, str):
        return bound
    return None if idle(bound.value) else bound


def _below(factor: Factor, value: Expr) -> Expr:
    """The open end below which nothing of T ≥ value lies."""
    if not facts_of_draw(factor.draw).discrete:
        return value
    if isinstance(value, Constant) and not isinstance(value.value, str):
        return number(-(-value.value // 1) - 1.0, value)
    return call("sub", value if value is factor.value else call("ceil", value), 1)


def _mass(factor: Factor, low: Expr | None, high: Expr | None) -> Expr:
    """log P(low < T ≤ high); None leaves a side open."""
    if low is None:
        return number(0.0, factor.value) if high is None else _tails(factor, high).below
    if high is None:
        return _tails(factor, low).above
    ends = _tails(factor, low), _tails(factor, high)
    return call("log_between", ends[0].below, ends[0].above, ends[1].below, ends[1].above)


def _tails(factor: Factor, x: Expr) -> Tails:
    found = tails(factor.draw, x)
    if found is None:
        raise _NoTails
    return found
