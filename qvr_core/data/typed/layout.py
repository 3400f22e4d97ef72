"""Where each data name is found: in which source, in which columns, and what the rows of that source are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from qvr_core.data.column_names import nearest, plainly, renaming
from qvr_core.data.needs import Axis, Need
from qvr_core.data.problems import DataProblem, NoColumn
from qvr_core.data.typed.labels import missing, whole, word
from qvr_core.data.typed.sources import Arrays, Source, Sources, Table

MAIN = ""
"""The key of the source that no name is given for."""


@dataclass(frozen=True)
class Columns:
    """The columns of a need: one, or one for each element of its last axis or of one value."""

    names: tuple[str, ...]
    spread: str = ""
    """'axis' where they run along the last axis, 'element' where they make up one value, '' for one column."""


class Layout:
    """The typed needs of a program, laid out over its sources."""

    def __init__(self, needs: Sequence[Need], sources: Sources) -> None:
        self.needs = [need for need in needs if need.axes is not None]
        self.sources = sources
        self._numbers: dict[tuple[str, str], bool] = {}

    def key(self, need: Need) -> str:
        """The source of a need, by its key in `Sources.named`; `MAIN` for the main one."""
        named = self.sources.named
        if need.name in named:
            return need.name
        keys = [axis.name for axis in need.axes or () if axis.name in named]
        keys += [MAIN] if self.sources.main is not None else []
        found = next((key for key in keys if key is not None and self._holds(need, self.source(key))), None)
        return found if found is not None else next((key for key in keys if key is not None), MAIN)

    def _holds(self, need: Need, source: Source | None) -> bool:
        """Whether a source has any of a need's columns: those that settings list need not stand in this one."""
        found = self.columns_in(need, source)
        return source is not None and found is not None and any(name in _names(source) for name in found.names)

    def source(self, key: str) -> Source | None:
        """The file of a key; None where there is no main one."""
        return self.sources.main if key == MAIN else self.sources.named[key]

    def source_of(self, need: Need) -> Source:
        """Raises `DataProblem` where there is none."""
        source = self.source(self.key(need))
        if source is None:
            sets = " or ".join(f"`{axis.name}=…`" for axis in need.axes or () if axis.name)
            remedy = f"Name a file for it: `--data {need.name}=…`" + (f", or for its rows: {sets}" if sets else "")
            raise DataProblem(
                f"no file holds `{need.name}`", path="the data", site=need.name, remedy=remedy, usage=True
            )
        return source

    # ---------------------------------------------------------------- columns

    def columns(self, need: Need) -> Columns:
        """Where a need is found in its source.  Raises `DataProblem` with the nearest names."""
        source = self.source_of(need)
        found = self.columns_in(need, source)
        if found is not None:
            missing = [name for name in found.names if name not in _names(source)]
            if missing:
                raise self._no_column(need, missing[0], source)
            return found
        raise self._no_column(need, self.sources.column(need.name), source)

    def columns_in(self, need: Need, source: Source | None) -> Columns | None:
        """The columns that a need would have in a source; None where nothing there bears its name."""
        if source is None:
            return None
        names, column = _names(source), self.sources.column(need.name)
        if (listed := self.sources.listed_columns(need.name)) is not None:
            spread = "element" if need.element and len(listed) == need.element[-1] else "axis"
            return Columns(listed, spread)
        if column in names:
            return Columns((column,))
        if isinstance(source, Arrays):
            return None
        if len(need.element) == 1 and f"{column}_0" in names:
            return Columns(tuple(f"{column}_{at}" for at in range(need.element[0])), "element")
        last = need.axes[-1] if need.axes and len(need.axes) > 1 else None
        return None if last is None else self._wide(column, last, names)

    def gives(self, need: Need) -> bool:
        """Whether the data give a name: by a file or a column of its own, or by the rows that it counts."""
        if need.name in self.sources.named or self.columns_in(need, self.source(self.key(need))) is not None:
            return True
        return bool(self.long_tables_of(need))

    def long_tables_of(self, need: Need) -> list[Need]:
        """The ragged names whose rows tell these lengths, where no column does."""
        if not need.counts or need.name in self.sources.named:
            return []
        if self.columns_in(need, self.source(self.key(need))) is not None:
            return []
        found = [replace(need, name=name, axes=axes, purpose=None, counts=()) for name, axes in need.counts]
        return [one for one in found if self._is_long(one)]

    def _is_long(self, need: Need) -> bool:
        """Whether each row of a name's table is about one element, whose place columns tell."""
        key = self.key(need)
        source = self.source(key)
        found = self.columns_in(need, source)
        if not isinstance(source, Table) or (found is not None and found.spread == "axis"):
            return False
        return all(axis.name is not None and self.index_column(key, axis.name) for axis in need.axes or ())

    def _wide(self, column: str, last: Axis, names: Sequence[str]) -> Columns | None:
        """Columns for the elements of the last axis: called like its labels, or by name and label or number."""
        labels = last.labels or ()
        for spelt in (labels, tuple(f"{column}_{label}" for label in labels)):
            if spelt and sum(one in names for one in spelt) > len(spelt) / 2:
                return Columns(tuple(spelt), "axis")
        if last.size is not None and f"{column}_{self.sources.first}" in names:
            first = self.sources.first
            return Columns(tuple(f"{column}_{at + first}" for at in range(last.size)), "axis")
        return None

    def _no_column(self, need: Need, column: str, source: Source) -> DataProblem:
        wide = ""
        if isinstance(source, Table) and len(need.axes or ()) > 1:
            wide = f', or which columns make it up: `columns = {{ {need.name} = ["…", "…"] }}` in qvr.toml'
        return no_column(need, column, source, wide)

    # ---------------------------------------------------------------- rows

    def index_column(self, key: str, name: str) -> str | None:
        """The column of a table that says which element of the set `name` each row is about."""
        source = self.source(key)
        if not isinstance(source, Table):
            return None
        renamed = self.sources.columns.get(name)
        if isinstance(renamed, str):
            return renamed if renamed in source.columns else None
        same = next((column for column in source.columns if plainly(column) == plainly(name)), None)
        if same is not None:
            if (key, name) not in self._numbers:
                self._numbers[key, name] = self._only_numbers(key, source, same, name)
            if self._numbers[key, name]:
                return None
        return same if same is not None else next(self._holding(source, name), None)

    def or_rows(self, column: str | None, name: str) -> str:
        """What else a user may do where the column that names a set's elements is read as numbers too; else nothing."""
        need = self._own_numbers(column, name) if column is not None else None
        if need is None:
            return ""
        return (
            f". If the rows are the elements of `{name}` and `{need.name}` is only a number of each, call the set "
            f"otherwise than the column: `object {name}Row`"
        )

    def _own_numbers(self, column: str, name: str) -> Need | None:
        """The data name that takes as numbers over the set `name` a column which is called like that set."""
        for need in self.needs:
            over = [axis.name for axis in need.axes or ()] == [name]
            if over and need.values is None and not need.element and self.sources.column(need.name) == column:
                return need
        return None

    def _only_numbers(self, key: str, table: Table, column: str, name: str) -> bool:
        """Whether a column called like a set is a data name's numbers and cannot name the elements, which the rows are.

        `data day : Day` of a column `day`: whole numbers that differ name the days of an open set too (the values
        are the same then), and so do the positions of a set of declared size.  Fractions name nothing, nor do days 1
        to 14 in a set of 14, whose positions count from 0; where those stand in another order than the rows, counting
        from 1 would be another reading, so the column stays an index and is refused with both.
        """
        need = self._own_numbers(column, name)
        beside = [one for one in self.needs if self.key(one) == key]
        if need is None or any({axis.name for axis in self.across(one)} != {name} for one in beside):
            return False
        axis = next(iter(need.axes or ()))
        cells = table.columns[column]
        if axis.labels is not None:
            return not any(word(cell) in axis.labels for cell in cells)
        numbers = [None if missing(cell) else whole(cell) for cell in cells]
        if axis.size is None:
            return any(number is None and not missing(cell) and not isinstance(cell, str)
                       for number, cell in zip(numbers, cells, strict=True))  # fmt: skip
        found = [number for number in numbers if number is not None]
        if len(set(found)) < len(cells) or not found:
            return True
        ordered = sorted(found)
        counted = ordered[-1] - ordered[0] == len(ordered) - 1 and ordered[0] in (0, 1)
        return not counted or (found == ordered and ordered[0] != self.sources.first)

    def _holding(self, table: Table, name: str) -> Iterator[str]:
        """Columns of data names whose values are elements of the set, and that do not run over it themselves."""
        for need in self.needs:
            holds = need.values is not None and need.values.name == name
            column = self.sources.column(need.name)
            if holds and column in table.columns and all(axis.name != name for axis in need.axes or ()):
                yield column

    @cached_property
    def rows(self) -> dict[str, str]:
        """The set that the rows of each table are, by its key; none for a long table whose columns index all sets."""
        found = {key: key for key in self.sources.named if any(_speaks_of(need, key) for need in self.needs)}
        for need in self.needs:
            key = self.key(need)
            if key not in found and isinstance(self.source(key), Table):
                bare = [axis for axis in self.across(need) if self._bare(key, axis)]
                if bare and bare[0].name is not None:
                    found[key] = bare[0].name
        return found

    def _bare(self, key: str, axis: Axis) -> bool:
        return axis.name is None or self.index_column(key, axis.name) is None

    def finest(self, need: Need) -> bool:
        """Whether no other need of its table runs over more sets: each row is then about an element of its own."""
        key = self.key(need)
        others = [one for one in self.needs if self.key(one) == key]
        sets = {axis.name for one in others for axis in self.across(one)} | {self.rows.get(key)} - {None}
        return sets <= {axis.name for axis in self.across(need)}

    def across(self, need: Need) -> tuple[Axis, ...]:
        """The axes that the rows of a need's table run over: all but one that stands in columns."""
        axes = need.axes or ()
        found = self.columns_in(need, self.source(self.key(need)))
        return axes[:-1] if found is not None and found.spread == "axis" else axes


def no_column(need: Need, column: str, source: Source, more: str = "") -> NoColumn:
    """A source has nothing of a need's name; `more` are further ways to say where it is."""
    names = _names(source)
    near = nearest(column, names)
    guess = f"Did you mean `{near}`? " if near else ""
    what = "array" if isinstance(source, Arrays) else "column"
    return NoColumn(
        f"there is no {what} `{column}`; the {what}s are {source.listed}",
        path=source.path,
        site=need.name,
        remedy=f"{guess}Say what it is called: `{renaming(need.name, near or '…')}`, or "
        f'`columns = {{ {need.name} = "{near or "…"}" }}` in qvr.toml{more}',
        usage=column != need.name,
    ).near(near)


def _speaks_of(need: Need, name: str) -> bool:
    return any(axis.name == name for axis in (*(need.axes or ()), *((need.values,) if need.values else ())))


def _names(source: Source) -> Sequence[str]:
    return list(source.columns if isinstance(source, Table) else source.arrays)
