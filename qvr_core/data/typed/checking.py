"""Do files fit a program?  Every name is looked at by itself, so that each mistake is told, and once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from qvr_core.data.needs import Need, Needs
from qvr_core.data.problems import DataProblem
from qvr_core.data.typed.cell_values import Wrong, reader
from qvr_core.data.typed.labels import Elements, missing
from qvr_core.data.typed.layout import Layout, no_column
from qvr_core.data.typed.sentence_cells import cells_undeclared, sentences, words_of
from qvr_core.data.typed.sequence_ends import fill_sequences, unread
from qvr_core.data.typed.sets import Sets
from qvr_core.data.typed.sources import Arrays, Sources, Table


def data_problems(needs: Needs, sources: Sources) -> list[DataProblem]:
    """What is wrong with the data, at most one problem a name."""
    layout = Layout(needs.all, sources)
    sets = Sets(layout)
    found: list[DataProblem] = []
    for need in needs.all:
        problem = _problem(need, layout, sets, sources)
        if problem is not None:
            found.append(problem)
    # an element that a table does not list is told once, not by every name that speaks of its set
    return _first_of_each(found)


def data_notes(needs: Sequence[Need], sources: Sources) -> list[DataProblem]:
    """What is right and may surprise all the same: rows that are not read."""
    layout = Layout(needs, sources)
    sets = Sets(layout)
    found: list[DataProblem] = []
    for need in layout.needs:
        if not need.counted:
            continue
        with suppress(DataProblem):
            note = unread(fill_sequences(need, layout, sets), layout, sets)
            found += [] if note is None else [note]
    return found


def _problem(need: Need, layout: Layout, sets: Sets, sources: Sources) -> DataProblem | None:
    try:
        if need.axes is not None:
            fill_sequences(need, layout, sets)
        else:
            _check_plain(need, sources)
    except DataProblem as problem:
        return problem
    return None


def _first_of_each(found: Sequence[DataProblem]) -> list[DataProblem]:
    seen: set[tuple[object, ...]] = set()
    kept: list[DataProblem] = []
    for problem in found:
        key = (problem.path, problem.column, problem.row) if problem.row is not None else (id(problem),)
        if key not in seen:
            seen.add(key)
            kept.append(problem)
    return kept


def _check_plain(need: Need, sources: Sources) -> None:
    """A name whose shape the data tell: its column must be there, and hold what the program takes."""
    table = sources.named.get(need.name, sources.main)
    column = sources.column(need.name)
    if isinstance(table, Arrays) and column not in table.arrays:
        raise no_column(need, column, table)
    if isinstance(table, Arrays) and need.lexicon is not None:
        cells, _ = cells_undeclared(table.arrays[column], need, table.path)
        sentences(cells, need, table.path, column, words_of(need, table.path, table.first))
        return
    if not isinstance(table, Table) or need.width > 1:
        return
    if column not in table.columns:
        raise no_column(need, column, table)
    if need.lexicon is not None:
        sentences(table.columns[column], need, table.path, column, words_of(need, table.path, 0))
        return
    labels = Elements(need.written, need.size or len(need.labels), need.labels) if need.labels else None
    read = reader(need, labels)
    for row, cell in enumerate(table.columns[column], 1):
        if isinstance(cell, list | tuple) and need.terms is None:
            return
        try:
            if missing(cell) and not need.missing:
                raise Wrong("the value is missing", need.fill_in)
            if not missing(cell):
                read(cell)
        except Wrong as wrong:
            raise DataProblem(
                wrong.message, path=table.path, column=column, row=row, site=need.name, remedy=wrong.remedy
            ) from wrong
