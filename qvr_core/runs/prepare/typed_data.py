"""The data of a program that declares them with types: the elements of its open sets, and its numbers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from qvr_core.analysis import Snapshot
from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.data.binding import RowsOf, Whole, tensor_of
from qvr_core.data.file_sources import of_columns
from qvr_core.data.json_files import read_json
from qvr_core.data.needs import Need, Needs, names_of, needs_of, open_sets
from qvr_core.data.problems import DataProblem
from qvr_core.data.size_limits import available
from qvr_core.data.tables.columns import Columns, read_head
from qvr_core.data.tables.reading import read_columns
from qvr_core.data.typed.checking import data_notes
from qvr_core.data.typed.layout import no_column
from qvr_core.data.typed.order import sorted_sets
from qvr_core.data.typed.sentence_cells import cells_undeclared, padded, sentences, words_of
from qvr_core.data.typed.sequence_ends import fill_sequences
from qvr_core.data.typed.sources import Arrays, Source, Sources, Table
from qvr_core.data.typed_binding import has_types, known_sets, typed_tensors, undeclared, whole_sets
from qvr_core.data.typed_binding import tensor_of as filled
from qvr_core.runs.prepare.tables_in_blocks import Scanned, in_blocks, with_blocks
from qvr_core.runs.record.config import TABLES, RunConfig
from qvr_core.runs.record.data_files import path_of, tables_of
from qvr_core.runs.record.protocol import Job
from qvr_core.semantics.file.open_sets import KnownSet
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.shifts import shifted_sets

if TYPE_CHECKING:
    from qvr_core.data.scanned.rows import BlockRows

SYNTHETIC_ELEMENTS = 8
"""Elements of an open set where the data are drawn; the rows of the program are as many as `rows` says."""


@dataclass(frozen=True)
class TypedData:
    """All files of a run, read.  `columns` is the main one as it stands, where it is a table or an archive; `blocks`
    are its rows where they are read by blocks: `sources` has the labels in it alone then."""

    sources: Sources
    columns: Columns | None
    blocks: BlockRows | None = None


def is_typed(config: RunConfig, needs: Needs, snapshot: Snapshot) -> bool:
    """Whether the data are laid along declared sets."""
    typed = bool(config.tables) or config.source == "json" or has_types(needs.all) or bool(open_sets(snapshot.model))
    return typed and config.source in ("synthetic", *TABLES)


def read_sources(job: Job, room: int | None, program: Program | None = None) -> TypedData:
    """Read every file that a run names; a large table of the rows of `program` by blocks.  Raises `DataProblem`."""
    config = job.config
    named = {
        name: _read(_shown(path), source, room, config.one_based)[0] for name, (source, path) in tables_of(job).items()
    }
    if program is not None and config.source == "parquet":
        found = in_blocks(job, program, _shown(path_of(job)), named, room)
        if found is not None:
            return TypedData(found.sources, None, found)
    main, columns = None, None
    if config.source != "synthetic":
        main, columns = _read(_shown(path_of(job)), config.source, room, config.one_based)
    return TypedData(Sources(main, named, config.columns, int(bool(config.one_based))), columns)


def _shown(path: os.PathLike[str]) -> str:
    return min(os.path.relpath(path), str(path), key=len)


def _read(path: str, source: str, room: int | None, one_based: bool | None) -> tuple[Source, Columns | None]:
    if source == "json":
        read_head(path)
        return read_json(path, room, first=int(one_based is not False)), None
    columns = read_columns(path, source, room)
    return of_columns(columns, int(bool(one_based))), columns


def told(
    job: Job,
    needs: Needs,
    program: Program,
    snapshot: Snapshot,
    data: TypedData,
    before: Mapping[str, KnownSet] | None = None,
) -> dict[str, KnownSet]:
    """The open sets of a run with their elements, as they were `before` where the data say nothing of them.  Raises
    `DataProblem`."""
    opened = open_sets(snapshot.model)
    if not opened:
        return {}
    if data.sources.main is None and not data.sources.named:
        rows = {factor.strip() for factor in program.declared_domain.written.split("*")}
        return {name: KnownSet(job.config.rows if name in rows else SYNTHETIC_ELEMENTS) for name in opened}
    return whole_sets(known_sets(needs.all, data.sources, before), opened, program, snapshot.model)


def known_of(job: Job, program: Program, snapshot: Snapshot) -> dict[str, KnownSet]:
    """The open sets of a run, its files read for them.  Raises `DataProblem`."""
    if not open_sets(snapshot.model):
        return {}
    return told(job, needs_of(program), program, snapshot, read_sources(job, available(), program))


def bound(job: Job, needs: Needs, data: TypedData, room: int | None = None) -> RowsOf | Whole | Scanned:
    """The numbers of every name.  `needs` are those of the program as it is written.  Raises `DataProblem`, also where
    all rows of a table that can be read by blocks are wanted and take more than `room` bytes."""
    if data.blocks is not None:
        plan, sets = data.blocks.numbers.plan, data.blocks.numbers.sets
        others = {
            need.name: _plain(need, data) if need.axes is None else filled(fill_sequences(need, sets.layout, sets))
            for need in plan.others
        }
        return with_blocks(job.config, others, data.blocks, room)
    inputs = [] if needs.statistical else [_plain(need, data) for need in needs.inputs]
    rows = len(inputs[0]) if inputs else None
    values: dict[str, Any] = dict(typed_tensors(needs.all, replace(data.sources, rows=rows)))
    plain = undeclared((*needs.observed, *needs.data))
    values |= {need.name: _plain(need, data) for need in plain}
    if needs.statistical:
        return Whole(values)
    for need in (*needs.inputs, *undeclared(needs.observed)):
        found = len(values[need.name]) if need.name in values else len(inputs[needs.inputs.index(need)])
        if found != rows:
            raise DataProblem(
                f"there are {found} rows, and {rows} for `{needs.inputs[0].name}`",
                path="the data" if data.sources.main is None else data.sources.main.path,
                site=need.name,
                remedy="Every input and observed site needs one entry per row",
            )
    # what is declared is the same for all rows, but where an array has an entry for each
    typed = [need for need in needs.all if need.axes is not None]
    fixed = frozenset(need.name for need in typed if values[need.name].ndim <= _rank(need))
    return RowsOf(inputs[0] if len(inputs) == 1 else tuple(inputs), values, fixed)


def _rank(need: Need) -> int:
    """How many axes the array of declared data has, where it is the same for all rows."""
    return len(need.axes or ()) + need.sequence + len(need.element)


def _plain(need: Need, data: TypedData) -> Tensor:
    """The numbers of a name whose shape the data tell, as they stand in the main file."""
    main, names = data.sources.main, data.sources.columns
    source = data.sources.named.get(need.name, main)
    if data.columns is not None and source is main:
        return tensor_of(data.columns, need, {name: one for name, one in names.items() if isinstance(one, str)})
    column = data.sources.column(need.name)
    if need.lexicon is not None and source is not None:
        return _sentences(need, column, source)
    if isinstance(source, Arrays) and column in source.arrays:
        array = source.arrays[column].even(source.path, column)
        return arrays.tensor(array.flat, dtype=_dtype(array.flat)).reshape(array.shape)
    if isinstance(source, Table) and column in source.columns:
        cells = source.columns[column]
        return arrays.tensor(cells, dtype=_dtype(cells))
    raise DataProblem(
        f"no file holds `{need.name}`",
        path=main.path if main is not None else "the data",
        site=need.name,
        remedy=f"Name a file for it: `--data {need.name}=…`",
        usage=True,
    )


def _sentences(need: Need, column: str, source: Source) -> Tensor:
    """The numbers of words of sentences whose set nothing declares, one a row; (L,) of a single one."""
    single = False
    if isinstance(source, Arrays):
        if column not in source.arrays:
            raise no_column(need, column, source)
        cells, single = cells_undeclared(source.arrays[column], need, source.path)
    elif column in source.columns:
        cells = list(source.columns[column])
    else:
        raise no_column(need, column, source)
    words = words_of(need, source.path, source.first if isinstance(source, Arrays) else 0)
    flat, length = padded(sentences(cells, need, source.path, column, words))
    return arrays.tensor(flat, dtype=arrays.int64).reshape(-1 if single else (-1, length))


def _dtype(cells: Sequence[Any]) -> arrays.dtype:
    whole = all(isinstance(cell, int) for cell in cells)
    return arrays.int64 if whole else arrays.get_default_dtype()


def description(data: TypedData, known: Mapping[str, KnownSet], needs: Needs, program: Program) -> str:
    """What was read, how many elements it gives each open set, and what had to be sorted."""
    main = data.sources.main
    files = [*([main] if main is not None else []), *data.sources.named.values()]
    parts = [
        f"{one.path}: {one.rows:,} row{'' if one.rows == 1 else 's'}" if isinstance(one, Table)
        else f"{one.path}: {len(one.arrays):,} array{'' if len(one.arrays) == 1 else 's'}"
        for one in files
    ]  # fmt: skip
    sets = ", ".join(f"{name} {found.size:,}" for name, found in known.items() if name in names_of(needs))
    moved = sorted_sets(needs.all, data.sources, shifted_sets(program))
    parts[-1:] = [f"{parts[-1]} ({sets})" if sets else parts[-1]] if parts else []
    parts += (f"rows of {path} sorted by {name}" for name, path in moved.items())
    if data.blocks is not None:
        return "; ".join([*parts, "read by blocks of rows"])
    return "; ".join([*parts, *map(str, data_notes(needs.all, data.sources))])
