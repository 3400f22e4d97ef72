"""Columns to tensors: what a program needs, checked value by value before anything runs."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.data.column_names import nearest, renaming
from qvr_core.data.needs import Need, Needs
from qvr_core.data.problems import DataProblem
from qvr_core.data.tables.columns import LABELS, Columns
from qvr_core.data.typed.cell_values import no_density, takes
from qvr_core.data.typed.sentence_cells import padded, sentences, words_of
from qvr_core.runtime.values.term_tables import table_tensor
from qvr_core.semantics.terms.written import Table, TermProblem, term_table
from qvr_core.semantics.types.spaces import Terms

if TYPE_CHECKING:
    import polars as pl


class RowsOf:
    """Rows of a program that reads its input: row i of every tensor belongs together.

    `x` is a tensor, or a tuple of tensors for a product domain.  What is `fixed` has no rows.
    """

    def __init__(
        self, x: Tensor | tuple[Tensor, ...], observations: Mapping[str, Tensor], fixed: Collection[str] = ()
    ) -> None:
        self.x = x
        self.observations = observations
        self.fixed = frozenset(fixed)
        self.rows = len(x[0] if isinstance(x, tuple) else x)

    def batch(self, rows: Tensor, generator: arrays.Generator | None = None) -> tuple[Any, dict[str, Tensor]]:
        """The rows of these numbers."""
        x = tuple(part[rows] for part in self.x) if isinstance(self.x, tuple) else self.x[rows]
        return x, {
            name: value[rows] if value.ndim and len(value) == self.rows and name not in self.fixed else value
            for name, value in self.observations.items()
        }


class Whole:
    """All data of a statistical program: one row, seen whole in every step."""

    rows = 1

    def __init__(self, observations: Mapping[str, Tensor]) -> None:
        self.observations = dict(observations)

    def batch(self, rows: Tensor, generator: arrays.Generator | None = None) -> tuple[Any, dict[str, Tensor]]:
        """No input, and all observations whatever the `rows`: a statistical program has no rows to choose among."""
        return None, self.observations


def bind(columns: Columns, needs: Needs, names: Mapping[str, str]) -> RowsOf | Whole:
    """Match columns with what a program needs; `names` maps a program's name to its column.

    An observed site without a column is an error; a data name too.  Columns that nobody needs are left alone.
    """
    check_names(columns, needs, names)
    supplied = {need.name: tensor_of(columns, need, names) for need in (*needs.observed, *needs.data)}
    for need in needs.observed:
        if need.shared and need.plate is not None and len(supplied[need.name]) != need.plate[1]:
            name, size = need.plate
            raise DataProblem(
                f"there are {len(supplied[need.name])} rows, and `{name}`, which a latent runs over too, has {size}",
                path=columns.path,
                column=names.get(need.name, need.name),
                site=need.name,
                remedy=f"Give one row for each element of `{name}`, or change its size",
            )
    if needs.statistical:
        return Whole(supplied)
    inputs = [tensor_of(columns, need, names) for need in needs.inputs]
    rows = len(inputs[0])
    by_row = [*zip(needs.inputs, inputs, strict=True), *((need, supplied[need.name]) for need in needs.observed)]
    for need, tensor in by_row:
        if len(tensor) != rows:
            raise DataProblem(
                f"there are {len(tensor)} rows, and {rows} for `{needs.inputs[0].name}`",
                path=columns.path,
                column=names.get(need.name, need.name),
                site=need.name,
                remedy="Every input and observed site needs one entry per row",
            )
    return RowsOf(inputs[0] if len(inputs) == 1 else tuple(inputs), supplied)


def check_names(columns: Columns, needs: Needs, names: Mapping[str, str]) -> None:
    """Raise `DataProblem` where `names` renames what the program does not need."""
    wanted = [need.name for need in needs.all]
    for name, column in names.items():
        if name in wanted:
            continue
        near = nearest(name, wanted)
        if name in columns.columns and column in wanted:
            remedy = f"The program's name comes first: `{renaming(column, name)}`"
        elif near is not None:
            remedy = f"Did you mean `{near}`? `{renaming(near, column)}`"
        else:
            remedy = "Remove it, or correct the name"
        raise DataProblem(
            f"`columns` renames `{name}`, which `{needs.program}` does not need; it needs {_listed(wanted)}, and the "
            f"file has {columns.listed}",
            path=columns.path,
            remedy=remedy,
            usage=True,
        )


def tensor_of(columns: Columns, need: Need, names: Mapping[str, str]) -> Tensor:
    """The tensor of one need: int64 (N,) or (N, L) for finite values, (N, nodes, columns) for terms, float (N,) or
    (N, d) for real ones."""
    column = names.get(need.name, need.name)
    if need.terms is not None:
        return _terms(columns, column, need, need.terms)
    if need.lexicon is not None:
        return _sentences(columns, column, need)
    spread = [f"{column}_{i}" for i in range(need.width)]
    if need.width > 1 and column not in columns.columns and spread[0] in columns.columns:
        parts = [_array(columns, one, need) for one in spread]
        array = np.stack(parts, axis=-1)
    else:
        array = _array(columns, column, need)
    checked = _checked(columns, column, need, _in_one_axis(array, need))
    if checked.dtype.kind == "f":
        tensor = arrays.tensor(checked, dtype=arrays.get_default_dtype())
        return tensor[:, None] if need.role == "input" and need.kind == "real" and tensor.ndim == 1 else tensor
    return arrays.as_tensor(checked.astype(np.int64))


def _terms(columns: Columns, column: str, need: Need, space: Terms) -> Tensor:
    """The tables of terms, one a row."""
    found = columns.find(column, need.name)
    cells = found if isinstance(found, list) else found.tolist() if isinstance(found, np.ndarray) else found.to_list()
    if not cells:
        raise _misfit(columns, column, need, "there are no values", None, "It needs one row at least")
    made: list[Table] = []
    for row, cell in enumerate(cells, 1):
        try:
            made.append(term_table(cell, space))
        except TermProblem as problem:
            raise _misfit(columns, column, need, problem.message, row, problem.remedy) from None
    try:
        return table_tensor(made, space)
    except TermProblem as problem:
        raise _misfit(columns, column, need, problem.message, None, problem.remedy) from None


def _sentences(columns: Columns, column: str, need: Need) -> Tensor:
    """Numbers of words (N, L), −1 behind the ends of sentences."""
    found = columns.find(column, need.name)
    cells: list[Any] = np.atleast_1d(found).tolist() if isinstance(found, np.ndarray) else list(found)
    words = words_of(need, columns.path, 0)
    flat, length = padded(sentences(cells, need, columns.path, column, words, 1 + columns.first))
    return arrays.tensor(flat, dtype=arrays.int64).reshape(-1, length)


def _in_one_axis(array: NDArray[Any], need: Need) -> NDArray[Any]:
    """Rows of a space of several sizes that are given in their shape, a single channel or not: (N, d) of (N, 1, h, w)
    or (N, h, w), and so for sequences."""
    sizes = need.several
    lead = 2 if need.sequence else 1
    own = array.shape[lead:]
    if len(own) < 2 or own not in (sizes, tuple(size for size in sizes if size > 1)):
        return array
    return array.reshape(*array.shape[:lead], need.width)


def _array(columns: Columns, column: str, need: Need) -> NDArray[Any]:
    """A column as numbers, missing values and text reported."""
    found = columns.find(column, need.name)
    if not len(found) if not isinstance(found, np.ndarray) else found.size == 0:
        raise _misfit(columns, column, need, "there are no values", None, "It needs one row at least")
    if isinstance(found, list):
        return _cells(columns, column, need, found)
    if not isinstance(found, np.ndarray):
        return _series(columns, column, need, found)
    if found.dtype.kind not in "biuf":
        raise _misfit(columns, column, need, f"the array has dtype {found.dtype}, and numbers are wanted", None,
                      "Save it as numbers")  # fmt: skip
    return found.astype(np.int64) if found.dtype.kind == "b" else found


def _series(columns: Columns, column: str, need: Need, series: pl.Series) -> NDArray[Any]:
    """One column of a table."""
    import polars as pl

    kind = series.dtype
    if isinstance(kind, pl.String | pl.Categorical | pl.Enum) or series.is_null().any():
        return _cells(columns, column, need, series.to_list())
    if kind == pl.Boolean:
        return series.cast(pl.Int64).to_numpy()
    if kind.is_numeric():
        return series.to_numpy()
    if isinstance(kind, pl.List | pl.Array):
        return _lists(columns, column, need, series)
    raise _misfit(columns, column, need, f"the values are {str(kind).lower()}, and numbers are wanted", 1,
                  "Turn them into numbers")  # fmt: skip


def _lists(columns: Columns, column: str, need: Need, series: pl.Series) -> NDArray[Any]:
    """Lists of one length as (N, L)."""
    import polars as pl

    lengths = series.list.len() if isinstance(series.dtype, pl.List) else None
    if lengths is not None and lengths.n_unique() > 1:
        first = int(lengths[0])
        row = int((lengths != first).arg_true()[0])
        raise _misfit(
            columns, column, need,
            f"the list has {lengths[row]} values, and the first row's {first}", row + 1,
            "Give every row a list of the same length, padded where it must be",
        )  # fmt: skip
    flat = series.explode() if isinstance(series.dtype, pl.List) else series.arr.explode()
    if flat.is_null().any():
        row = int(flat.is_null().arg_true()[0]) // max(len(flat) // len(series), 1) + 1
        raise _misfit(columns, column, need, "a value of the list is missing", row, "Fill it in")
    if not flat.dtype.is_numeric():
        raise _misfit(columns, column, need, f"the lists hold {str(flat.dtype).lower()}", 1, "Turn them into numbers")
    return flat.to_numpy().reshape(len(series), -1)


def _cells(columns: Columns, column: str, need: Need, cells: Sequence[Any]) -> NDArray[Any]:
    """Cells as numbers, labels of an enumeration as theirs, NaN where one is missing and may be; otherwise the first
    that is missing, or that is no number, is the error."""
    missing = [row for row, cell in enumerate(cells, start=1) if cell is None]
    if missing and not need.missing:
        more = f" ({len(missing)} in all)" if len(missing) > 1 else ""
        raise _misfit(columns, column, need, f"the value is missing{more}", missing[0], need.fill_in)
    text = any(isinstance(cell, str) for cell in cells)
    number = _real if text or missing or any(isinstance(cell, float) for cell in cells) else int
    if text and need.labels is not None:
        places = {label: at for at, label in enumerate(need.labels)}
        wrong, remedy = f"is none of the labels {_listed(need.labels)}", "Correct it, or add the label"
        number = places.__getitem__
    else:
        wrong = "is not a number"
        remedy = LABELS if need.kind == "finite" else "Correct it, or leave the row out"
    found: list[Any] = []
    for row, cell in enumerate(cells, start=1):
        try:
            found.append(math.nan if cell is None else number(cell))
        except (KeyError, TypeError, ValueError):
            raise _misfit(columns, column, need, f"`{cell}` {wrong}", row, remedy) from None
    array = np.array(found)
    return array if array.dtype.kind in "if" else array.astype(np.float64)


def _real(cell: Any) -> float:
    if isinstance(cell, str) and "_" in cell:
        raise ValueError(cell)
    return float(cell)


def _checked(columns: Columns, column: str, need: Need, array: NDArray[Any]) -> NDArray[Any]:
    """Values inside what the program declares; integers for finite ones and counts."""

    def refuse(bad: NDArray[np.bool_], message: str, remedy: str) -> None:
        if bad.any():
            first = int(bad.argmax())
            value = array.reshape(-1)[first]
            row = first // max(array[:1].size, 1) + 1 if array.ndim else None
            raise _misfit(columns, column, need, f"{value} {message}", row, remedy)

    if array.dtype.kind == "f":
        if not need.missing:
            refuse(np.isnan(array), "is not a number", need.fill_in)
        refuse(np.isneginf(array) if need.endless else np.isinf(array), "is infinite", "Fill in a finite value")
    if need.kind in ("finite", "count"):
        if array.dtype.kind == "f":
            refuse(
                (array != np.floor(array)) & ~np.isnan(array),
                "is not a whole number",
                takes("0, 1, 2, …", need),
            )
        refuse(array < 0, "is negative", takes("0, 1, 2, …", need))
        if need.size is not None:
            refuse(
                array >= need.size,
                f"is outside `{need.written}`, whose {need.size} values are 0 to {need.size - 1}",
                "Correct it, count from 0, or make the set larger",
            )
        _check_width(columns, column, need, array)
        return array if array.dtype.kind == "f" and np.isnan(array).any() else array.astype(np.int64)
    if need.low is not None:
        refuse(array < need.low, f"is below {need.low:g}", takes(f"values from {need.low:g} up", need))
    if need.high is not None:
        refuse(array > need.high, f"is above {need.high:g}", takes(f"values up to {need.high:g}", need))
    for end in need.excluded:
        said, remedy = no_density(end, need)
        refuse(array == end, said.partition(" ")[2], remedy)
    _check_width(columns, column, need, array)
    return array.astype(np.float64) if need.kind == "real" else array


def _check_width(columns: Columns, column: str, need: Need, array: NDArray[Any]) -> None:
    """The number of columns of a real input, and sequences where sequences are read."""
    if need.kind == "any" or (need.role == "observed" and need.plate is not None):
        return
    per_row = array.shape[1:]
    if need.sequence and need.kind != "real":
        if not per_row:
            raise _misfit(columns, column, need, "there is one value per row, and a sequence is read", 1,
                          "Give a list per row (ndjson, parquet), or an array with a length axis (npz)")  # fmt: skip
        return
    width = per_row[-1] if per_row else 1
    if need.role == "input" and width != need.width:
        message = f"there are {width} values per row, and `{need.written}` has width {need.width}"
        remedy = f"Give columns `{column}_0` … `{column}_{need.width - 1}`, or a list"
        if need.several:
            remedy += f", or an array of shape N × {' × '.join(map(str, need.several))} (npz)"
        raise _misfit(columns, column, need, message, None, remedy)


def _misfit(columns: Columns, column: str, need: Need, message: str, row: int | None, remedy: str) -> DataProblem:
    row = None if row is None else row + columns.first
    return DataProblem(message, path=columns.path, column=column, row=row, site=need.name, remedy=remedy)


def _listed(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names) or "nothing"
