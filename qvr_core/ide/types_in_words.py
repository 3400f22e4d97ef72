"""Types in the reader's words: `one number for each house`, `one number from 0 to 1`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from qvr_core.ide.axes import plate_of
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.model.expressions import ValueType
from qvr_core.semantics.types.model.programs import DataName
from qvr_core.semantics.types.model.steps import Site
from qvr_core.semantics.types.spaces import (
    Constrained,
    Finite,
    Linear,
    Named,
    Real,
    Space,
    Unknown,
    factors_of,
    has_seq,
    item_of,
    width,
)


def data_words(data: DataName) -> str:
    """`One number for each house.`; '' where nothing is known."""
    return _sentence(_each(element_words(data.type.space, data.numbers), data.type))


def let_words(kind: ValueType) -> str:
    """The same of what is computed."""
    if kind.event is not None and isinstance(kind.space, Real):
        kind = ValueType(Real((1,)), (*kind.indexed, kind.event), kind.rows, (*kind.sizes, None))
    return _sentence(_each(element_words(kind.space), kind))


def site_words(site: Site, name: str) -> str:
    """`one number for each county`, of a name that a site binds; '' where its space is not known."""
    space = next((space.space for bound, space in site.bound if bound == name), None)
    if space is None or isinstance(space, Unknown):
        return ""
    if site.over is not None and (isinstance(space, Real) or _simplex(space)):
        kind = "probabilities that sum to 1" if _simplex(space) else "numbers"
        words = f"{kind}, one for each {_word(site.over.written)}"
    elif site.over is not None and isinstance(space, Constrained):
        words = f"{MATRICES.get(space.kind, 'numbers')} with a row and a column for each {_word(site.over.written)}"
    else:
        words = element_words(space)
    groups = [site.over.written] if site.over is not None and isinstance(space, Finite) else []
    return words + each_of(plate_of(site), groups) if words else ""


def each_of(plate: Named | None, more: Sequence[str] = ()) -> str:
    """` for each pond`, of the sets in front of the draws of a site."""
    sets = [factor for factor in factors_of(plate.space) if isinstance(factor, Finite)] if plate is not None else []
    return _for_each([*(one.nominal for one in sets), *more])


MATRICES = {
    "CholeskyFactor": "a lower triangular matrix, the Cholesky factor of a correlation matrix,",
    "Covariance": "a covariance matrix",
    "Correlation": "a correlation matrix",
}


def element_words(space: Space | None, numbers: str = "") -> str:
    """What one element is: `one number`, `one county`, `true or false`; '' where it is not known."""
    if numbers == "bool":
        return "true or false"
    if numbers == "count":
        return "one count"
    if space is None or has_seq(space):
        return ""
    match item_of(space):
        case Finite(nominal=str() as name):
            return f"one {_word(name)}"
        case Finite(size=size):
            if isinstance(size, Linear):
                return "one category"
            return "0 or 1" if int(size) == 2 else f"one of {int(size)} categories"
        case Real(low=low, high=high) as real:
            count = width(real)
            noun = "one number" if count == 1 else "numbers" if isinstance(count, Linear) else f"{int(count)} numbers"
            return noun + _bounds(low, high)
        case Constrained(kind=kind, size=size, low=low, high=high):
            many = "" if isinstance(size, Linear) else f"{int(size)} "
            side = "" if isinstance(size, Linear) else f" of {int(size)} rows"
            return {
                "Simplex": f"{many}probabilities that sum to 1",
                "Ordered": f"{many}numbers in ascending order" + _bounds(low, high),
                "CholeskyFactor": f"a Cholesky factor{side}",
                "Covariance": f"a covariance matrix{side}",
                "Correlation": f"a correlation matrix{side}",
            }.get(kind, "")
        case _:
            return ""


def set_words(space: Space) -> str:
    """What a set is, for who only wants its elements: `A set of 12 elements.`; '' for what is no set."""
    if not isinstance(space, Finite):
        return ""
    if space.labels:
        return f"A set of {len(space.labels)} labels."
    if isinstance(space.size, Linear):
        return "A set whose elements come with the data."
    return f"A set of {int(space.size):,} elements."


def _each(words: str, kind: ValueType) -> str:
    names = [None if name is None else set_of(name) for name in kind.indexed]
    return "" if not words or None in names else words + _for_each(names)


def _for_each(names: Sequence[str | None]) -> str:
    """` for each pond and visit`."""
    words = ["element" if name is None else _word(name) for name in names]
    return f" for each {' and '.join(words)}" if words else ""


def _word(name: str) -> str:
    """`StudentGroup` as `student group`; what is written in capitals stays."""
    return name if name.isupper() else re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).lower()


def _bounds(low: float | None, high: float | None) -> str:
    match low, high:
        case None, None:
            return ""
        case _, None:
            return f" from {low:g} up"
        case None, _:
            return f" up to {high:g}"
        case _:
            return f" from {low:g} to {high:g}"


def _simplex(space: Space) -> bool:
    return isinstance(space, Constrained) and space.kind == "Simplex"


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}." if words else ""
