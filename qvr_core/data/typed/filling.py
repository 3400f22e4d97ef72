"""A data name's numbers, laid along its axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, cast

from qvr_core.data.needs import Need
from qvr_core.data.problems import DataProblem
from qvr_core.data.typed.cell_values import Number, Wrong, reader
from qvr_core.data.typed.labels import Elements, missing
from qvr_core.data.typed.layout import Columns, Layout
from qvr_core.data.typed.sentence_cells import cells_of_array, padded, sentences, words_of
from qvr_core.data.typed.sets import Sets, dim_place
from qvr_core.data.typed.sources import Array, Arrays, Table
from qvr_core.semantics.types.data_text import missing_advice


@dataclass(frozen=True)
class Filled:
    """The numbers of one need, the last index fastest; None where an entry is missing."""

    need: Need
    shape: tuple[int, ...]
    flat: list[Number | None]
    missing: int = 0


ROUNDING = 1e-4
"""How far probabilities of a simplex may be from adding up to 1."""


def fill(need: Need, layout: Layout, sets: Sets) -> Filled:
    """The numbers of a need.  Raises `DataProblem`."""
    axes = [sets.of(axis, need) for axis in need.axes or ()]
    if rows := layout.long_tables_of(need):
        return _ends(need, rows, layout, sets, [axis.size for axis in axes])
    source = layout.source_of(need)
    columns = layout.columns(need)
    if need.lexicon is not None:
        return _sentences(need, columns.names[0], source, axes, layout)
    values = sets.of(need.values, need) if need.values is not None else None
    if values is not None and values.labels is None:
        # positions count as the file that holds them does
        values = replace(values, first=source.first if isinstance(source, Arrays) else layout.sources.first)
    read = reader(need, values)
    if isinstance(source, Arrays):
        filled = _from_array(need, columns.names[0], source, axes, read, layout.sources.rows)
    else:
        filled = _from_table(need, columns, source, axes, read, layout)
    _check_simplex(filled, source.path)
    return filled


# ---------------------------------------------------------------- sentences


def _sentences(need: Need, column: str, source: Table | Arrays, axes: Sequence[Elements], layout: Layout) -> Filled:
    """Numbers of words, padded behind the ends of sentences."""
    first = source.first if isinstance(source, Arrays) else layout.sources.first
    words = words_of(need, source.path, first)
    size = prod(axis.size for axis in axes)
    if isinstance(source, Table):
        rows: list[list[int] | None] = [None] * size
        offsets = _offsets(need, source, axes, layout)
        if axes and layout.finest(need):
            _check_once(need, source, offsets, axes, layout)
        for offset, found in zip(
            offsets, sentences(source.columns[column], need, source.path, column, words), strict=True
        ):
            rows[offset] = found
        if None in rows:
            raise _absent(need, source, rows.index(None), axes)
        made = [row for row in rows if row is not None]
    else:
        array = source.arrays[column]
        cells = cells_of_array(array, len(axes))
        if cells is None or len(cells) != size:
            message = f"the shape is {_written(array.shape)}, and `{need.written}` takes {_written((size,))} sentences"
            raise DataProblem(message, path=source.path, column=column, site=need.name, remedy=_expected(axes))
        made = sentences(cells, need, source.path, column, words)
    flat, length = padded(made)
    return Filled(need, (*(axis.size for axis in axes), length), list(flat))


# ---------------------------------------------------------------- lengths that a long table tells


def _ends(need: Need, rows: Sequence[Need], layout: Layout, sets: Sets, shape: Sequence[int]) -> Filled:
    """How many elements each sequence has: one more than the last place that a row is about."""
    flat: list[Number | None] = [0] * prod(shape)
    for one in rows:
        source = layout.source_of(one)
        axes = [sets.of(axis, one) for axis in one.axes or ()]
        assert isinstance(source, Table)
        for offset in _offsets(one, source, axes, layout):
            sequence, place = divmod(offset, axes[-1].size)
            flat[sequence] = max(flat[sequence] or 0, place + 1)
    return Filled(need, tuple(shape), flat)


# ---------------------------------------------------------------- tables


def _from_table(
    need: Need,
    columns: Columns,
    table: Table,
    axes: Sequence[Elements],
    read: Callable[[Any], Number],
    layout: Layout,
) -> Filled:
    across = axes[:-1] if columns.spread == "axis" else axes
    if columns.spread == "axis" and len(columns.names) != axes[-1].size:
        message = f"{len(columns.names)} columns are listed, and `{axes[-1].name}` has {axes[-1].size} elements"
        raise DataProblem(message, path=table.path, site=need.name, remedy="List one column for each element")
    offsets = _offsets(need, table, across, layout)
    if across and layout.finest(need):
        _check_once(need, table, offsets, across, layout)
    per_row = _widths(need, columns, table)
    shape = (*(axis.size for axis in axes), *per_row)
    inner = prod((*per_row, axes[-1].size) if columns.spread == "axis" else per_row)
    flat: list[Number | None] = [None] * prod(shape)
    taken: dict[int, int] = {}
    gone: DataProblem | None = None
    for at, column in enumerate(columns.names):
        cells = table.columns[column]
        step = inner // len(columns.names)
        place = _place_of(column, at, axes[-1]) if columns.spread == "axis" else at
        for row, (offset, cell) in enumerate(zip(offsets, cells, strict=True), 1):
            start = offset * inner + place * step
            if missing(cell):
                gone = gone or _missing(need, table.path, column, row)
                continue
            found = _numbers(cell, step, need, table.path, column, row, read)
            if start in taken and flat[start : start + step] != found:
                raise _twice(need, table, column, row, taken[start], across)
            taken[start] = row
            flat[start : start + step] = found
    count = sum(number is None for number in flat)
    if need.missing:
        gone = None
    elif gone is None and count:
        gone = _absent(need, table, flat.index(None) // inner, across)
    if gone is not None:
        raise gone
    return Filled(need, shape, flat, count)


def _check_once(need: Need, table: Table, offsets: Sequence[int], across: Sequence[Elements], layout: Layout) -> None:
    """Two rows for a cell, whether they say the same or not."""
    seen: dict[int, int] = {}
    for row, offset in enumerate(offsets, 1):
        if offset in seen:
            message = f"row {seen[offset]} is about {cell_words(offset, across)} already"
            key, name = layout.key(need), across[0].name
            column = layout.index_column(key, name) if len(across) == 1 else None
            remedy = f"Keep one of them{layout.or_rows(column, name)}"
            raise DataProblem(message, path=table.path, row=row, site=need.name, remedy=remedy)
        seen[offset] = row


def _place_of(column: str, at: int, axis: Elements) -> int:
    """Which element of the last axis a column stands for: an open set is called as the columns are."""
    found = axis.place(column) if axis.source and axis.labels is not None else None
    return at if found is None else found


def _numbers(
    cell: Any, count: int, need: Need, path: str, column: str, row: int, read: Callable[[Any], Number]
) -> list[Number]:
    """The numbers of one entry: one, or a list."""
    items = cast(Sequence[Any], cell) if isinstance(cell, list | tuple) else [cell]
    if len(items) != count:
        message = f"there are {len(items)} values, and {count} are wanted"
        raise DataProblem(message, path=path, column=column, row=row, site=need.name, remedy=f"`{need.written}`")
    try:
        return [read(item) for item in items]
    except Wrong as wrong:
        raise DataProblem(
            wrong.message, path=path, column=column, row=row, site=need.name, remedy=wrong.remedy
        ) from wrong


def _widths(need: Need, columns: Columns, table: Table) -> tuple[int, ...]:
    """The shape of one element; of a sequence its length, which the first row tells."""
    if not need.sequence:
        return need.element
    first: Any = next((cell for cell in table.columns[columns.names[0]] if not missing(cell)), ())
    if not isinstance(first, list | tuple):
        message = "there is one value per row, and a sequence is read"
        remedy = "Give a list per row (ndjson, parquet), or an array with a length axis (npz)"
        raise DataProblem(message, path=table.path, column=columns.names[0], row=1, site=need.name, remedy=remedy)
    return (len(cast(Sequence[Any], first)),)


def _offsets(need: Need, table: Table, across: Sequence[Elements], layout: Layout) -> list[int]:
    """Where each row belongs, counted in elements of the axes `across` the rows."""
    key = layout.key(need)
    places = [_places(need, key, table, axis, at, across, layout) for at, axis in enumerate(across)]
    if not places:
        return _single(need, table, layout)
    if len(places) == 1:
        return list(places[0])
    strides = [prod(axis.size for axis in across[at + 1 :]) for at in range(len(across))]
    return [sum(p * s for p, s in zip(row, strides, strict=True)) for row in zip(*places, strict=True)]


def _single(need: Need, table: Table, layout: Layout) -> list[int]:
    column = layout.columns(need).names[0]
    if len({str(cell) for cell in table.columns[column]}) > 1:
        message = f"`{need.name}` is a single value, and the column holds several"
        remedy = "Give it in a file of its own, or say what it runs over"
        raise DataProblem(message, path=table.path, column=column, site=need.name, remedy=remedy)
    return [0] * table.rows


def _places(
    need: Need, key: str, table: Table, axis: Elements, at: int, across: Sequence[Elements], layout: Layout
) -> Sequence[int]:
    """The element of one axis that each row is about."""
    rows, column = layout.rows.get(key), layout.index_column(key, axis.name) if axis.name else None
    if rows == axis.name or (column is None and rows is None and not axis.name):
        if table.rows != axis.size and table.whole:
            raise _row_count(need, table, axis)
        if column is None or axis.labels is None:
            return range(table.rows)
    if column is None:
        over = f"the rows of {table.path} are those of `{rows}`" if rows else "the rows have no set"
        message = f"`{need.name}` runs over `{axis.name}`, and {over}"
        remedy = f"Give a column `{axis.name}` that says each row's, or a file of its own: `--data {axis.name}=…`"
        raise DataProblem(message, path=table.path, site=need.name, remedy=remedy)
    del at, across
    either = layout.or_rows(column, axis.name)
    if either and axis.labels is None:
        either = f", or, where they count from 1, say `one_based = true` in qvr.toml{either}"
    return [_place(need, table, column, row, cell, axis, either) for row, cell in enumerate(table.columns[column], 1)]


def _place(need: Need, table: Table, column: str, row: int, cell: Any, axis: Elements, either: str) -> int:
    place = None if missing(cell) else axis.place(cell)
    if place is None:
        listed = f", which {axis.source} lists" if axis.source and axis.labels is not None else ""
        shown = "the label is missing" if missing(cell) else f"`{cell}` is not in `{axis.name}`{listed}: {axis.wanted}"
        remedy = "Fill it in" if missing(cell) else axis.remedy
        raise DataProblem(shown, path=table.path, column=column, row=row, site=need.name, remedy=remedy + either)
    return place


def _row_count(need: Need, table: Table, axis: Elements) -> DataProblem:
    rows = f"there {'is' if table.rows == 1 else 'are'} {table.rows} row{'' if table.rows == 1 else 's'}"
    where = f" in {axis.source}" if axis.source and axis.source != table.path else ""
    return DataProblem(
        f"{rows}, and `{axis.name or need.name}` has {axis.size} elements{where}",
        path=table.path,
        site=need.name,
        remedy=f"Give one row for each, change its size, or let it come with the data: `object {axis.name} : FinSet _`",
    )


def _missing(need: Need, path: str, column: str, row: int) -> DataProblem:
    return DataProblem(
        "the value is missing", path=path, column=column, row=row, site=need.name,
        remedy=need.fill_in,
    )  # fmt: skip


def _absent(need: Need, table: Table, offset: int, across: Sequence[Elements]) -> DataProblem:
    """A cell of the axes that no row is about."""
    return DataProblem(
        f"no row is about {cell_words(offset, across)}",
        path=table.path,
        site=need.name,
        remedy="Give a row for it" + (f"; {missing_advice(need.name)}" if need.role == "observed" else ""),
    )


def _twice(need: Need, table: Table, column: str, row: int, before: int, across: Sequence[Elements]) -> DataProblem:
    names = " and ".join(f"`{axis.name}`" for axis in across)
    message = f"row {before} has the same {names}, and another value"
    return DataProblem(message, path=table.path, column=column, row=row, site=need.name, remedy="Keep one of them")


def cell_words(offset: int, across: Sequence[Elements]) -> str:
    """'Subject ann, Time 2'."""
    words: list[str] = []
    for axis in reversed(across):
        offset, at = divmod(offset, axis.size)
        words.append(f"{axis.name} {axis.labels[at] if axis.labels else at + axis.first}")
    return ", ".join(reversed(words))


# ---------------------------------------------------------------- arrays


def _from_array(
    need: Need,
    name: str,
    source: Arrays,
    axes: Sequence[Elements],
    read: Callable[[Any], Number],
    rows: int | None,
) -> Filled:
    array = _laid(source.arrays[name].even(source.path, name), need, axes, source.path)
    length = (array.shape[len(axes)],) if need.sequence and len(array.shape) > len(axes) else ()
    shape = (*(axis.size for axis in axes), *length, *need.element)
    shape = () if need.aligned and not array.shape else shape
    if not need.element and array.shape == (*shape, 1):
        # one number each, as a column
        array = Array(shape, array.flat)
    if rows is not None and array.shape == (rows, *shape):
        shape = array.shape
    if array.shape != shape:
        message = f"the shape is {_written(array.shape)}, and `{need.written}` takes {_written(shape)}"
        raise DataProblem(message, path=source.path, column=name, site=need.name, remedy=_expected(axes))
    flat: list[Number | None] = []
    for at, cell in enumerate(array.flat):
        try:
            if missing(cell) and not need.missing:
                raise Wrong("the value is missing", need.fill_in)
            flat.append(None if missing(cell) else read(cell))
        except Wrong as wrong:
            place = _index(at, array.shape)
            message = f"{wrong.message} (at {list(place)})" if place else wrong.message
            raise DataProblem(message, path=source.path, column=name, site=need.name, remedy=wrong.remedy) from wrong
    return Filled(need, shape, flat, flat.count(None))


def _laid(array: Array, need: Need, elements: Sequence[Elements], path: str) -> Array:
    """The array with its named axes in the order of the declaration, and labelled elements in that of their set."""
    axes = need.axes or ()
    if not (array.dims or array.labels) or len(array.shape) < len(axes):
        return array
    order = [dim_place(array, axis, at) for at, axis in enumerate(axes)]
    order += [at for at in range(len(array.shape)) if at not in order]
    if len(set(order)) < len(order):
        return array
    shape = tuple(array.shape[at] for at in order)
    labels = [array.labels[at] if array.labels else None for at in order]
    places = [
        _along(labels[at], elements[at], size, need, path) if at < len(elements) else range(size)
        for at, size in enumerate(shape)
    ]
    if order == list(range(len(order))) and all(
        list(place) == list(range(size)) for place, size in zip(places, shape, strict=True)
    ):
        return array
    strides = [prod(array.shape[at + 1 :]) for at in range(len(array.shape))]
    flat = [
        array.flat[sum(index * strides[at] for index, at in zip(place, order, strict=True))]
        for place in product(*places)
    ]
    return Array(shape, flat)


def _along(labels: tuple[str, ...] | None, axis: Elements, size: int, need: Need, path: str) -> Sequence[int]:
    """Where the elements of a set stand along an axis of an array.  Raises `DataProblem` where it has others."""
    counted = tuple(map(str, range(size)))
    if labels is None or axis.labels is None or labels in (axis.labels, counted):
        return range(size)
    if len(labels) != axis.size or set(labels) != set(axis.labels):
        found = replace(axis, labels=labels, _places={})
        message = f"the elements of `{axis.name}` are {axis.wanted}, and the array has {found.wanted}"
        raise DataProblem(message, path=path, column=need.name, site=need.name, remedy="Give the same elements")
    places = {label: place for place, label in enumerate(labels)}
    return [places[label] for label in axis.labels]


def _written(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) if shape else "a single number"


def _expected(axes: Sequence[Elements]) -> str:
    sizes = ", ".join(f"`{axis.name}` has {axis.size}" for axis in axes if axis.name)
    return f"{sizes}" if sizes else "Give one number"


def _index(at: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    found: list[int] = []
    for size in reversed(shape):
        at, place = divmod(at, size)
        found.append(place)
    return tuple(reversed(found))


# ---------------------------------------------------------------- values together


def _check_simplex(filled: Filled, path: str) -> None:
    need = filled.need
    if need.constraint != "Simplex":
        return
    size = need.element[-1]
    for row in range(len(filled.flat) // size):
        numbers = filled.flat[row * size : (row + 1) * size]
        total = sum(number or 0.0 for number in numbers)
        if None not in numbers and abs(total - 1.0) > ROUNDING:
            message = f"the probabilities add up to {total:g}"
            raise DataProblem(message, path=path, row=row + 1, site=need.name, remedy="Divide them by their sum")
