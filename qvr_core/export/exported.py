"""What an export is: the text of a file, and how the data that it reads are called there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast


@dataclass(frozen=True)
class Exported:
    """`names` are the data names of the program and what they are called in the file, `sizes` the open sets and the
    names of their sizes; `codes` are the names of data that hold codes, which count from `first`."""

    text: str
    names: Mapping[str, str]
    sizes: Mapping[str, str]
    codes: frozenset[str]
    first: int = 0
    counts: Mapping[str, str | int] = field(default_factory=dict[str, "str | int"])
    """Of each hidden count, by what its number of values is in `sizes`: the data name of its bound, or that number."""

    def data(self, values: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
        """The data of a file that `read_data` reads: `values` by the program's names, as nested lists; codes from 0."""
        found: dict[str, Any] = {self.sizes[name]: size for name, size in sizes.items() if name in self.sizes}
        for name, bound in self.counts.items():
            found[self.sizes[name]] = 1 + (bound if isinstance(bound, int) else _largest(values[bound]))
        for name, value in values.items():
            if name in self.names:
                counted = _shifted(value, self.first) if name in self.codes and self.first else value
                found[self.names[name]] = counted
        return found


def _largest(value: Any) -> int:
    return max(map(_largest, cast("list[Any]", value))) if isinstance(value, list) else int(value)


def _shifted(value: Any, by: int) -> Any:
    if isinstance(value, list):
        return [_shifted(one, by) for one in cast("list[Any]", value)]
    return value + by
