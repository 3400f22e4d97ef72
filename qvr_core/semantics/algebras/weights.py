"""The weights of a composition: how they combine, where they lie, and which of them laws are tried on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise

from qvr_core.operations.intervals import Interval
from qvr_core.semantics.algebras.enclosures import Enclosure, enclose
from qvr_core.semantics.algebras.numbers import Uncomputed, constants, formula, guarded
from qvr_core.semantics.language.compositions import COMPOSITIONS, UNREAD
from qvr_core.semantics.types.model.deductions import Composition
from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.syntax.immutable import immutable

FAR = 8.0
"""How far from 0 weights are tried that may be any number."""
_INSIDE = (0.5, 0.25, 0.75, 0.3, 0.9)
_ANYWHERE = (0.5, 2.0, -1.0, 0.25, 3.0, -2.5)
_NOT_NEGATIVE = (0.5, 2.0, 0.25, 3.0, 1.5)
MOST_POINTS = 20


@immutable
class Weights:
    """The weights of a composition.  `rules` are its formulas where a file declares them."""

    name: str
    times: Callable[[float, float], float]
    join: Callable[[Sequence[float]], float]
    unit: float
    zero: float
    low: float
    high: float
    whole: bool
    rules: tuple[tuple[str, tuple[str, ...], Expr], ...] = ()

    def holds(self, value: float) -> bool:
        """Whether a number is a weight."""
        if self.whole:
            return value in (0.0, 1.0)
        return value == self.zero or (math.isfinite(value) and self.low <= value <= self.high)

    @property
    def words(self) -> str:
        """What its weights are, in words."""
        if self.whole:
            return "0 and 1"
        if self.low == -math.inf:
            return "numbers"
        return "numbers from 0 on" if self.high == math.inf else f"numbers from {self.low:g} to {self.high:g}"

    @property
    def region(self) -> Interval:
        """Where weights are tried."""
        return Interval(max(self.low, -FAR), min(self.high, FAR))

    def points(self, near: Iterable[float] = ()) -> tuple[float, ...]:
        """The weights that laws are tried on, the plainest first; `near` are numbers that a formula is written with."""
        if self.whole:
            return (1.0, 0.0)
        usual = _INSIDE if self.high == 1.0 else _NOT_NEGATIVE if self.low == 0.0 else _ANYWHERE
        edges = sorted(set(near))
        beside = [*((one + two) / 2.0 for one, two in pairwise(edges)), *edges]
        beside += [edge + step for edge in edges for step in (1e-3, -1e-3)]
        # a large number that stands for infinity is no weight that anything is claimed of
        ends = [end for end in (self.unit, self.zero) if abs(end) <= FAR or math.isinf(end)]
        found = dict.fromkeys((*usual[:3], *ends, *(near for near in beside if abs(near) <= FAR), *usual[3:]))
        return tuple(value for value in found if self.holds(value))[:MOST_POINTS]

    def enclose_times(self, a: Interval, b: Interval) -> Interval:
        """Where products of weights lie."""
        return self._enclose("tensor_op", a, b)

    def enclose_join(self, weights: tuple[Interval, ...]) -> Interval:
        """Where joins of weights lie."""
        return self._enclose("join", weights)

    def _enclose(self, rule: str, *given: Enclosure) -> Interval:
        for name, parameters, body in self.rules:
            if name == rule:
                found = enclose(body, dict(zip(parameters, given, strict=True)))
                return found if isinstance(found, Interval) else Interval()
        # those of the language rise in each weight where weights are not negative, and all others are of + and order
        function = self.times if rule == "tensor_op" else _of_several(self.join)
        flat = [each for value in given for each in (value if isinstance(value, tuple) else (value,))]
        low, high = (guarded(function, *ends) for ends in ([e.low for e in flat], [e.high for e in flat]))
        if any(each.low < 0.0 for each in flat) and self.name == "real" and rule == "tensor_op":
            corners = [guarded(function, x, y) for x in _ends(flat[0]) for y in _ends(flat[1])]
            low, high = min(corners), max(corners)
        return Interval() if math.isnan(low) or math.isnan(high) else Interval(low, high)


def _ends(a: Interval) -> tuple[float, float]:
    return a.low, a.high


def _of_several(join: Callable[[Sequence[float]], float]) -> Callable[..., float]:
    return lambda *weights: join(weights)


def builtin_weights(name: str) -> Weights:
    """The weights of a composition that comes with the language."""
    found = COMPOSITIONS[name]
    ends = (found.unit, found.zero, found.low, found.high, found.whole)
    # a map may lead to infinity, and there is no sum of ∞ and −∞
    return Weights(name, partial(guarded, found.times), partial(guarded, found.join), *ends)


def declared_weights(composition: Composition) -> Weights:
    """The weights of a composition that a file defines: truth values where its unit is 1 and its zero 0, as the runtime
    has it, else any numbers.  Raises `Uncomputed` where a formula of it is not computed here."""
    made = {name: formula(*rule) for name, rule in composition.operations.items() if name not in UNREAD}
    times, join, unit, zero = made["tensor_op"], made["join"], made["unit"](), made["zero"]()
    truth = unit == 1.0 and zero == 0.0
    listed = tuple((name, *rule) for name, rule in composition.operations.items())

    def joined(weights: Sequence[float]) -> float:
        return join(tuple(weights))

    low, high = (0.0, 1.0) if truth else (-math.inf, math.inf)
    return Weights(composition.name, times, joined, unit, zero, low, high, whole=False, rules=listed)


def weights_of(name: str, composition: Composition | None) -> Weights | None:
    """The weights of a composition by its name and what the file declares under it; None where that is not known."""
    if composition is not None and composition.operations:
        wanted = ("tensor_op", "join", "unit", "zero")
        if any(rule not in composition.operations for rule in wanted):
            return None
        try:
            return declared_weights(composition)
        except Uncomputed:
            return None
    return builtin_weights(name) if name in COMPOSITIONS else None


def written_in(weights: Weights) -> frozenset[float]:
    """The numbers that the formulas of a composition are written with."""
    return frozenset[float]().union(*(constants(body) for _, _, body in weights.rules))
