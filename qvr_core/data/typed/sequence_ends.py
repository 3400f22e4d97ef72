"""Sequences whose lengths a data name gives: values that are wanted and not there, and values behind the ends."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from qvr_core.data.needs import Need
from qvr_core.data.problems import DataProblem
from qvr_core.data.typed.filling import Filled, cell_words, fill
from qvr_core.data.typed.layout import Layout
from qvr_core.data.typed.sets import Sets
from qvr_core.data.typed.sources import Table


def fill_sequences(need: Need, layout: Layout, sets: Sets) -> Filled:
    """The numbers of a need, as `fill`.  Raises `DataProblem` where an element that exists has no value and may not
    lack it, too."""
    filled, source = fill(need, layout, sets), layout.source_of(need)
    if need.missing in ("", "lengths") and filled.missing and not (isinstance(source, Table) and not source.whole):
        for at, existing, count in _elements(filled, layout, sets):
            if existing and filled.flat[at] is None:
                raise DataProblem(
                    f"there is no value for {_place(filled, at, sets)}, and `{need.counted}` is {count} there",
                    path=source.path,
                    site=need.name,
                    remedy=f"Give it, or end the sequence before it by a smaller `{need.counted}`",
                )
    return filled


def unread(filled: Filled, layout: Layout, sets: Sets) -> DataProblem | None:
    """What says that rows of a table lie behind the ends of their sequences; arrays are padded there."""
    need, source = filled.need, layout.source_of(filled.need)
    if not isinstance(source, Table):
        return None
    beyond = [
        (at, count)
        for at, existing, count in _elements(filled, layout, sets)
        if not existing and filled.flat[at] is not None
    ]
    if not beyond:
        return None
    (first, count), inner = beyond[0], prod(need.element)
    number = len(beyond) // inner
    values = "1 value is not read" if number == 1 else f"{number:,} values are not read"
    return DataProblem(
        f"{values}: the first is that of {_place(filled, first, sets)}, where `{need.counted}` is {count}",
        path=source.path,
        site=need.name,
        remedy=f"A larger `{need.counted}` reads them",
    )


def _elements(filled: Filled, layout: Layout, sets: Sets) -> Iterator[tuple[int, bool, int]]:
    """Each number of sequences with lengths: where it stands, whether its element exists, how many the sequence has."""
    need = filled.need
    counts = _counts(need, layout, sets)
    axes = [sets.of(axis, need) for axis in need.axes or ()]
    if counts is None or len(counts.flat) != prod(axis.size for axis in axes[:-1]):
        return
    inner, most = prod(filled.shape[len(axes) :]), axes[-1].size
    for at in range(len(filled.flat)):
        sequence, place = divmod(at // inner, most)
        count = counts.flat[sequence]
        if count is not None:
            yield at, place < count, int(count)


def _place(filled: Filled, at: int, sets: Sets) -> str:
    need = filled.need
    axes = [sets.of(axis, need) for axis in need.axes or ()]
    return cell_words(at // prod(filled.shape[len(axes) :]), axes)


def _counts(need: Need, layout: Layout, sets: Sets) -> Filled | None:
    """How many elements each sequence of a need has, where its data tell; what is wrong with them is their own."""
    counts = next((one for one in layout.needs if one.name == need.counted and one.axes is not None), None)
    try:
        return None if counts is None else fill(counts, layout, sets)
    except DataProblem:
        return None
