"""The files that a program's settings name, checked against the program without torch and polars.

csv and json files are read by Python's own readers; other formats only where the caller gives a reader for them.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from qvr_core.analysis import LocatedDiagnostic, Snapshot
from qvr_core.data.needs import Needs, needs_of
from qvr_core.data.problems import DataProblem, NoColumn, no_file
from qvr_core.data.size_limits import check_regular
from qvr_core.data.typed.checking import data_notes, data_problems
from qvr_core.data.typed.csv_text import read_csv
from qvr_core.data.typed.nested import nested_arrays
from qvr_core.data.typed.sources import Source, Sources
from qvr_core.data.typed.summary import summaries
from qvr_core.runs.record.config import TABLES, RunConfig
from qvr_core.runs.record.settings import UsageProblem, main_program, resolve
from qvr_core.semantics.file.placed_diagnostics import LocatedFix, TextEdit
from qvr_core.semantics.file.references import unit_references
from qvr_core.semantics.types.diagnostics import Code, Origin, Severity
from qvr_core.semantics.types.model.programs import Program
from qvr_core.syntax.statements import statement_uid, units_of

MOST_ROWS = 100_000
"""Rows of a table that are looked at."""
MOST_BYTES = 10_000_000
"""Of a json file, which is read whole or not at all."""

DATA_FILE = Code("data-file", Severity.ERROR, "A file does not fit the program that reads it.")
DATA_UNUSED = Code("data-unused", Severity.INFORMATION, "Rows of a file are not read.")

Read = Callable[[str, str], Source | None]
"""Reads a file, by path and kind; None where it cannot read that kind."""
ByBlocks = Callable[[Program, RunConfig, str, Mapping[str, Source]], "list[DataProblem] | None"]
"""Says what does not fit in a large table, by program, settings, path and the other files; None for one that is read
whole."""


@dataclass(frozen=True)
class DataFinding:
    """Something in a file that does not fit, and the name of the program that it is told at."""

    problem: DataProblem
    origin: Origin
    code: Code = DATA_FILE

    def located(self, snapshot: Snapshot) -> LocatedDiagnostic | None:
        """The diagnostic in the text as it is; None where the name is gone."""
        place = snapshot.find(self.origin)
        if place is None:
            return None
        meant = self.problem.meant if isinstance(self.problem, NoColumn) else None
        fixes: tuple[LocatedFix, ...] = ()
        if meant is not None and meant.isidentifier() and self.problem.site is not None:
            edits = tuple(_renamed(self.problem.site, meant, self.origin, snapshot))
            fixes = (LocatedFix(f"Call it `{meant}`, as the file does", edits, False),) if edits else ()
        return LocatedDiagnostic(self.code, str(self.problem), place, (), fixes)


def _renamed(name: str, new: str, origin: Origin, snapshot: Snapshot) -> Iterator[TextEdit]:
    """The edits that give a data name another one, in its program."""
    uid = statement_uid(origin.unit)
    statement = next((one for one in snapshot.statements if one.uid == uid), None)
    for placed in units_of(statement) if statement is not None else ():
        spans = [declared.span for declared in placed.unit.declares if declared.text == name]
        spans += [span for text, span in unit_references(placed.unit).mentions if text == name]
        for span in spans:
            yield TextEdit(snapshot.range(Origin(placed.uid, span)), new)


def plain_reader(path: str, kind: str, first: int) -> Source | None:
    """csv and json, the first rows of them.  Raises `DataProblem`."""
    if kind == "csv":
        return read_csv(path, MOST_ROWS)
    if kind == "json":
        return _json(path, first)
    return None


def _json(path: str, first: int) -> Source | None:
    try:
        check_regular(path)
        if os.path.getsize(path) > MOST_BYTES:
            return None
        with open(path, encoding="utf-8-sig") as file:
            content = json.load(file)
    except FileNotFoundError as error:
        raise no_file(path) from error
    except (OSError, ValueError, RecursionError) as error:
        raise DataProblem(f"this is not json: {error}", path=path, remedy="Write one object of names") from error
    if not isinstance(content, dict):
        raise DataProblem("this is no json object", path=path, remedy="Write one object of names")
    return nested_arrays(cast(Mapping[str, Any], content), path, first)


@dataclass(frozen=True)
class DataCheck:
    """What was found in the files of a program: what does not fit, and of each data name what they hold."""

    findings: list[DataFinding] = field(default_factory=list[DataFinding])
    about: Mapping[str, str] = field(default_factory=dict[str, str])


def programs_with_data(snapshot: Snapshot, toml: str) -> Iterator[tuple[str, RunConfig]]:
    """The programs of a file whose data a qvr.toml names, each with its settings: those that have a table of their own,
    and the main one.  A table that is not right is told where it stands, and left out."""
    main = main_program(snapshot.model)
    for name in snapshot.model.programs:
        if name == main or any(f"[run.{quoted}]" in toml for quoted in (name, f'"{name}"')):
            with contextlib.suppress(UsageProblem):
                yield name, resolve(name, toml, {}).config


def files_of(config: RunConfig, base: Path) -> list[Path]:
    """The tables that settings name."""
    named = (*map(_split, config.tables.values()), (config.source, config.data_path))
    return [base / path for kind, path in named if kind in TABLES]


def check_data(
    snapshot: Snapshot,
    program: str,
    config: RunConfig,
    base: Path,
    other: Read | None = None,
    by_blocks: ByBlocks | None = None,
) -> list[DataFinding]:
    """What does not fit between a program and the files that its settings name; `base` is where their paths start."""
    return _findings(snapshot, program, config, base, other, by_blocks)[0]


def looked_at(snapshot: Snapshot, program: str, config: RunConfig, base: Path, other: Read | None = None) -> DataCheck:
    """As `check_data`, with what the files hold of each name: all of it is read for that."""
    told, needs, sources = _findings(snapshot, program, config, base, other)
    return DataCheck(told, {} if needs is None or sources is None else summaries(needs.all, sources))


def _findings(
    snapshot: Snapshot,
    program: str,
    config: RunConfig,
    base: Path,
    other: Read | None,
    by_blocks: ByBlocks | None = None,
) -> tuple[list[DataFinding], Needs | None, Sources | None]:
    """What does not fit; with what the program needs and the files, where there are some that can be read."""
    model = snapshot.model.programs.get(program)
    if model is None or model.template or not files_of(config, base):
        return [], None, None
    needs = needs_of(model)
    try:
        if by_blocks is not None and config.source == "parquet":
            others = read_sources(config.model_copy(update={"data": ""}), base, other)
            named: Mapping[str, Source] = {} if others is None else others.named
            found = by_blocks(model, config, _shown(base / config.data_path), named)
            if found is not None:
                return [_finding(problem, needs, model.origin) for problem in found], needs, None
        sources = read_sources(config, base, other)
    except DataProblem as problem:
        return [DataFinding(problem, model.origin)], needs, None
    if sources is None:
        return [], needs, None
    told = [_finding(problem, needs, model.origin) for problem in data_problems(needs, sources)]
    told += [_finding(note, needs, model.origin, DATA_UNUSED) for note in data_notes(needs.all, sources)]
    return told, needs, sources


def read_sources(config: RunConfig, base: Path, other: Read | None = None) -> Sources | None:
    """The tables that settings name, their first rows; None where nothing here reads one.  Raises `DataProblem`."""
    files = {**{name: _split(table) for name, table in config.tables.items()}, "": (config.source, config.data_path)}
    found: dict[str, Source] = {}
    for name, (kind, path) in files.items():
        if kind not in TABLES:
            continue
        shown = _shown(base / path)
        first = int(config.one_based is not False) if kind == "json" else int(bool(config.one_based))
        source = plain_reader(shown, kind, first) or (other(shown, kind) if other is not None else None)
        if source is None:
            return None
        found[name] = source
    return Sources(found.pop("", None), found, config.columns, int(bool(config.one_based)))


def columns_named(config: RunConfig, base: Path) -> dict[str, str]:
    """The columns of the csv files that settings name, each with its file: what a program may call its data."""
    found: dict[str, str] = {}
    for kind, path in (*map(_split, config.tables.values()), (config.source, config.data_path)):
        if kind == "csv":
            with contextlib.suppress(DataProblem, OSError):
                table = read_csv(_shown(base / path), 1)
                found |= {name: Path(path).name for name in table.columns if name.isidentifier()}
    return found


def _split(table: str) -> tuple[str, str]:
    kind, _, path = table.partition(":")
    return kind, path


def _shown(path: Path) -> str:
    return min(os.path.relpath(path), str(path), key=len)


def _finding(problem: DataProblem, needs: Needs, otherwise: Origin, code: Code = DATA_FILE) -> DataFinding:
    origins = {need.name: need.origin for need in needs.all if need.origin is not None}
    return DataFinding(problem, origins.get(problem.site or "", otherwise), code)
