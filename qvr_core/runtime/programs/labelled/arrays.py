"""Arrays that say what their axes and elements are called: of xarray, pandas and polars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.runtime.values.errors import InputProblem

LIBRARIES = ("xarray", "pandas", "polars")
DRAWS = (("chain", "draw"), ("sample",))
"""What the axes of draws are called in an InferenceData, apart or stacked."""

Labels = tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Labelled:
    """Numbers or text with the names of their axes, and those of the elements; None where there are none.

    `index` says that the names of the elements are an index of pandas, which rows keep when they are filtered.
    """

    values: NDArray[Any]
    dims: tuple[str | None, ...]
    labels: tuple[Labels, ...]
    index: bool = False

    def ordered(self, order: list[int]) -> Labelled:
        """With the axes in another order."""
        values = self.values.transpose(order)
        return replace(self, values=values, dims=_at(self.dims, order), labels=_at(self.labels, order))


def _at(items: tuple[Any, ...], order: list[int]) -> tuple[Any, ...]:
    return tuple(items[at] for at in order)


def library(value: object) -> str | None:
    """The library that a value is of, where it may have labels."""
    found = type(value).__module__.partition(".")[0]
    return found if found in LIBRARIES else None


def is_table(value: Any) -> bool:
    """A frame of polars or pandas, or an xarray.Dataset: several arrays by name."""
    return library(value) is not None and (hasattr(value, "columns") or hasattr(value, "data_vars"))


def columns(table: Any) -> Mapping[str, Any]:
    """The columns of a frame, or the variables of a dataset, by name."""
    if hasattr(table, "data_vars"):
        return {str(name): table[name] for name in table.data_vars}
    if library(table) == "pandas" and any(name is not None for name in table.index.names):
        table = table.reset_index().set_index(table.index)
    return {str(name): table[name] for name in table.columns}


def labelled(value: Any, name: str) -> Labelled:
    """What a value of one of the libraries says.  Raises `InputProblem` for dates and an index of several levels."""
    if hasattr(value, "dims"):
        dims = tuple(map(str, value.dims))
        return Labelled(_numbers(np.asarray(value), name), dims, tuple(_coordinates(value, dims)))
    if library(value) == "polars":
        return _of_polars(value, name)
    for index in (value.index, *([value.columns] if hasattr(value, "columns") else [])):
        if index.nlevels > 1:
            raise InputProblem(
                f"`{name}` has an index of {index.nlevels} levels: give `….to_xarray()`, whose axes have names"
            )
    labels: list[Labels] = [_index(value.index)]
    dims = [value.index.name]
    if hasattr(value, "columns"):
        labels.append(tuple(map(called, value.columns.tolist())))
        dims.append(value.columns.name)
    numeric = value.to_numpy(dtype=float, na_value=np.nan) if _extended(value) else np.asarray(value)
    return Labelled(_numbers(numeric, name), tuple(dims), tuple(labels), True)


def _extended(value: Any) -> bool:
    """Whether a column of pandas is of a nullable type of numbers."""
    dtype = getattr(value, "dtype", None)
    return dtype is not None and not isinstance(dtype, np.dtype) and getattr(dtype, "kind", "O") in "iufb"


def _of_polars(value: Any, name: str) -> Labelled:
    import polars as pl

    if isinstance(value, pl.DataFrame):
        return Labelled(_numbers(value.to_numpy(), name), (None, None), (None, tuple(value.columns)))
    words = value.dtype in (pl.String, pl.Categorical) or isinstance(value.dtype, pl.Enum)
    found = np.array(value.to_list(), dtype=object) if words else value.to_numpy()
    return Labelled(_numbers(found, name), (None,), (None,))


def _numbers(found: NDArray[Any], name: str) -> NDArray[Any]:
    if found.dtype.kind in "mM":
        raise InputProblem(f"`{name}` holds dates: give numbers, or the labels of a set as text")
    return found


def _coordinates(value: Any, dims: tuple[str, ...]) -> Iterator[Labels]:
    for dim in dims:
        known = dim in value.coords and value.coords[dim].ndim == 1
        yield tuple(map(called, np.asarray(value.coords[dim]).tolist())) if known else None


def _index(index: Any) -> Labels:
    """The names of rows; none where they are only counted."""
    found = index.tolist()
    return None if found == list(range(len(found))) else tuple(map(called, found))


def called(cell: Any) -> str:
    """What an entry calls an element: numbers without a fraction as whole ones."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)
