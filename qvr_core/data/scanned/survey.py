"""One look through a whole table, in a stream: the labels of open sets, which names lack cells, what does not fit.

What was found stands in a cache, for as long as the files and what is read of them are the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from qvr_core.data.file_cache import cache_key, written
from qvr_core.data.file_sources import plain
from qvr_core.data.needs import Need
from qvr_core.data.problems import DataProblem
from qvr_core.data.scanned.numbers import Numbers
from qvr_core.data.scanned.plan import Plan
from qvr_core.data.typed.cell_values import Wrong, reader
from qvr_core.data.typed.labels import missing, word
from qvr_core.data.typed.layout import Layout
from qvr_core.data.typed.sets import Sets

STRETCH = 2**24
"""Bytes of numbers that are looked at together."""
MOST_LABELS = 5_000_000
"""Different labels of a column."""


@dataclass(frozen=True)
class Survey:
    """What a table holds: the labels in each column of elements of an open set, in order of appearance; and the names
    of which a cell is missing."""

    labels: Mapping[str, tuple[str, ...]]
    missing: frozenset[str]


@dataclass
class _Look:
    """What has been seen of a table so far."""

    plan: Plan
    labels: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])
    missing: set[str] = field(default_factory=set[str])
    problems: dict[str, DataProblem] = field(default_factory=dict[str, DataProblem])
    last: Any = None

    def stretch(self, numbers: Numbers, frame: pl.DataFrame, path: str, first: int) -> None:
        for need in self.plan.needs:
            if need.name in self.problems:
                continue
            try:
                if is_open(need):
                    self._words(need, frame, path, first)
                elif np.isnan(numbers.of(need, frame, path, first)).any():
                    self.missing.add(need.name)
            except DataProblem as problem:
                self.problems[need.name] = problem
        if self.plan.identity is not None and "" not in self.problems:
            try:
                self._ascending(self.plan.identity, frame, path, first)
            except DataProblem as problem:
                self.problems[""] = problem

    def _words(self, need: Need, frame: pl.DataFrame, path: str, first: int) -> None:
        for column in self.plan.layout.columns(need).names:
            series = frame[column]
            found = self.labels.setdefault(column, {})
            for cell in plain(series.unique(maintain_order=True)):
                label = None if isinstance(cell, list | tuple) else word(cell)
                if label is not None:
                    found[label] = None
                    continue
                if missing(cell):
                    self.missing.add(need.name)
                    if need.missing:
                        continue
                    message, remedy = "the value is missing", need.fill_in
                else:
                    message = f"{cell} is no element of a set: "
                    message += f"`{need.values.name if need.values else need.name}` takes text or whole numbers"
                    remedy = "Correct it"
                cells = plain(series)
                row = next(at for at, one in enumerate(cells, 1) if one == cell or (missing(cell) and missing(one)))
                raise DataProblem(message, path=path, column=column, row=first + row, site=need.name, remedy=remedy)
            if len(found) > MOST_LABELS:
                message = f"there are more than {MOST_LABELS:,} different labels"
                raise DataProblem(message, path=path, column=column, site=need.name, remedy="Is it an index of a set?")

    def _ascending(self, column: str, frame: pl.DataFrame, path: str, first: int) -> None:
        """Whether the labels of the rows are all different, which can be seen in a stream where they ascend."""
        series = frame[column]
        before = pl.concat([pl.Series([self.last], dtype=series.dtype), series[:-1]])
        above = (series > before).fill_null(False) if self.last is not None else (series > before).fill_null(True)
        self.last = series[-1]
        rows = (~above | series.is_null()).arg_true()
        if len(rows):
            raise DataProblem(
                f"the labels of `{self.plan.rows}` do not ascend here: in a table that is read in parts nothing else "
                "shows that no two rows have the same",
                path=path,
                column=column,
                row=first + int(rows[0]) + 1,
                remedy="Sort the table by this column, or leave the column out of the file",
            )


def is_open(need: Need) -> bool:
    """Whether the elements that a name holds come with the data."""
    return need.values is not None and need.values.size is None


def looked_through(plan: Plan) -> tuple[Survey, list[DataProblem]]:
    """What a table holds, and what does not fit, at most one problem a name."""
    seen = _Look(plan)
    numbers = Numbers(plan, Sets(Layout(plan.layout.needs, plan.with_labels({}))))
    read = [*plan.columns, *([plan.identity] if plan.identity is not None else [])]
    for part, start, count in plan.table.stretches(max(1, STRETCH // (8 * len(read)))):
        seen.stretch(numbers, part.read(start, count, read), part.path, start)
    found = Survey({name: tuple(labels) for name, labels in seen.labels.items()}, frozenset(seen.missing))
    for need in plan.needs:
        if is_open(need) and need.name not in seen.problems:
            try:
                _check_labels(need, plan, found)
            except DataProblem as problem:
                seen.problems[need.name] = problem
    return found, list(seen.problems.values())


def sets_of(plan: Plan, survey: Survey) -> Sets:
    """The sets of a run, those that the table tells with the labels that it has."""
    return Sets(Layout(plan.layout.needs, plan.with_labels(survey.labels)))


def _check_labels(need: Need, plan: Plan, survey: Survey) -> None:
    """Whether all labels of a column are elements of their set, which another file may have told."""
    sets = sets_of(plan, survey)
    assert need.values is not None
    read = reader(need, sets.of(need.values, need))
    columns = plan.layout.columns(need).names
    try:
        for column in columns:
            for label in survey.labels[column]:
                read(label)
    except Wrong:
        numbers = Numbers(plan, sets, survey.missing)
        for part, start, count in plan.table.stretches(max(1, STRETCH // (8 * len(plan.columns)))):
            numbers.of(need, part.read(start, count, plan.columns), part.path, start)
        raise


# ---------------------------------------------------------------- cache


def survey_of(plan: Plan, folder: Path) -> Survey:
    """The same from `folder`, where it stands there.  Raises `DataProblem` where something does not fit."""
    others = sorted(plan.sources.named.items())
    files = [*(part.path for part in plan.table.parts), *(source.path for _, source in others)]
    wanted = [plan.columns, plan.identity, plan.rows, list(map(str, plan.needs)), [name for name, _ in others]]
    wanted += [plan.sources.first, list(map(str, plan.others)), sorted(map(str, plan.sources.columns.items()))]
    target = folder / f"{cache_key(files, wanted)}.survey.json"
    if (found := _looked_through_before(target)) is not None:
        return found
    found, problems = looked_through(plan)
    if problems:
        raise problems[0]
    content = [{name: list(labels) for name, labels in found.labels.items()}, sorted(found.missing)]
    with written(target) as partial:
        partial.write_text(json.dumps([_digest(content), content]))
    return found


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _looked_through_before(target: Path) -> Survey | None:
    """What was found before; None where there is nothing, or not what was written."""
    try:
        digest, content = json.loads(target.read_text())
        if _digest(content) != digest:
            return None
        labels, lacking = content
        return Survey({name: tuple(found) for name, found in labels.items()}, frozenset(lacking))
    except (OSError, ValueError, TypeError, AttributeError):
        return None
