"""The sets of a program as its data know them: sizes and labels of open ones, positions in those of declared size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from qvr_core.data.column_names import plainly
from qvr_core.data.needs import Axis, Need
from qvr_core.data.problems import DataProblem
from qvr_core.data.typed.labels import Elements, in_order, missing, word
from qvr_core.data.typed.layout import Layout
from qvr_core.data.typed.sources import Array, Arrays, Table


class Sets:
    """The elements of each set, worked out when first asked for; `before` are those of sets that the data may say
    nothing of."""

    def __init__(self, layout: Layout, before: Mapping[str, Elements] | None = None) -> None:
        self.layout = layout
        self.before = before or {}
        self._found: dict[str, Elements] = {}

    def of(self, axis: Axis, need: Need) -> Elements:
        """The elements of a set that `need` speaks of.  Raises `DataProblem` where nothing says what they are."""
        if axis.name is None or axis.size is not None:
            assert axis.size is not None
            first = 0 if axis.labels is not None else self.layout.sources.first
            return Elements(axis.name or "", axis.size, axis.labels, first)
        if axis.name not in self._found:
            self._found[axis.name] = self._open(axis.name, need)
        return self._found[axis.name]

    def opened(self) -> dict[str, Elements]:
        """All open sets that the needs speak of.  Raises `DataProblem`."""
        for need in self.layout.needs:
            for axis in (*(need.axes or ()), *((need.values,) if need.values is not None else ())):
                if axis.size is None:
                    self.of(axis, need)
        return dict(self._found)

    def _open(self, name: str, need: Need) -> Elements:
        for key, rows in self.layout.rows.items():
            table = self.layout.source(key)
            if rows == name and isinstance(table, Table):
                return self._of_rows(key, name, table, need)
        if (found := self._of_arrays(name)) is not None:
            return found
        labels: list[str] = []
        path = ""
        for path, column, cells in self._columns(name):
            labels += self._labels(cells, path, column, name, need)
        if not labels and name in self.before:
            return self.before[name]
        if not labels and need.values is not None and need.values.name == name:
            self.layout.source_of(need)
            self.layout.columns(need)  # where the column is missing, that is the problem
        source = self.layout.source(self.layout.key(need))
        if not labels and isinstance(source, Arrays) and self.layout.columns_in(need, source) is None:
            self.layout.columns(need)  # the array that is not there would have said it
        if not labels:
            message = f"nothing in the data says what the elements of `{name}` are"
            remedy = f"Give a file whose rows they are (`--data {name}=…`), or a size: `object {name} : FinSet …`"
            raise DataProblem(message, path=path or "the data", site=need.name, remedy=remedy)
        ordered = in_order(labels)
        return Elements(name, len(ordered), ordered, source=path)

    def _of_rows(self, key: str, name: str, table: Table, need: Need) -> Elements:
        """A set whose elements are the rows of a table, called as its label column says."""
        column = self.layout.index_column(key, name)
        if column is None:
            return Elements(name, table.rows, None, self.layout.sources.first, table.path)
        either = self.layout.or_rows(column, name)
        seen: dict[str, int] = {}
        for row, cell in enumerate(table.columns[column], 1):
            label = word(cell)
            if label is None:
                message = "the label is missing" if cell is None else f"{cell} is no label"
                raise DataProblem(message, path=table.path, column=column, row=row, site=need.name,
                                  remedy="Fill it in" + either)  # fmt: skip
            if label in seen:
                message = f"`{label}` stands in row {seen[label]} already, and each row is an element of `{name}`"
                raise DataProblem(message, path=table.path, column=column, row=row, site=need.name,
                                  remedy="Keep one of the rows" + either)  # fmt: skip
            seen[label] = row
        return Elements(name, len(seen), in_order(seen), source=table.path)

    def _of_arrays(self, name: str) -> Elements | None:
        """A set that an array runs over, with the labels that the array gives its axis."""
        for need in self.layout.needs:
            source = self.layout.source(self.layout.key(need))
            array = source.arrays.get(self.layout.sources.column(need.name)) if isinstance(source, Arrays) else None
            if array is None or not isinstance(source, Arrays):
                continue
            for at, axis in enumerate(need.axes or ()):
                place = at if array.dims is None else dim_place(array, axis, at)
                if axis.name == name and place < len(array.shape):
                    labels = array.labels[place] if array.labels else None
                    first = 0 if labels is not None else source.first
                    return Elements(name, array.shape[place], labels, first, source.path)
        return None

    def _columns(self, name: str) -> Iterator[tuple[str, str, Sequence[Any]]]:
        """Every column that names elements of the set: (file, column, entries), each once."""
        seen: set[tuple[str, str]] = set()
        for need in self.layout.needs:
            key = self.layout.key(need)
            source = self.layout.source(key)
            for column, cells in self._mentions(need, key, name):
                if source is not None and (source.path, column) not in seen:
                    seen.add((source.path, column))
                    yield source.path, column, cells

    def _mentions(self, need: Need, key: str, name: str) -> Iterator[tuple[str, Sequence[Any]]]:
        source = self.layout.source(key)
        column = self.layout.sources.column(need.name)
        if need.values is not None and need.values.name == name:
            if isinstance(source, Table) and column in source.columns:
                yield column, source.columns[column]
            elif isinstance(source, Arrays) and column in source.arrays:
                yield column, source.arrays[column].flat
        found = self.layout.columns_in(need, source)
        for axis in need.axes or ():
            if axis.name != name or not isinstance(source, Table):
                continue
            if found is not None and found.spread == "axis" and need.axes and axis is need.axes[-1]:
                yield need.name, found.names
            elif (index := self.layout.index_column(key, name)) is not None:
                yield index, source.columns[index]

    def _labels(self, cells: Sequence[Any], path: str, column: str, name: str, need: Need) -> list[str]:
        found: dict[str, None] = {}
        for row, cell in enumerate(cells, 1):
            label = None if isinstance(cell, list | tuple) else word(cell)
            if label is not None:
                found[label] = None
            elif not missing(cell):
                message = f"{cell} is no element of a set: `{name}` takes text or whole numbers"
                raise DataProblem(message, path=path, column=column, row=row, site=need.name, remedy="Correct it")
        return list(found)


def dim_place(array: Array, axis: Axis, at: int) -> int:
    """The place of an axis among the named ones of an array; `at` where none has its name."""
    names = [plainly(dim) for dim in array.dims or ()]
    return names.index(plainly(axis.name)) if axis.name is not None and plainly(axis.name) in names else at
