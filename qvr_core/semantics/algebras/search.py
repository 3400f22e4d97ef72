"""The search for weights at which a law does not hold: on a grid, then in the boxes whose two sides lie apart.

Its work is counted: so many points, so many boxes, whatever the formulas are.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from itertools import product

from qvr_core.operations.intervals import Interval
from qvr_core.syntax.immutable import immutable

MOST_TRIALS = 350
"""Choices of weights that one law is tried on: so many weights, so many pairs, triples of the first few."""
MOST_BOXES = 150
"""Boxes that a law of one weight is searched in; of two and three as many less."""
RELATIVE, ABSOLUTE = 1e-6, 1e-9
"""How far two sides may be apart by rounding."""

Side = Callable[..., float]
Box = tuple[Interval, ...]


@immutable
class Law:
    """Two sides that must be equal for all weights; `enclosures` say where each lies in a box, where that is known."""

    arity: int
    left: Side
    right: Side
    enclosures: tuple[Callable[..., Interval], Callable[..., Interval]] | None = None


Enclosures1 = tuple[Callable[[Interval], Interval], Callable[[Interval], Interval]]
Enclosures2 = tuple[Callable[[Interval, Interval], Interval], Callable[[Interval, Interval], Interval]]
Enclosures3 = tuple[
    Callable[[Interval, Interval, Interval], Interval], Callable[[Interval, Interval, Interval], Interval]
]


def of_one(left: Callable[[float], float], right: Callable[[float], float], enclosures: Enclosures1) -> Law:
    """A law of one weight."""
    return Law(1, left, right, enclosures)


def of_two(
    left: Callable[[float, float], float], right: Callable[[float, float], float], enclosures: Enclosures2 | None = None
) -> Law:
    """A law of two weights."""
    return Law(2, left, right, enclosures)


def of_three(
    left: Callable[[float, float, float], float], right: Callable[[float, float, float], float], enclosures: Enclosures3
) -> Law:
    """A law of three weights."""
    return Law(3, left, right, enclosures)


@immutable
class Counterexample:
    """The weights at which two sides differ, and what they are there."""

    weights: tuple[float, ...]
    left: float
    right: float


def agree(one: float, other: float) -> bool:
    """Whether two results are the same but for rounding; what neither side has is the same."""
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return one == other or math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def counterexample(law: Law, points: Sequence[float], region: Interval | None) -> Counterexample | None:
    """Weights at which a law does not hold; `region` None where the points are all weights that there are."""
    for weights in product(points[: int(MOST_TRIALS ** (1.0 / law.arity))], repeat=law.arity):
        found = _tried(law, weights)
        if found is not None:
            return found
    return None if region is None or law.enclosures is None else _in_boxes(law, law.enclosures, region)


def _tried(law: Law, weights: tuple[float, ...]) -> Counterexample | None:
    left, right = law.left(*weights), law.right(*weights)
    return None if agree(left, right) else Counterexample(weights, left, right)


def _in_boxes(
    law: Law, enclosures: tuple[Callable[..., Interval], Callable[..., Interval]], region: Interval
) -> Counterexample | None:
    def gap(box: Box) -> float:
        left, right = (enclose(*box) for enclose in enclosures)
        return max(_apart(left.low, right.low), _apart(left.high, right.high))

    first = (region,) * law.arity
    boxes = [(-gap(first), 0, first)]
    made = 1
    for _ in range(MOST_BOXES // law.arity**2):
        apart, _, box = heapq.heappop(boxes)
        if -apart <= ABSOLUTE:
            return None
        middle = tuple(_plain((side.low + side.high) / 2.0, side) for side in box)
        found = _tried(law, middle)
        if found is not None:
            return found
        for half in _halves(box):
            heapq.heappush(boxes, (-gap(half), made, half))
            made += 1
    return None


def _apart(one: float, other: float) -> float:
    return 0.0 if agree(one, other) else math.inf if math.isinf(one) or math.isinf(other) else abs(one - other)


def _plain(value: float, side: Interval) -> float:
    """A number with few digits near the middle of an interval."""
    for digits in range(8):
        short = round(value, digits)
        if side.low < short < side.high:
            return short
    return value


def _halves(box: Box) -> tuple[Box, Box]:
    at = max(range(len(box)), key=lambda index: box[index].high - box[index].low)
    middle = (box[at].low + box[at].high) / 2.0
    low, high = Interval(box[at].low, middle), Interval(middle, box[at].high)
    return (*box[:at], low, *box[at + 1 :]), (*box[:at], high, *box[at + 1 :])


def outside(
    function: Callable[[float], float],
    enclose: Callable[[Interval], Interval],
    holds: Callable[[float], bool],
    within: Interval,
    points: Sequence[float],
    region: Interval | None,
) -> tuple[float, float] | None:
    """A weight that a function takes outside of `within`, and where to; None where none is found."""
    for point in points:
        value = function(point)
        if not holds(value):
            return point, value
    if region is None:
        return None

    def beyond(box: Interval) -> float:
        found = enclose(box)
        return max(within.low - found.low, found.high - within.high, 0.0)

    boxes = [(-beyond(region), 0, region)]
    for made in range(MOST_BOXES):
        apart, _, box = heapq.heappop(boxes)
        if -apart <= ABSOLUTE:
            return None  # no value lies outside
        middle = _plain((box.low + box.high) / 2.0, box)
        for point in (middle, box.low, box.high):
            value = function(point)
            if not holds(value):
                return point, value
        for order, (half,) in enumerate(_halves((box,))):
            heapq.heappush(boxes, (-beyond(half), 2 * made + order + 1, half))
    return None
