"""One entry of a column as one number of a data name."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from qvr_core.data.column_names import nearest
from qvr_core.data.needs import Need
from qvr_core.data.typed.labels import Elements, whole
from qvr_core.semantics.terms.written import TermProblem, term_table

Number = int | float
MOST_SPELT = 2000
"""Elements of a set among which a misspelt one is looked for."""
NULLS = ("", "NA", "null")
"""What a text says of a cell that is missing."""
TRUTH = {"true": 1, "false": 0, "yes": 1, "no": 0, "0": 0, "1": 1}


@dataclass(frozen=True)
class Wrong(Exception):
    """An entry that cannot be what is wanted."""

    message: str
    remedy: str


def reader(need: Need, values: Elements | None) -> Callable[[Any], Number]:
    """What makes a number of an entry that is not missing.  Raises `Wrong`."""
    if values is not None and values.name:
        return lambda cell: _element(cell, values)
    match need.kind:
        case "terms":
            return lambda cell: _nodes(cell, need)
        case "finite":
            return lambda cell: _category(cell, need)
        case "count":
            return lambda cell: _count(cell, need)
        case _:
            return lambda cell: _real(cell, need)


def _nodes(cell: Any, need: Need) -> int:
    """How many nodes a term has."""
    assert need.terms is not None
    try:
        return len(term_table(cell, need.terms))
    except TermProblem as problem:
        raise Wrong(problem.message, problem.remedy) from None


def _element(cell: Any, values: Elements) -> int:
    place = values.place(cell)
    if place is not None:
        return place
    if values.labels is None and whole(cell) is None:
        message = f"`{cell}` is not a number" if isinstance(cell, str) else f"{cell} is not a whole number"
        remedy = f"Number the elements of `{values.name}` from {values.first}"
        if not values.source:
            remedy += f", or let them come with the data: `object {values.name} : FinSet _`"
        raise Wrong(message, remedy)
    shown = f"`{cell}`" if isinstance(cell, str) else str(cell)
    where = f", which {values.source} lists" if values.source and values.labels is not None else ""
    near = (
        nearest(cell, values.labels) if isinstance(cell, str) and values.labels and values.size <= MOST_SPELT else None
    )
    guess = f"Did you mean `{near}`?" if near is not None else values.remedy
    raise Wrong(f"{shown} is not in `{values.name}`{where}: {values.wanted}", guess)


def _category(cell: Any, need: Need) -> int:
    """0 … size − 1; labels of the set, and truth values as words, too."""
    if need.labels is not None and isinstance(cell, str) and cell.strip() in need.labels:
        return need.labels.index(cell.strip())
    number = TRUTH.get(cell.strip().lower()) if isinstance(cell, str) and need.size == 2 else None
    number = whole(cell) if number is None else number
    wanted = "0, 1, 2, …" if need.size is None else f"0 to {need.size - 1}"
    if need.size == 2:
        wanted = "0 and 1, or true and false, or yes and no"
    if need.labels is not None and need.size is not None and need.size <= MOST_SPELT:
        wanted += f", or {', '.join(f'`{label}`' for label in need.labels)}"
    if number is None:
        what = "not a whole number" if need.labels is None else "none of the elements"
        raise Wrong(f"{_shown(cell)} is {what}", takes(wanted, need))
    if number < 0 or (need.size is not None and number >= need.size):
        raise Wrong(f"{number} is outside `{need.written}`", takes(wanted, need))
    return number


def _count(cell: Any, need: Need) -> int:
    number = whole(cell)
    if number is None:
        raise Wrong(f"{_shown(cell)} is not a whole number", takes("0, 1, 2, …", need))
    if number < 0:
        raise Wrong(f"{number} is negative", takes("0, 1, 2, …", need))
    if need.high is not None and number > need.high:
        raise Wrong(f"{number} is above {need.high:g}", takes(f"0 to {need.high:g}", need))
    return number


def _real(cell: Any, need: Need) -> float:
    try:
        number = float(cell)
    except (TypeError, ValueError):
        raise Wrong(f"{_shown(cell)} is not a number", "Correct it, or leave the row out") from None
    if number - number != 0 and not (need.endless and number == math.inf):
        raise Wrong(f"{number} is not finite", "Fill in a finite value")
    if need.low is not None and number < need.low:
        raise Wrong(f"{number:g} is below {need.low:g}", takes(f"values from {need.low:g} up", need))
    if need.high is not None and number > need.high:
        raise Wrong(f"{number:g} is above {need.high:g}", takes(f"values up to {need.high:g}", need))
    if number in need.excluded:
        raise Wrong(*no_density(number, need))
    return number


def takes(values: str, need: Need) -> str:
    """What a name takes, and the family that says so."""
    return f"`{need.name}` takes {values}" + (f": it is observed as `{need.drawn}`" if need.drawn else "")


def no_density(number: float, need: Need) -> tuple[str, str]:
    """What is said of a value at an open end of a support, and what is taken instead."""
    beyond = "below" if number == need.high else "above"
    return f"{number:g} has no density there", takes(f"values {beyond} {number:g}", need)


def _shown(cell: Any) -> str:
    return f"`{cell}`" if isinstance(cell, str) else str(cell)
