"""Immutable dataclasses without the price of frozen ones.

`frozen=True` stores each field by a call of `object.__setattr__`: the tree and the model are most of what an analysis
makes, and so a tenth of every keystroke went there.  Pyright sees frozen classes here, and refuses an assignment.

There are some 300 of them, and before Python 3.13 `dataclass` compiles a text for each of the four methods: a third of
the time that the checker takes to be imported.  Only `__init__` is worth a text of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def immutable(cls: type[T]) -> type[T]:
    """A dataclass with slots that is compared and hashed by its fields."""
    return _with_methods(dataclass(slots=True, repr=False, eq=False)(cls))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def immutable_by_name(cls: type[T]) -> type[T]:
    """The same, built by keyword arguments alone."""
    return _with_methods(dataclass(slots=True, repr=False, eq=False, kw_only=True)(cls))


def _with_methods(cls: type[T]) -> type[T]:
    """The class with the methods of a dataclass, but for those of its own."""
    compared = [one.name for one in fields(cls) if one.compare]  # pyright: ignore[reportArgumentType]
    # one attribute alone would be no tuple, whose elements are equal where they are the same object, as NaN is
    values: Callable[[T], object] = attrgetter(*compared, compared[0]) if compared else lambda one: ()

    def equal(self: T, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented  # pyright: ignore

    def hashed(self: T) -> int:
        return hash(values(self))

    for name, method in (("__eq__", equal), ("__hash__", hashed), ("__repr__", _written)):
        if cls.__dict__.get(name) is None:
            setattr(cls, name, method)
    return cls


@recursive_repr()
def _written(self: object) -> str:
    pairs = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)  # pyright: ignore[reportArgumentType]
    return f"{self.__class__.__qualname__}({', '.join(pairs)})"
