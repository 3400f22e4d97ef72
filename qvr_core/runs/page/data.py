"""Files that a page holds as data of a program, by Python's own readers: a page has neither polars nor numpy."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from qvr_core.analysis import Snapshot
from qvr_core.arrays.engine import Tensor
from qvr_core.data.binding import tensor_of
from qvr_core.data.json_files import read_json
from qvr_core.data.needs import Need, needs_of, open_sets
from qvr_core.data.problems import DataProblem
from qvr_core.data.tables.columns import Columns
from qvr_core.data.typed.csv_text import read_csv
from qvr_core.data.typed.sources import Arrays, Source, Sources
from qvr_core.data.typed_binding import known_sets, typed_tensors, undeclared, whole_sets
from qvr_core.semantics.file.open_sets import KnownSet
from qvr_core.semantics.types.model.programs import Program

MOST_ROWS = 1_000_000
Named = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Files:
    """The main file, those of the rows of a set or of one name, and what a name is called there, as in qvr.toml."""

    main: str | None
    named: Mapping[str, str]
    columns: Mapping[str, Named]

    def read(self) -> Sources:
        """All of them.  Raises `DataProblem`."""
        main = None if self.main is None else _read(self.main)
        return Sources(main, {name: _read(path) for name, path in self.named.items()}, self.columns)


def _read(path: str) -> Source:
    if path.endswith(".json"):
        return read_json(path, None)
    if not os.path.exists(path) or path.endswith((".csv", ".txt", ".tsv")):
        return read_csv(path, MOST_ROWS)
    kind = os.path.splitext(path)[1] or "no ending"
    raise DataProblem(f"a page reads csv and json, and this has {kind}", path=path, remedy="Save it as csv")


def opened(sources: Sources, program: Program, snapshot: Snapshot) -> dict[str, KnownSet]:
    """The open sets of a program as its data tell them.  Raises `DataProblem`."""
    wanted = open_sets(snapshot.model)
    if not wanted:
        return {}
    return whole_sets(known_sets(needs_of(program).all, sources), wanted, program, snapshot.model)


def bound(sources: Sources, written: Sequence[Need], needs: Sequence[Need]) -> dict[str, Tensor]:
    """The numbers of every name; `written` are the needs of the program before the sizes of its open sets were known.
    Raises `DataProblem`."""
    values: dict[str, Tensor] = dict(typed_tensors(written, sources))
    names = {name: column for name, column in sources.columns.items() if isinstance(column, str)}
    for need in undeclared(needs):
        source = sources.named.get(need.name, sources.main)
        if source is None:
            raise DataProblem(
                f"there are no data for `{need.name}`", path="the data", site=need.name, remedy="Paste or open a csv"
            )
        values[need.name] = tensor_of(_columns(source), need, names)
    return values


def _columns(source: Source) -> Columns:
    """A source as what files are read into."""
    if isinstance(source, Arrays):
        held = {name: np.array(one.flat).reshape(one.shape) for name, one in source.arrays.items()}
        return Columns(source.path, "npz", held)
    return Columns(source.path, "csv", {name: list(cells) for name, cells in source.columns.items()})
