"""What stands behind the bar of an outcome as options of its step: weights, censoring, truncation."""

from __future__ import annotations

import numpy as np

from qvr_core.data.formula import outcomes
from qvr_core.data.formula.columns import Column
from qvr_core.data.formula.numbers import exact
from qvr_core.data.formula.problems import LeftOut
from qvr_core.data.formula.syntax import Call, Name
from qvr_core.data.formula.text import Text


def options(name: str, node: Call, complete: list[Column], text: Text) -> list[str]:
    """The options of the observed step for one addition.  Raises `LeftOut`."""
    row = text.row
    first = node.arguments[0] if node.arguments else None
    if name in ("trials", "mi", "se"):
        return []
    if name == "trunc":
        low, high = (outcomes.amount(node.keyword(one)) for one in ("lb", "ub"))
        found = [f"truncate_lower={exact(low)}"] if low is not None else []
        return [*found, f"truncate_upper={exact(high)}"] if high is not None else found
    if name not in ("weights", "cens", "censored") or not isinstance(first, Name):
        raise LeftOut(f"there is no program for `{name}()` yet")
    column = text.table.columns[first.text]
    complete.append(column)
    if name == "weights":
        return [f"weight={text.datum(column)}"]
    if column.binary:
        return [f"right_censored={text.datum(column, 'Bool')}"]
    if column.kind == "number" and set(np.unique(column.known)) <= {-1.0, 0.0, 1.0}:
        there = f"{text.datum(column)}[{row}]"
        sides = {"right": f"{there} > 0", "left": f"{there} < 0"}
    elif column.kind == "factor" and set(column.labels) <= {"left", "none", "right"}:
        there = f"{text.datum(column, text.enumerated(column, column.labels))}[{row}]"
        sides = {one: f"{there} == {column.labels.index(one)}" for one in ("right", "left") if one in column.labels}
    else:
        raise LeftOut("censoring is 0 and 1, or none, left and right")
    text.steps += [f"    let {one}_censored[{text.running}] = {test}" for one, test in sides.items()]
    return [f"{one}_censored={one}_censored" for one in sides]
