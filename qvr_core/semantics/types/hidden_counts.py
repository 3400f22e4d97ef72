"""The values of a hidden count: 0, 1, … up to the largest bound among the data, so that only these tell how many."""

from __future__ import annotations

from qvr_core.semantics.types.spaces import Finite, Linear, Space

_COUNTS = "#counts"


def counts_of(name: str) -> Finite:
    """The values of the hidden count of this name."""
    return Finite(Linear(0, ((f"{name}{_COUNTS}", 1),)))


def is_counts(space: Space | None) -> bool:
    """Whether a set is that of the values of a hidden count."""
    size = space.size if isinstance(space, Finite) else None
    return isinstance(size, Linear) and counted(size) is not None


def counted(size: object) -> str | None:
    """The hidden count whose values are so many; None of any other size."""
    if not isinstance(size, Linear) or len(size.terms) != 1 or not size.terms[0][0].endswith(_COUNTS):
        return None
    return size.terms[0][0].removesuffix(_COUNTS)
