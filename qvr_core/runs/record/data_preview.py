"""A table beside the program that is to read it: each column with what it holds, the name that reads it, and what does
not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from qvr_core.analysis import Snapshot
from qvr_core.data.needs import Axis, Need, needs_of
from qvr_core.data.problems import DataProblem
from qvr_core.data.typed.checking import data_problems
from qvr_core.data.typed.labels import missing
from qvr_core.data.typed.layout import MAIN, Layout
from qvr_core.data.typed.sources import Array, Source, Sources, Table
from qvr_core.data.typed.summary import columns_of
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.data_checks import Read, read_sources

FIRST_ROWS, MOST_WRONG = 8, 8
"""Rows that are shown in any case, and further ones in which something is wrong."""
MOST_COLUMNS, MOST_TEXT = 60, 40
"""Columns of a table, and characters of a cell."""
MOST_LABELS = 4


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table, or one array: `kind` is what it holds, in words; `site` is the name that reads it and
    `wanted` what that is.  A `problem` with a `row` is that of one cell; rows count from 1."""

    name: str
    kind: str
    site: str | None = None
    wanted: str = ""
    problem: str | None = None
    row: int | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a source: their numbers, and the cells of each column in them as text."""

    path: str
    rows: int
    whole: bool
    columns: tuple[Column, ...]
    left_out: int
    numbers: tuple[int, ...]
    cells: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """A name that no column is for."""

    site: str
    wanted: str
    problem: str


@dataclass(frozen=True, slots=True)
class Preview:
    """What is read from where.  `problem` is one of the files themselves; `looked` says whether they could be read."""

    program: str
    data: str
    looked: bool
    tables: tuple[Rows, ...] = ()
    missing: tuple[Missing, ...] = ()
    problem: str | None = None

    @property
    def fits(self) -> bool:
        wrong = any(column.problem for table in self.tables for column in table.columns)
        return self.problem is None and not self.missing and not wrong

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "fits": self.fits}


def preview(snapshot: Snapshot, program: str, config: RunConfig, base: Path, other: Read | None = None) -> Preview:
    """The files that settings name beside the program.  Raises KeyError for a program that is not there."""
    needs = needs_of(snapshot.model.programs[program])
    try:
        sources = read_sources(config, base, other)
    except DataProblem as problem:
        return Preview(program, config.data, True, problem=str(problem))
    if sources is None:
        return Preview(program, config.data, False)
    problems = {problem.site: problem for problem in data_problems(needs, sources) if problem.site is not None}
    layout = Layout(needs.all, sources)
    readers = dict(_readers(needs.all, layout, sources))
    keys = [*([MAIN] if sources.main is not None else []), *sources.named]
    tables = tuple(_rows(key, source, readers, problems) for key in keys if (source := layout.source(key)) is not None)
    told = {column.problem for table in tables for column in table.columns}
    gone = tuple(
        Missing(need.name, wanted(need), str(problems[need.name]))
        for need in needs.all
        if need.name in problems and str(problems[need.name]) not in told
    )
    return Preview(program, config.data, True, tables, gone)


Readers = Mapping[tuple[str, str], tuple[str, str]]
"""By source and column the name that reads it, and what that is."""


def _readers(
    needs: Sequence[Need], layout: Layout, sources: Sources
) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    for key, source in ((MAIN, sources.main), *sources.named.items()):
        for name in _sets(needs):
            column = layout.index_column(key, name) if source is not None else None
            if column is not None:
                yield (key, column), (name, f"elements of {name}")
    for need in needs:
        key = layout.key(need) if need.axes is not None else need.name if need.name in sources.named else MAIN
        try:
            for column in columns_of(need, layout, sources)[1]:
                yield (key, column), (need.name, wanted(need))
        except DataProblem:
            continue


def _sets(needs: Sequence[Need]) -> list[str]:
    axes = (axis for need in needs for axis in (*(need.axes or ()), *([need.values] if need.values else ())))
    return list(dict.fromkeys(axis.name for axis in axes if axis.name is not None))


def _rows(key: str, source: Source, readers: Readers, problems: Mapping[str, DataProblem]) -> Rows:
    held = source.columns if isinstance(source, Table) else source.arrays
    names = list(islice(held, MOST_COLUMNS))
    columns: list[Column] = []
    for name in names:
        site, what = readers.get((key, name), (None, ""))
        problem = next((one for one in problems.values() if (one.path, one.column) == (source.path, name)), None)
        if problem is None and site is not None and site in problems and problems[site].column is None:
            # of all the columns that make up a value
            problem = problems[site]
        text, row = (None, None) if problem is None else (str(problem), problem.row)
        columns.append(Column(name, kind_of(held[name]), site, what, text, row))
    left_out = len(held) - len(names)
    if not isinstance(source, Table):
        return Rows(source.path, 0, True, tuple(columns), left_out, (), ())
    wrong = [column.row for column in columns if column.row is not None][:MOST_WRONG]
    first = range(1, min(source.rows, FIRST_ROWS) + 1)
    numbers = sorted({*first, *(row for row in wrong if row <= source.rows)})
    cells = tuple(tuple(_cell(source.columns[name][row - 1]) for row in numbers) for name in names)
    return Rows(source.path, source.rows, source.whole, tuple(columns), left_out, tuple(numbers), cells)


def _cell(value: Any) -> str:
    text = "" if missing(value) else str(value)
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"


def kind_of(values: Sequence[Any] | Array) -> str:
    """What a column holds, in words: `whole numbers, 0 to 7`, `text, 3 values`, `numbers, 2 missing`."""
    cells = values.flat if isinstance(values, Array) else values
    there = [cell for cell in cells if not missing(cell)]
    shape = f", {' × '.join(map(str, values.shape))}" if isinstance(values, Array) and values.shape else ""
    gone = f", {len(cells) - len(there):,} missing" if len(there) < len(cells) else ""
    return _plain_kind(there) + shape + gone


def _plain_kind(cells: Sequence[Any]) -> str:
    if not cells:
        return "nothing"
    if any(isinstance(cell, list | tuple) for cell in cells):
        return "lists"
    if all(isinstance(cell, bool) for cell in cells):
        return "truth values"
    if all(isinstance(cell, int | float) for cell in cells):
        whole = all(isinstance(cell, int) for cell in cells)
        span = f"{min(cells):.6g} to {max(cells):.6g}".replace("-", "−")
        return f"{'whole numbers' if whole else 'numbers'}, {span}"
    labels = list(dict.fromkeys(str(cell) for cell in cells))
    more = f" and {len(labels) - MOST_LABELS:,} more" if len(labels) > MOST_LABELS else ""
    return f"text: {', '.join(_cell(label) for label in labels[:MOST_LABELS])}{more}"


def wanted(need: Need) -> str:
    """What a name takes, in words: `a real number for each House`."""
    over = need.axes if need.axes is not None else (Axis(*need.plate),) if need.plate is not None else ()
    across = " and ".join(f"each {_called(axis)}" for axis in over)
    return f"{_element(need)} for {across}" if across else _element(need)


def _called(axis: Axis) -> str:
    return axis.name or f"of {axis.size}"


def _element(need: Need) -> str:
    labels = need.labels or (need.values.labels if need.values is not None else None)
    if labels:
        more = "…" if len(labels) > MOST_LABELS else ""
        return f"one of {', '.join(labels[:MOST_LABELS])}{more}"
    if need.values is not None and need.values.name is not None:
        return f"an element of {need.values.name}"
    if need.element:
        return f"{' × '.join(map(str, need.element))} numbers"
    match need.kind:
        case "finite":
            return "a whole number" if need.size is None else f"a whole number, 0 to {need.size - 1}"
        case "count":
            return "a count: 0, 1, 2, …"
        case "real":
            return f"a real number{_bounds(need)}"
        case _:
            return "a number"


def _bounds(need: Need) -> str:
    if need.low is not None and need.high is not None:
        return f" between {need.low:g} and {need.high:g}"
    if need.low is not None:
        return f" from {need.low:g} on"
    return "" if need.high is None else f" up to {need.high:g}"
