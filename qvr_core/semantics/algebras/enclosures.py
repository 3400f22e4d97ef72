"""Formulas of compositions and transformations on intervals: where all of their values lie.

What is not known is anything, so that a search looks there rather than leave it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from qvr_core.operations import intervals as i
from qvr_core.operations.intervals import ANYTHING, Interval
from qvr_core.operations.table import OPERATIONS
from qvr_core.semantics.language.builtins import canonical
from qvr_core.semantics.types.model.expressions import Bound, Builtin, Constant, Expr

Enclosure = Interval | tuple[Interval, ...]

_TRUE, _FALSE = Interval(1.0, 1.0), Interval(0.0, 0.0)


def enclose(expr: Expr, names: Mapping[str, Enclosure]) -> Enclosure:
    """Where the values of a formula lie, for names that lie in intervals."""
    match expr:
        case Constant(value=value) if not isinstance(value, str):
            return Interval(float(value), float(value))
        case Bound(name=name):
            return names.get(name, ANYTHING)
        case Builtin(function=function, args=args, keywords=()):
            return _call(canonical(function), [enclose(arg, names) for arg in args])
        case _:
            return ANYTHING


def _call(name: str, given: Sequence[Enclosure]) -> Enclosure:
    if name in _REDUCTIONS and len(given) == 1:
        return reduce(_REDUCTIONS[name], given[0]) if isinstance(given[0], tuple) else given[0]
    lengths = {len(value) for value in given if isinstance(value, tuple)}
    if len(lengths) > 1:
        return ANYTHING
    if lengths:
        rows = [value if isinstance(value, tuple) else (value,) * max(lengths) for value in given]
        return tuple(_pointwise(name, row) for row in zip(*rows, strict=True))
    return _pointwise(name, [value for value in given if isinstance(value, Interval)])


_REDUCTIONS: Mapping[str, Callable[[Interval, Interval], Interval]] = {
    "sum": i.add, "prod": i.multiply, "max": i.larger, "min": i.smaller, "amax": i.larger, "amin": i.smaller,
}  # fmt: skip


def _pointwise(name: str, given: Sequence[Interval]) -> Interval:
    if name in _COMPARISONS and len(given) == 2:
        return _COMPARISONS[name](*given)
    if name == "where" and len(given) == 3:
        condition, a, b = given
        if condition.low == condition.high:
            return a if condition.low else b
        return i.joined((a, b))
    operation = OPERATIONS.get(name)
    if operation is None:
        return ANYTHING
    if operation.interval_of_two is not None and len(given) == 2:
        return operation.interval_of_two(*given)
    if isinstance(operation.interval, Interval):
        return operation.interval
    return ANYTHING if operation.interval is None or len(given) != 1 else operation.interval(given[0])


def _less(a: Interval, b: Interval) -> Interval:
    return _TRUE if a.high < b.low else _FALSE if a.low >= b.high else i.TRUTH


def _at_most(a: Interval, b: Interval) -> Interval:
    return _TRUE if a.high <= b.low else _FALSE if a.low > b.high else i.TRUTH


def _equal(a: Interval, b: Interval) -> Interval:
    if a.low == a.high == b.low == b.high:
        return _TRUE
    return _FALSE if a.high < b.low or b.high < a.low else i.TRUTH


def _not(a: Interval) -> Interval:
    return Interval(1.0 - a.high, 1.0 - a.low)


_COMPARISONS: Mapping[str, Callable[[Interval, Interval], Interval]] = {
    "lt": _less,
    "gt": lambda a, b: _less(b, a),
    "le": _at_most,
    "ge": lambda a, b: _at_most(b, a),
    "eq": _equal,
    "ne": lambda a, b: _not(_equal(a, b)),
}
