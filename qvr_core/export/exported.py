"""What an export is: the text of a file, and how the data that it reads are called there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from qvr_core.export.reading import DataArray
from qvr_core.lowered.axes import space_dims


@dataclass(frozen=True)
class Exported:
    """`names` are the data names of the program and what they are called in the file, `sizes` the open sets and the
    names of their sizes; `arrays` say what each data name holds, codes of sets from `first` on."""

    text: str
    names: Mapping[str, str]
    sizes: Mapping[str, str]
    arrays: Mapping[str, DataArray]
    first: int = 0
    counts: Mapping[str, str | int] = field(default_factory=dict[str, "str | int"])
    """Of each hidden count, by what its number of values is in `sizes`: the data name of its bound, or that number."""

    def data(self, values: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
        """The data of a file that `read_data` reads: `values` by the program's names, as nested lists; codes from 0.

        NaN stands for what is missing alone.  In a name with lengths it lies beyond the end of a sequence, where
        nothing reads it: there stands the last value before, which the declaration of every target takes and at
        which the model is finite, for the gradient of a number that is left out is NaN where that number is.
        """
        found: dict[str, Any] = {self.sizes[name]: size for name, size in sizes.items() if name in self.sizes}
        for name, bound in self.counts.items():
            found[self.sizes[name]] = 1 + (bound if isinstance(bound, int) else _largest(values[bound]))
        for name, value in values.items():
            if name in self.names:
                found[self.names[name]] = self._written(self.arrays[name], value)
        return found

    def _written(self, array: DataArray, value: Any) -> Any:
        if array.missing:
            return value
        if array.ragged:
            plates = len(array.sizes) - (0 if array.space is None else len(space_dims(array.space)))
            value = _filled(value, next(_cells_there(value, plates), _harmless(array)), plates)
        return _as_integers(value, self.first if array.kind == "index" else 0) if array.whole else value


def _is_there(cell: Any) -> bool:
    """Whether no number of a cell is NaN."""
    if isinstance(cell, list):
        return all(map(_is_there, cast("list[Any]", cell)))
    return not (isinstance(cell, float) and math.isnan(cell))


def _cells_there(value: Any, plates: int) -> Iterator[Any]:
    """The cells that hold something, of a value with so many axes in front of them."""
    if plates:
        for one in value:
            yield from _cells_there(one, plates - 1)
    elif _is_there(value):
        yield value


def _filled(value: Any, there: Any, plates: int) -> Any:
    """A value whose cells all hold something: others are as the one before in their sequence, else as `there`."""
    if not plates:
        return value if _is_there(value) else _in_form_of(value, there)
    found: list[Any] = []
    for one in value:
        found.append(_filled(one, there, plates - 1))
        if plates == 1:
            there = found[-1]
    return found


def _in_form_of(cell: Any, there: Any) -> Any:
    """`there`, or a cell whose entries all are this one number."""
    if isinstance(there, float) and isinstance(cell, list):
        return [_in_form_of(one, there) for one in cast("list[Any]", cell)]
    return there


def _harmless(array: DataArray) -> float:
    """A number that a name may hold of which nothing is there."""
    match (array.low, array.high):
        case _ if array.whole:
            return 0.0
        case (None, None):
            return 0.5
        case (low, None):
            return low + 1.0
        case (None, high):
            return high - 1.0
        case (low, high):
            return (low + high) / 2.0


def _largest(value: Any) -> int:
    return max(map(_largest, cast("list[Any]", value))) if isinstance(value, list) else int(value)


def _as_integers(value: Any, more: int) -> Any:
    if isinstance(value, list):
        return [_as_integers(one, more) for one in cast("list[Any]", value)]
    return value if math.isnan(value) else int(value) + more
