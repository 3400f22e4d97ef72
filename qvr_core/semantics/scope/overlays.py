"""Dicts whose states can be kept cheaply: a state is a shared base with the few entries that differ laid over it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Generic, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

MOST_CHANGES = 256
"""Changed entries before a new base is made."""
_GONE: Any = object()


class Overlay(Mapping[K, V], Generic[K, V]):
    """One state of a `Tracked` dict.  Immutable."""

    __slots__ = ("_base", "_over", "_size")

    def __init__(self, base: dict[K, V], over: dict[K, V], size: int) -> None:
        self._base, self._over, self._size = base, over, size

    def __getitem__(self, key: K) -> V:
        found = self._over.get(key)
        if found is None:
            return self._base[key]
        if found is _GONE:
            raise KeyError(key)
        return found

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, default: V | T, /) -> V | T: ...
    def get(self, key: K, default: Any = None, /) -> Any:
        found = self._over.get(key)
        if found is None:
            return self._base.get(key, default)
        return default if found is _GONE else found

    def __contains__(self, key: object) -> bool:
        found: Any = self._over.get(key)  # pyright: ignore[reportArgumentType,reportCallIssue]
        return key in self._base if found is None else found is not _GONE

    def __iter__(self) -> Iterator[K]:
        base, over = self._base, self._over
        if _GONE in over.values():
            return (key for key in chain(base, (key for key in over if key not in base)) if over.get(key) is not _GONE)
        return chain(base, (key for key in over if key not in base))

    def __len__(self) -> int:
        return self._size


class Tracked(dict[K, V]):
    """A dict that knows which entries have changed since its last full copy.  Values are never None."""

    __slots__ = ("_base", "_changed")

    def __init__(self) -> None:
        super().__init__()
        self._base: dict[K, V] = {}
        self._changed: set[K] = set()

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self._changed.add(key)

    def drop(self, key: K) -> V | None:
        """Remove an entry, if it is there; what it was."""
        self._changed.add(key)
        return super().pop(key, None)

    def kept(self) -> Overlay[K, V]:
        """The entries as they are now, untouched by later changes."""
        if len(self._changed) > MOST_CHANGES:
            self._base, self._changed = dict(self), set()
        over: dict[K, Any] = {key: self.get(key, _GONE) for key in self._changed}
        return Overlay(self._base, over, len(self))
