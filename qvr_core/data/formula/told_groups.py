"""Groups whose levels the data tell far better than they differ: drawn about the intercept, not as deviations from it.

Where each level is known by itself, the intercept and the deviations from it can only move together, against each
other, which is slow; the level itself moves freely (Gelfand, Sahu and Carlin 1995, hierarchical centring).
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


def told_group(right: Sum, table: Table, outcome: Column, trials: Node) -> frozenset[str]:
    """The column of the one group of a sum, where its levels are told by themselves; else none."""
    if len(right.groups) != 1 or len(right.groups[0].by) != 1:
        return frozenset()
    column = table.columns.get(right.groups[0].by[0])
    hits = outcome.numbers
    try:
        many = np.broadcast_to(arithmetic.values(trials, table), hits.shape)
        offset = sum((arithmetic.values(node, table) for node in right.offsets), np.zeros(hits.shape))
    except LeftOut:
        return frozenset()
    return frozenset((column.name,)) if column is not None and told(column, hits, many, offset) else frozenset()


def told(column: Column, hits: Values, trials: Values, offset: Values) -> bool:
    """Whether the log odds of each level of a column, less its `offset`, are known to an eighth of their sd.

    `hits` of `trials` are those of each row, (rows,), NaN where one is missing.
    """
    labels = column.series.to_list()
    levels, errors = list[float](), list[float]()
    for label in dict.fromkeys(labels):
        rows = np.array([one == label for one in labels]) & np.isfinite(hits + trials + offset)
        if not rows.any():
            return False
        count = float(trials[rows].sum())
        share = (float(hits[rows].sum()) + 0.5) / (count + 1.0)
        levels.append(float(np.log(share) - np.log1p(-share) - offset[rows].mean()))
        errors.append(float(1.0 / np.sqrt(count * share * (1.0 - share))))
    return len(levels) > 2 and float(np.std(levels, ddof=1)) > FAR * max(errors)
