"""Hierarchical centring: groups whose levels the data tell far better than they differ are drawn about the intercept,
not as deviations from it.

Where each level is known by itself, the intercept and the deviations from it can only move together, against each
other, which is slow; the level itself moves freely (Gelfand, Sahu and Carlin 1995).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qvr_core.data.formula import arithmetic
from qvr_core.data.formula.columns import Column, Table
from qvr_core.data.formula.problems import LeftOut
from qvr_core.data.formula.syntax import Node
from qvr_core.data.formula.terms import Sum

Values = NDArray[np.float64]
FAR = 8.0
"""Standard errors of a level that the levels are apart."""


def centred_group(right: Sum, table: Table, outcome: Column, trials: Node) -> frozenset[str]:
    """The column of the one group of a sum that is drawn about the intercept; else none."""
    if len(right.groups) != 1 or len(right.groups[0].by) != 1:
        return frozenset()
    column = table.columns.get(right.groups[0].by[0])
    hits = outcome.numbers
    try:
        many = np.broadcast_to(arithmetic.values(trials, table), hits.shape)
        offset = sum((arithmetic.values(node, table) for node in right.offsets), np.zeros(hits.shape))
    except LeftOut:
        return frozenset()
    return frozenset((column.name,)) if column is not None and informative(column, hits, many, offset) else frozenset()


def informative(column: Column, hits: Values, trials: Values, offset: Values) -> bool:
    """Whether data say the log odds of each level of a column, less its `offset`, to an eighth of their sd.

    `hits` of `trials` are those of each row, (rows,), NaN where one is missing.
    """
    numbers = {label: number for number, label in enumerate(column.series.unique().to_list())}
    level = np.array([numbers[label] for label in column.series.to_list()])
    known = np.isfinite(hits + trials + offset)

    def added_up(values: Values) -> Values:
        return np.bincount(level[known], values[known], len(numbers)).astype(np.float64)

    rows, count = added_up(np.ones(len(level))), added_up(trials)
    if len(numbers) < 3 or (rows == 0).any():
        return False
    share = (added_up(hits) + 0.5) / (count + 1.0)
    log_odds = np.log(share) - np.log1p(-share) - added_up(offset) / rows
    errors = 1.0 / np.sqrt(count * share * (1.0 - share))
    return float(np.std(log_odds, ddof=1)) > FAR * float(errors.max())
