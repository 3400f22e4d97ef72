"""Which numbers may stand for the missing cells of a column: those of which every logarithm and root in the formula
can be taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

import numpy as np
import polars as pl

from qvr_core.data.formula import arithmetic, syntax
from qvr_core.data.formula.columns import Column, Table
from qvr_core.data.formula.problems import LeftOut
from qvr_core.data.formula.syntax import Binary, Call, Minus, Node, Number

_PARTIAL = {"log", "log2", "log10", "log1p", "sqrt", *(f"np.{name}" for name in ("log", "log1p", "sqrt"))}
_FAR = 1e6
"""How many times smaller and greater than the known values those may be that stand for missing ones."""


class Domain(Enum):
    """Where the values that stand for missing ones may lie."""

    ALL = "all"
    POSITIVE = "positive"
    NOT_NEGATIVE = "not negative"
    NONE = "none"
    """No half-line on which the formula is defined holds the known values."""


def domain(column: Column, sides: Iterable[Node], table: Table) -> Domain:
    """Where every part of the formula that takes the column is a number, given the other columns."""
    parts = [part for side in sides for part in _partial(side) if column.name in syntax.names(part)]
    if not parts:
        return Domain.ALL
    low, high = float(column.known.min()), float(column.known.max())
    if low < 0 or high <= 0:
        return Domain.NONE
    near = low or float(column.known[column.known > 0].min())
    tried = np.geomspace(near / _FAR, high * _FAR, 25)
    if low > 0 and _defined(parts, column, tried, table):
        return Domain.POSITIVE
    return Domain.NOT_NEGATIVE if _defined(parts, column, [0.0, *tried], table) else Domain.NONE


def _partial(node: Node, *, computed: bool = False) -> Iterator[Node]:
    """The parts of a formula that are no number for some of their operands; outside of calls `/` and `^` are about
    terms."""
    match node:
        case Call(name, arguments):
            if name in _PARTIAL:
                yield node
            for one in arguments:
                yield from _partial(one, computed=True)
        case Binary(operator, left, right):
            whole = isinstance(right, Number) and right.value == int(right.value) and right.value >= 0
            if computed and ((operator == "/" and syntax.names(right)) or (operator == "^" and not whole)):
                yield node
            yield from (*_partial(left, computed=computed), *_partial(right, computed=computed))
        case Minus(operand):
            yield from _partial(operand, computed=computed)
        case _:
            return


def _defined(parts: Iterable[Node], column: Column, tried: Iterable[float], table: Table) -> bool:
    others = {name: _filled(one, float(np.median(one.known))) for name, one in _numeric(table)}
    for value in tried:
        there = Table({**table.columns, **others, column.name: _filled(column, value, whole=True)}, table.rows)
        try:
            if any(np.isnan(arithmetic.values(part, there)).any() for part in parts):
                return False
        except LeftOut:
            return False
    return True


def _numeric(table: Table) -> Iterator[tuple[str, Column]]:
    return ((name, one) for name, one in table.columns.items() if one.kind == "number" and len(one.known))


def _filled(column: Column, value: float, *, whole: bool = False) -> Column:
    """The column with a value for its missing cells, or for all of them."""
    numbers = np.full(len(column.series), value) if whole else np.where(np.isnan(column.numbers), value, column.numbers)
    return Column(column.name, column.word, pl.Series(column.name, numbers))
