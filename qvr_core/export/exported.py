"""What an export is: the text of a file, and how the data that it reads are called there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from qvr_core.export.data_arrays import DataArray
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

        NaN stands for what is missing alone.  Beyond the end of a sequence, where nothing reads it, stands the last
        value before, which the declaration of every target takes and at which the model is finite, for the gradient
        of a number that is left out is NaN where that number is.
        """
        found: dict[str, Any] = {self.sizes[name]: size for name, size in sizes.items() if name in self.sizes}
        for name, bound in self.counts.items():
            found[self.sizes[name]] = 1 + (bound if isinstance(bound, int) else _largest(values[bound]))
        for name, value in values.items():
            if name in self.names:
                found[self.names[name]] = self._written(self.arrays[name], value, values)
        return found

    def _written(self, array: DataArray, value: Any, values: Mapping[str, Any]) -> Any:
        if array.ends is not None:
            plates = len(array.sizes) - (0 if array.space is None else len(space_dims(array.space)))
            ends = values[array.ends] if isinstance(array.ends, str) else array.ends
            value = _filled(value, ends, next(_cells_there(value, plates), _harmless(array)), plates)
        if array.missing:
            return value
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


def _filled(value: Any, ends: Any, there: Any, plates: int) -> list[Any]:
    """A value whose cells beyond the ends all hold something: others are as the last one before in their sequence that
    does, else as `there`.  `ends` may lack axes in front."""
    if plates > 1:
        own = _axes(ends) == plates - 1
        return [_filled(one, ends[at] if own else ends, there, plates - 1) for at, one in enumerate(value)]
    found: list[Any] = []
    for at, cell in enumerate(value):
        if _is_there(cell):
            there = cell
        found.append(cell if at < ends else _in_form_of(cell, there))
    return found


def _axes(value: Any) -> int:
    return 1 + _axes(cast("list[Any]", value)[0]) if isinstance(value, list) else 0


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
