"""What kind of container a value from outside is.

`isinstance` alone leaves the elements unknown to the type checker; here they are said to be anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import TypeIs


def is_mapping(value: object) -> TypeIs[Mapping[Any, Any]]:
    """Whether a value maps keys to values, as a dict does."""
    return isinstance(value, Mapping)


def is_sequence(value: object) -> TypeIs[list[Any] | tuple[Any, ...]]:
    """Whether a value is a list or a tuple."""
    return isinstance(value, list | tuple)


def is_tuple(value: object) -> TypeIs[tuple[Any, ...]]:
    """Whether a value is a tuple."""
    return isinstance(value, tuple)
