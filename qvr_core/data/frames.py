"""What Python programs hand over as data: frames of polars and pandas, xarray, arrays and lists, as typed sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.data.file_sources import Lists, in_a_row, plain
from qvr_core.data.needs import Need
from qvr_core.data.tables.columns import Columns
from qvr_core.data.typed.labels import word
from qvr_core.data.typed.layout import Layout
from qvr_core.data.typed.nested import nested_array
from qvr_core.data.typed.sources import Array, Arrays, Sources, Table
from qvr_core.data.typed_binding import known_sets, typed_tensors, undeclared
from qvr_core.semantics.file.open_sets import KnownSet

GIVEN = "the data"
"""What messages call data that come from no file."""


def array_of(value: Any, name: str) -> Array:
    """A tensor, an array, an xarray.DataArray, nested lists or a number."""
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy()
    if hasattr(value, "dims") and hasattr(value, "coords"):
        dims = tuple(map(str, value.dims))
        return Array(tuple(value.shape), np.asarray(value).reshape(-1).tolist(), dims, _coordinates(value, dims))
    if isinstance(value, pl.Series):
        return Array((len(value),), plain(value))
    if hasattr(value, "iloc") and not hasattr(value, "columns"):
        index = value.index.tolist()
        labels = None if index == list(range(len(index))) else tuple(str(word(one)) for one in index)
        dims = None if value.index.name is None else (str(value.index.name),)
        return Array((len(value),), plain(value), dims, (labels,))
    if isinstance(value, list | tuple | str | int | float | bool):
        return nested_array(value, GIVEN, name)
    array = np.asarray(value)
    return Array(tuple(array.shape), in_a_row(array))


def _coordinates(value: Any, dims: tuple[str, ...]) -> tuple[tuple[str, ...] | None, ...]:
    """The labels of each axis that has coordinates."""
    found: list[tuple[str, ...] | None] = []
    for dim in dims:
        labels = [word(one) for one in np.asarray(value.coords[dim]).tolist()] if dim in value.coords else [None]
        known = tuple(label for label in labels if label is not None)
        found.append(known if len(known) == len(labels) else None)
    return tuple(found)


def is_frame(value: Any) -> bool:
    """A frame of polars or pandas."""
    return isinstance(value, pl.DataFrame) or (hasattr(value, "iloc") and hasattr(value, "columns"))


def is_dataset(value: Any) -> bool:
    """An xarray.Dataset."""
    return hasattr(value, "data_vars") and hasattr(value, "dims")


def frame_table(frame: Any, path: str = GIVEN) -> Table:
    """A frame as a table; the index of a pandas frame is no column unless it has a name."""
    if not isinstance(frame, pl.DataFrame) and any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    return Table(path, Lists({str(name): frame[name] for name in frame.columns}), len(frame))


def of_python(data: Any) -> Sources:
    """Data as Python programs give them: a frame, a dataset, or a mapping from names to arrays, numbers and frames."""
    if is_frame(data):
        return Sources(frame_table(data), {}, {})
    if is_dataset(data):
        return Sources(Arrays(GIVEN, {str(name): array_of(data[name], str(name)) for name in data.data_vars}), {}, {})
    frames = {name: frame_table(value, f"{GIVEN} `{name}`") for name, value in data.items() if is_frame(value)}
    unframed = {
        name: array_of(value, name) for name, value in data.items() if not is_frame(value) and holds_numbers(value)
    }
    return Sources(Arrays(GIVEN, unframed), frames, {})


def columns_of(data: Any) -> Columns:
    """The same as plain columns, for a program that declares no types: those of a frame, else arrays by name."""
    if is_frame(data):
        table = frame_table(data)
        return Columns(
            GIVEN, "frame", {name: pl.Series(name, table.columns[name], strict=False) for name in table.columns}
        )
    names = map(str, data.data_vars) if is_dataset(data) else data
    return Columns(GIVEN, "npz", {name: _array(data[name]) for name in names if not is_frame(data[name])})


def _array(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)


def holds_numbers(value: Any) -> bool:
    """A number, an array, a series or a list of them."""
    return isinstance(value, Tensor | list | tuple | str | int | float | bool | pl.Series) or hasattr(value, "shape")


def supplied(needs: Sequence[Need], data: Any) -> tuple[dict[str, KnownSet], Mapping[str, Any]]:
    """The open sets that data tell, and a value for every name that they give.  Raises `DataProblem`."""
    sources = of_python(data)
    layout = Layout(needs, sources)
    given = [need for need in layout.needs if layout.gives(need)]
    found = known_sets(given, sources)
    # a run casts to its own precision, and chains have the double one
    typed = typed_tensors(given, sources, dtype=arrays.float64)
    if is_frame(data) or is_dataset(data):
        table = sources.main
        names = {need.name for need in undeclared(needs) if need.lexicon is None}
        sentences = {need.name for need in undeclared(needs) if need.lexicon is not None}
        columns = table.columns if isinstance(table, Table) else dict[str, Sequence[Any]]()
        plain: dict[str, Any] = {name: np.asarray(columns[name]) for name in names if name in columns}
        plain |= {name: list(columns[name]) for name in sentences if name in columns}
        if isinstance(table, Arrays):
            plain = {name: np.asarray(data[name]) for name in names if name in table.arrays}
        return found, {**plain, **typed}
    rest = {name: value for name, value in data.items() if not is_frame(value)}
    return found, {**rest, **typed}
