"""Immutable dataclasses without the price of frozen ones.

`frozen=True` stores each field by a call of `object.__setattr__`: the tree and the model are most of what an analysis
makes, and so a tenth of every keystroke went there.  Pyright sees frozen classes here, and refuses an assignment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def immutable(cls: type[T]) -> type[T]:
    """A dataclass with slots that is compared and hashed by its fields."""
    return dataclass(slots=True, unsafe_hash=True)(cls)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def immutable_by_name(cls: type[T]) -> type[T]:
    """The same, built by keyword arguments alone."""
    return dataclass(slots=True, unsafe_hash=True, kw_only=True)(cls)
