"""Which families a step can draw from, by the set that it names and by the declared type of its data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from qvr_core.ide.completion import likely
from qvr_core.ide.completion.context import Context
from qvr_core.ide.completion.typing import space_of_text
from qvr_core.ide.view import model_of
from qvr_core.semantics.language.family import Family
from qvr_core.semantics.language.family_heads import landing_problem
from qvr_core.semantics.types.model.programs import DataName
from qvr_core.semantics.types.spaces import Finite, Real, Space
from qvr_core.syntax.lexer import CLOSERS, OPENERS

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

FITS, UNLIKELY, NEVER = range(3)
Fit = Callable[[Family], int]
"""Whether draws of a family are what a step draws; NEVER is an error of the checker."""


def fit_at(snapshot: Snapshot, place: Context) -> Fit:
    """How well families fit the step at a cursor."""
    match place.keyword:
        case "observe":
            data = likely.data_at(snapshot, place)
            return _anything if data is None else lambda family: _of_data(family, data)
        case "marginalize":
            space = ascribed_at(snapshot, place)
            return (lambda family: _summed(family, space)) if isinstance(space, Finite) else _anything
        case _:
            return _anything


def _anything(family: Family) -> int:
    return FITS


def _summed(family: Family, space: Finite) -> int:
    """A finite set is summed out only where the family draws from one; a set of another size may be the plate."""
    if family.support.kind != "finite":
        return NEVER
    return FITS if landing_problem(family, space) is None else UNLIKELY


def _of_data(family: Family, data: DataName) -> int:
    if data.numbers == "bool":
        fits = family.support.size == 2 or (family.counts_to == "total" and family.event == 0)
        return FITS if fits else UNLIKELY
    if data.numbers == "count":
        return FITS if family.support.kind == "count" and family.event == 0 else UNLIKELY
    match data.type.space:
        case Finite() as space:
            # numbers are no elements of a set
            fits = family.support.kind == "finite" and landing_problem(family, space) is None
            return FITS if fits else NEVER
        case Real(low=low, high=high) as space if low is not None or high is not None:
            fits = not family.discrete and landing_problem(family, space) is None
            return FITS if fits else UNLIKELY
        case _:
            return FITS


def ascribed_at(snapshot: Snapshot, place: Context) -> Space | None:
    """The space behind the `:` of a step that is being written, that of an index aside."""
    depth = 0
    colon: int | None = None
    for token in place.tokens:
        depth += (token.kind in OPENERS) - (token.kind in CLOSERS.values())
        if depth == 0 and token.kind == "COLON":
            colon = token.end
        elif depth == 0 and token.kind == "DRAW":
            return None if colon is None else space_of_text(place.text[colon : token.start], model_of(snapshot))
    return None
