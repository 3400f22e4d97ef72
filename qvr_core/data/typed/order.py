"""The order of a set along which a program reads earlier elements: files may have their rows in another one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from qvr_core.data.needs import Axis, Need
from qvr_core.data.problems import DataProblem
from qvr_core.data.typed.labels import in_order, word
from qvr_core.data.typed.layout import Layout
from qvr_core.data.typed.sources import Sources, Table
from qvr_core.semantics.file.open_sets import KnownSet


def check_ascending(known: Mapping[str, KnownSet], shifted: Collection[str]) -> None:
    """Raises `DataProblem` for a set whose numbers or dates do not ascend, which only those of arrays can."""
    for name, found in known.items():
        if name in shifted and found.labels is not None and found.labels != in_order(found.labels):
            at = next(i for i, label in enumerate(in_order(found.labels)) if label != found.labels[i])
            message = f"the elements of `{name}` do not ascend (`{found.labels[at]}` is number {at + 1}), and the "
            message += "program reads earlier ones"
            raise DataProblem(message, path="the data", remedy=f"Sort the arrays along `{name}`")


def sorted_sets(needs: Sequence[Need], sources: Sources, shifted: Collection[str]) -> Mapping[str, str]:
    """The file of each set whose rows do not ascend within each group, and were sorted."""
    layout = Layout(needs, sources)
    return {
        axis.name: table.path
        for need in layout.needs
        for axis in layout.across(need)
        if axis.name is not None and axis.name in shifted
        if isinstance(table := layout.source(layout.key(need)), Table)
        if not _ascends(table, layout.key(need), axis, layout.across(need), layout)
    }


def _ascends(table: Table, key: str, axis: Axis, across: Sequence[Axis], layout: Layout) -> bool:
    column = layout.index_column(key, axis.name) if axis.name is not None else None
    if column is None:
        return True
    others = [each for each in (layout.index_column(key, one.name or "") for one in across if one is not axis) if each]
    ranks = {label: at for at, label in enumerate(in_order(_words(table, column)))}
    last: dict[tuple[str, ...], int] = {}
    for label, *group in zip(*(_each(table, name) for name in (column, *others)), strict=True):
        rank = ranks.get(label, -1)
        if rank < last.get(tuple(group), -1):
            return False
        last[tuple(group)] = rank
    return True


def _words(table: Table, column: str) -> Iterator[str]:
    return (label for label in _each(table, column) if label)


def _each(table: Table, column: str) -> Iterator[str]:
    return (word(cell) or "" for cell in table.columns[column])
