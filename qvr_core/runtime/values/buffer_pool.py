"""Buffers that are pooled from call to call.

A training step allocates the same megabytes again and again; the allocator gives them back to the system, and touching
fresh pages costs more than the arithmetic.  For small steps it is the views of each step that cost: they are kept too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

MOST_KEPT = 2**28
"""Bytes that the pool keeps at most."""


class Buffers(Protocol):
    """What can be pooled: tensors of this many bytes together."""

    @property
    def nbytes(self) -> int:
        """How many bytes they hold."""
        ...


T = TypeVar("T", bound=Buffers)
_free: defaultdict[Hashable, list[Buffers]] = defaultdict(list)
_kept = 0


class Pooled(Generic[T]):
    """Buffers out of the pool; they return when this is dropped, so nothing taken from them may outlive it."""

    def __init__(self, key: Hashable, make: Callable[[], T]) -> None:
        global _kept  # noqa: PLW0603 - one pool for the process
        self.key = key
        try:
            self.buffers: T = _free[key].pop()  # pyright: ignore[reportAttributeAccessIssue]
            _kept -= self.buffers.nbytes
        except IndexError:
            self.buffers = make()

    def __del__(self) -> None:
        global _kept  # noqa: PLW0603
        size = self.buffers.nbytes
        while _free and _kept + size > MOST_KEPT:
            # the kinds that came back first go first
            oldest = next(iter(_free))
            _kept -= sum(buffers.nbytes for buffers in _free.pop(oldest))
        if size <= MOST_KEPT:
            _kept += size
            _free[self.key].append(self.buffers)
