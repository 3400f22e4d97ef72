"""New tables of a set beside those that a fit has read: its rows count for the elements that the new ones lack."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from qvr_core.data.typed.labels import word
from qvr_core.data.typed.layout import Layout
from qvr_core.data.typed.sources import Sources, Table
from qvr_core.runs.prepare.typed_data import TypedData, read_sources
from qvr_core.runs.record.protocol import Job


def joined(files: TypedData, job: Job, fit: Job) -> TypedData:
    """The files of `job`, each table of a set that is not the one of `fit` with the rows that only that one has: what
    is predicted may be of elements of the fit too, and its latents run over them.  Raises `DataProblem`."""
    own = fit.config.placed(Path(fit.base)).tables
    replaced = {name: table for name, table in own.items() if job.config.tables.get(name) != table}
    if not replaced:
        return files
    before = fit.model_copy(update={"config": fit.config.model_copy(update={"data": "synthetic", "tables": replaced})})
    sources, olds = files.sources, read_sources(before, None).sources
    named = dict(sources.named)
    for name in replaced:
        key, old_key = (Layout([], one).index_column(name, name) for one in (sources, olds))
        new, old = named.get(name), olds.named[name]
        if key is not None and old_key is not None and isinstance(new, Table) and isinstance(old, Table):
            named[name] = _with_rows(new, key, old, old_key)
    return replace(files, sources=Sources(sources.main, named, sources.columns, sources.first))


def _with_rows(new: Table, key: str, old: Table, old_key: str) -> Table:
    """A table and the rows of another for labels that it does not hold; cells of columns that the other has not are
    missing."""
    held = set(map(word, new.columns[key]))
    rows = [at for at, cell in enumerate(old.columns[old_key]) if word(cell) not in held]
    if not rows:
        return new
    before = {**old.columns, key: old.columns[old_key]}
    columns = {
        name: [*cells, *(before[name][at] if name in before else None for at in rows)]
        for name, cells in new.columns.items()
    }
    return Table(f"{new.path} beside {old.path}", columns, new.rows + len(rows), new.whole and old.whole)
