"""Names of axes: the set that an axis runs over and, inside a step with indices, the index that runs along it."""

from __future__ import annotations

CONTRACTED = "="
"""What the axis is called that a matrix product sums over; no set is called so."""


def axis_of(name: str | None, index: str) -> str:
    """The axis along which `index` runs over the set `name`."""
    return f"{name or ''}#{index}"


def set_of(axis: str) -> str:
    """The set of an axis, whichever index runs along it."""
    return axis.partition("#")[0]


def indexed(axis: str) -> bool:
    """True for an axis that an index runs along."""
    return "#" in axis
