"""Nested lists, as of a json file, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from qvr_core.data.problems import DataProblem
from qvr_core.data.typed.sources import Array, Arrays


def nested_array(value: Any, path: str, name: str) -> Array:
    """A number, a word or nested lists of such, ragged where the innermost differ in length.  Raises `DataProblem`
    where numbers and lists stand side by side."""
    shape: list[int] = []
    level: list[Any] = [value]
    while level and all(isinstance(one, list | tuple) for one in level):
        lists = cast("list[Sequence[Any]]", level)
        sizes = {len(one) for one in lists}
        if len(sizes) > 1:
            message = f"lists beside each other have {' and '.join(str(size) for size in sorted(sizes))} entries"
            return Array(tuple(shape), level, ragged=message)
        shape.append(sizes.pop())
        level = [entry for one in lists for entry in one]
    if any(isinstance(one, list | tuple | dict) for one in level):
        message = "numbers and lists stand beside each other"
        raise DataProblem(message, path=path, column=name, remedy="Nest all entries equally deep")
    return Array(tuple(shape), level)


def nested_arrays(content: Mapping[str, Any], path: str, first: int) -> Arrays:
    """Every entry of a mapping."""
    return Arrays(path, {name: nested_array(value, path, name) for name, value in content.items()}, first)
