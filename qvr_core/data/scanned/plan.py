"""Whether a table can be read by blocks of its rows, and what is read of it then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

from qvr_core.data.needs import Axis, Need
from qvr_core.data.scanned.files import ParquetTable
from qvr_core.data.typed.layout import MAIN, Layout
from qvr_core.data.typed.sources import Source, Sources, Table

STREAMED = 64 * 2**20
"""Bytes of numbers that are read of a table; above, it is scanned by blocks."""


class Unread(Mapping[str, Sequence[Any]]):
    """The columns of a table by name, of which those in `held` alone have entries here."""

    def __init__(self, names: Sequence[str], held: Mapping[str, Sequence[Any]]) -> None:
        self._names = dict.fromkeys(names)
        self._held = held

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __getitem__(self, name: str) -> Sequence[Any]:
        return self._held[name]


@dataclass(frozen=True)
class Plan:
    """A table whose rows are the elements of the set `rows`.

    `needs` are what it holds of each row, `columns` what is read of it, and `identity` a column that numbers the rows,
    if there is one, whose values must ascend.  `sources` are all sources of the run, this table by the names of its
    columns alone.
    """

    table: ParquetTable
    rows: str
    needs: tuple[Need, ...]
    others: tuple[Need, ...]
    columns: tuple[str, ...]
    identity: str | None
    sources: Sources

    @cached_property
    def numbers(self) -> int:
        """Numbers that are read of a row."""
        columns = {need: len(self.layout.columns(need).names) for need in self.needs}
        return sum(count if count > 1 else prod(need.element) for need, count in columns.items())

    def with_labels(self, held: Mapping[str, Sequence[Any]]) -> Sources:
        """The sources, with the entries of some columns."""
        main = self.sources.main
        assert isinstance(main, Table)
        return replace(self.sources, main=replace(main, columns=Unread(list(main.columns), held)))

    @cached_property
    def layout(self) -> Layout:
        """Where the names stand."""
        return Layout((*self.needs, *self.others), self.sources)


def planned(
    table: ParquetTable,
    needs: Sequence[Need],
    rows: str,
    named: Mapping[str, Source],
    columns: Mapping[str, str | tuple[str, ...]],
    first: int,
) -> Plan | str:
    """How a table whose rows are elements of the set `rows` is read by blocks, or why it cannot be.

    Raises `DataProblem` where a name has no column.
    """
    names = table.columns
    sources = Sources(Table(table.path, Unread(names, {}), table.rows), named, columns, first)
    identity = Layout([], sources).index_column(MAIN, rows)
    if identity is not None and any(identity == sources.column(need.name) for need in needs):
        return f"its column `{identity}` is read, and says which element of `{rows}` each row is as well"
    main = Table(table.path, Unread([name for name in names if name != identity], {}), table.rows)
    sources = replace(sources, main=main)
    laid = [_laid(need, rows) for need in needs]
    layout = Layout(laid, sources)
    mine = [need for need in laid if layout.key(need) == MAIN]
    for need in mine:
        if need.axes is None:
            return f"nothing says that `{need.name}` runs over `{rows}` (declare it: `data {need.name} : {rows}`)"
        layout.columns(need)  # raises where there are none
        over = [axis.name for axis in layout.across(need)]
        if over != [rows] or rows in [axis.name for axis in need.axes[1:]]:
            runs = " * ".join(str(name) for name in over) or "no set"
            return f"`{need.name}` runs over {runs}, not over `{rows}` (give it in a file of its own)"
        if need.sequence:
            return f"`{need.name}` holds sequences"
        if need.missing == "impute":
            return f"missing cells of `{need.name}` are latents of all rows"
    labelled = {need.values.name for need in mine if need.values is not None}
    across = next((axis for need in mine for axis in (need.axes or ())[1:] if axis.size is None), None)
    if across is not None and across.name in labelled:
        return f"columns and cells of it name elements of `{across.name}`"
    if not mine or layout.rows.get(MAIN) != rows:
        return f"its rows are not the elements of `{rows}`"
    read = dict.fromkeys(name for need in mine for name in layout.columns(need).names)
    table.check(list(read))
    others = tuple(need for need in laid if need not in mine)
    return Plan(table, rows, tuple(mine), others, tuple(read), identity, sources)


def _laid(need: Need, rows: str) -> Need:
    """An observed name of declared size as one that is laid along its set."""
    if need.axes is None and need.plate is not None and need.plate[0] == rows:
        return replace(need, axes=(Axis(rows, need.plate[1]),))
    return need
