"""Intervals of values: what is known of where a number lies, and what arithmetic makes of that.

Bounds are always sound: no value lies outside.  An interval is *exact* where draws come as near as one likes to both of
its ends, whatever everything outside of `sources` is; only then may its ends be blamed for what they could be.  So a
difference of two draws is exact, and that of a value with itself is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from qvr_core.syntax.immutable import immutable

INFINITE = math.inf
MOST_SOURCES = 16
"""Of more draws than these it is no longer known which they are."""


@immutable
class Interval:
    """Numbers from `low` to `high`; `whole` ones only.  `sources` are the draws that the value is computed from."""

    low: float = -INFINITE
    high: float = INFINITE
    whole: bool = False
    exact: bool = False
    sources: frozenset[str] = frozenset()

    @property
    def free(self) -> bool:
        """True for any number whatsoever, each of which may come up."""
        return self.exact and self.low == -INFINITE and self.high == INFINITE

    @property
    def known(self) -> bool:
        return self.exact or self.low > -INFINITE or self.high < INFINITE


_LARGEST = 1e300
ALL_SOURCES = frozenset("*")
"""Any draw may be among them."""
ANYTHING = Interval()
"""What nothing is known of: data, and what could not be typed."""
POSITIVE, UNIT = Interval(0.0), Interval(0.0, 1.0)
TRUTH = Interval(0.0, 1.0, whole=True)
COUNT = Interval(0.0, whole=True)


def exactly(value: float) -> Interval:
    """A number that is written out."""
    if not -_LARGEST < value < _LARGEST:
        return ANYTHING
    return Interval(float(value), float(value), float(value).is_integer(), True)


def every_source(intervals: Iterable[Interval]) -> frozenset[str]:
    found = frozenset[str]().union(*(item.sources for item in intervals))
    return found if len(found) <= MOST_SOURCES else ALL_SOURCES


def joined(intervals: Iterable[Interval]) -> Interval:
    """The least interval that holds all of these."""
    items = list(intervals)
    if not items:
        return ANYTHING
    low, high = min(item.low for item in items), max(item.high for item in items)
    whole, exact = all(item.whole for item in items), all(item.exact for item in items)
    return Interval(low, high, whole, exact, every_source(items))


def _moved(a: Interval, low: float, high: float, *, whole: bool = False) -> Interval:
    """What a function makes of one interval; nothing is known where it left the numbers."""
    if not (low < INFINITE and high > -INFINITE):
        return replace(ANYTHING, sources=a.sources)
    return Interval(low, high, whole, a.exact, a.sources)


def _both(a: Interval, b: Interval, low: float, high: float) -> Interval:
    """The interval of an operation that is monotone in either operand."""
    joint = Interval(exact=a.exact and b.exact and _apart(a, b), sources=every_source((a, b)))
    return _moved(joint, low, high, whole=a.whole and b.whole)


def _apart(a: Interval, b: Interval) -> bool:
    if ALL_SOURCES in (a.sources, b.sources):
        return not (a.sources and b.sources)
    return a.sources.isdisjoint(b.sources)


def _line(a: Interval, b: Interval, *, whole: bool = False) -> Interval | None:
    """All numbers, where `a` alone may take the result anywhere."""
    if a.free and _apart(a, b):
        return Interval(whole=whole, exact=True, sources=every_source((a, b)))
    return None


# ---------------------------------------------------------------- operators


def add(a: Interval, b: Interval) -> Interval:
    """a + b; any number plus something else is any number."""
    whole = a.whole and b.whole
    return _line(a, b, whole=whole) or _line(b, a, whole=whole) or _both(a, b, a.low + b.low, a.high + b.high)


def negative(a: Interval) -> Interval:
    return replace(a, low=-a.high, high=-a.low)


def subtract(a: Interval, b: Interval) -> Interval:
    return add(a, negative(b))


def multiply(a: Interval, b: Interval) -> Interval:
    """a · b; any number times something else, be it not zero, is any number."""
    if (a.low, a.high) != (0, 0) != (b.low, b.high) and (line := _line(a, b) or _line(b, a)):
        return line
    ends = [_times(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return _both(a, b, min(ends), max(ends))


def _times(x: float, y: float) -> float:
    return 0.0 if x == 0 or y == 0 else x * y


def reciprocal(a: Interval) -> Interval:
    """1 / a; across zero nothing is known."""
    if a.low < 0 < a.high or a.low == a.high == 0:
        return replace(ANYTHING, sources=a.sources)
    return _moved(a, 1 / a.high if a.high else -INFINITE, 1 / a.low if a.low else INFINITE)


def divide(a: Interval, b: Interval) -> Interval:
    return _line(a, b) or multiply(replace(a, whole=False), reciprocal(b))


def power(a: Interval, b: Interval) -> Interval:
    """a ^ b."""
    if b.low == b.high and not b.sources:
        return _constant_power(a, b.low)
    return POSITIVE if a.low >= 0 else ANYTHING


def square(a: Interval) -> Interval:
    return _constant_power(a, 2.0)


def _constant_power(a: Interval, n: float) -> Interval:
    if n < 0:
        return reciprocal(_constant_power(a, -n))
    if n.is_integer() and n % 2 == 0:
        return even(a, lambda x: _raised(x, n))
    if a.low < 0 and not n.is_integer():
        return POSITIVE
    return _moved(a, _raised(a.low, n), _raised(a.high, n), whole=a.whole and n.is_integer())


def _raised(x: float, n: float) -> float:
    try:
        return math.pow(x, n)
    except OverflowError:
        return INFINITE if x > 0 or n % 2 == 0 else -INFINITE


def even(a: Interval, function: Callable[[float], float]) -> Interval:
    """A function that falls to its least value at 0 and rises from there: `abs`, squares."""
    ends = sorted((function(a.low), function(a.high)))
    return _moved(a, function(0.0) if a.low < 0 < a.high else ends[0], ends[1], whole=a.whole)


def monotone(a: Interval, function: Callable[[float], float]) -> Interval:
    """What a rising function that is defined everywhere, infinity included, makes of an interval."""
    return _moved(a, function(a.low), function(a.high))


def larger(a: Interval, b: Interval) -> Interval:
    return _both(a, b, max(a.low, b.low), max(a.high, b.high))


def smaller(a: Interval, b: Interval) -> Interval:
    return _both(a, b, min(a.low, b.low), min(a.high, b.high))


# ---------------------------------------------------------------- many values at once


def total(a: Interval) -> Interval:
    """A sum of one or more such values, each its own draw."""
    low = a.low if a.low >= 0 else -INFINITE
    high = a.high if a.high <= 0 else INFINITE
    return Interval(low, high, a.whole, a.exact and {a.low, a.high} <= {-INFINITE, 0, INFINITE}, a.sources)


def inner_product(a: Interval, b: Interval) -> Interval:
    return total(multiply(a, b))


def repeated_product(a: Interval) -> Interval:
    """A product of one or more such values."""
    if a.low < 0:
        return ANYTHING
    return Interval(a.low if a.low >= 1 else 0.0, a.high if a.high <= 1 else INFINITE, a.whole)


# ---------------------------------------------------------------- functions of one number


def rising(function: Callable[[float], float]) -> Callable[[Interval], Interval]:
    """Of a function that never falls."""
    return lambda a: monotone(a, function)


def limited(low: float, high: float) -> Callable[[Interval], Interval]:
    """Of a function whose values lie between two numbers, whatever its argument."""
    return lambda a: Interval(low, high, exact=a.free, sources=a.sources)


def same(a: Interval) -> Interval:
    """Of what gives the numbers that it is given."""
    return a


def with_zeros(a: Interval) -> Interval:
    """Of what gives the numbers that it is given, and zeros beside them."""
    return joined((a, exactly(0)))


def root(a: Interval) -> Interval:
    """Of the square root."""
    return monotone(a, math.sqrt) if a.low >= 0 else POSITIVE


def logarithm(a: Interval) -> Interval:
    """Of the natural logarithm."""
    return monotone(a, lambda x: math.log(x) if x > 0 else -INFINITE) if a.low >= 0 else ANYTHING


def logarithm_to(base: float) -> Callable[[Interval], Interval]:
    """Of the logarithm to a base."""
    return lambda a: ANYTHING if a.low < 0 else multiply(logarithm(a), exactly(1 / math.log(base)))


def exp(x: float) -> float:
    """The exponential, infinite where it is too large for a number."""
    return math.exp(x) if x < 700 else INFINITE


def sigmoid(x: float) -> float:
    """1 / (1 + exp(−x))."""
    return 1 / (1 + exp(-x))


def softplus(x: float) -> float:
    """log(1 + exp(x))."""
    return max(x, 0.0) + math.log1p(exp(-abs(x)))
