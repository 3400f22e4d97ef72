"""Values of JSON, and what kind each is."""

from __future__ import annotations

from typing import Any, TypeGuard

Json = dict[str, Any]


def is_object(value: object) -> TypeGuard[Json]:
    """Whether a value of JSON is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a value of JSON is a list."""
    return isinstance(value, list)


def is_tuple(value: object) -> TypeGuard[tuple[Any, ...]]:
    """Whether a value is a tuple, which JSON writes as a list."""
    return isinstance(value, tuple)
