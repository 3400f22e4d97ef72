"""`qvr check`: what is wrong with programs, for people or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from qvr_core.cli.console import say
from qvr_core.cli.files import (
    analysed_file,
    program_files,
    read_program,
    read_settings,
    source_flags,
    stop,
    write_out,
)

if TYPE_CHECKING:
    from qvr_core.cli.report import Finding
    from qvr_core.data.typed.sources import Source

app = typer.Typer(add_completion=False)


@app.command()
def check(
    files: list[str] = typer.Argument(help="Files, folders (every .qvr below them), or - for stdin."),
    as_json: bool = typer.Option(False, "--json", help="One JSON array: zero-based, UTF-16 units, end exclusive."),
    hints: bool = typer.Option(False, "--hints", help="Show hints as well."),
    data: list[str] = typer.Option(
        [], "--data", metavar="[NAME=]VALUE", help="Also: do these files fit the program? As for `qvr run`."
    ),
    columns: str | None = typer.Option(
        None, "--columns", metavar="NAME=COLUMN,…", help="With --data: what names of the program are called there."
    ),
    program: str | None = typer.Option(None, "--program", "-p", help="Which program reads the data."),
    run: str | None = typer.Option(None, "--run", help="Also: does the program fit the checkpoint of this run?"),
) -> None:
    """Check programs.  Exit status 1 where there is an error; warnings and hints do not count."""
    from qvr_core.cli import report
    from qvr_core.semantics.types.diagnostics import Severity

    found = [
        report.Finding(path, text, diagnostic)
        for path in program_files(files)
        for text in [read_program(path)]
        for diagnostic in analysed_file(path, text).diagnostics()
        if hints or diagnostic.severity is not Severity.HINT
    ]
    if columns is not None and not data:
        stop("--columns says what names are called in the files of --data: add those")
    if data:
        found += _data_findings(files[0], program, data, columns)
    else:
        found += [finding for path in program_files(files) for finding in _named_findings(path, program)]
    if as_json:
        write_out(json.dumps([report.as_json(finding) for finding in found], ensure_ascii=False, indent=1) + "\n")
    else:
        report.show(found)
    errors = any(finding.diagnostic.severity is Severity.ERROR for finding in found)
    if run is not None and not errors:
        errors = not _fits(files[0], run)
    if errors:
        raise typer.Exit(1)


def _data_findings(file: str, program: str | None, data: list[str], columns: str | None) -> list[Finding]:
    """What does not fit between files and the program that is to read them."""
    from qvr_core.cli.report import Finding
    from qvr_core.data.frames import of_columns
    from qvr_core.data.tables import read_columns
    from qvr_core.runs.record.data_checks import check_data
    from qvr_core.runs.record.settings import UsageProblem, find_settings, main_program, resolve

    text = read_program(file)
    snapshot = analysed_file(file, text)
    name = program or main_program(snapshot.model) or ""
    toml = find_settings(Path(file).parent if file != "-" else Path.cwd())
    flags = {key: value for key, value in source_flags(data).items() if value is not None}
    if columns is not None:
        flags["columns"] = columns
    try:
        resolved = resolve(name, read_settings(toml) if toml is not None else None, flags)
    except UsageProblem as problem:
        stop(str(problem))
    folders = {
        key: Path.cwd() if resolved.origins[key] == "flag" or toml is None else toml.parent
        for key in ("data", "tables")
    }
    config = resolved.config.placed(folders["tables"])
    found = check_data(
        snapshot, name, config, folders["data"], lambda path, kind: of_columns(read_columns(path, kind), 0)
    )
    located = (finding.located(snapshot) for finding in found)
    return [Finding(file, text, diagnostic) for diagnostic in located if diagnostic is not None]


def _named_findings(file: str, program: str | None) -> Iterator[Finding]:
    """What does not fit between a file's programs and the tables that its qvr.toml names; none that are not there."""
    from qvr_core.cli.report import Finding
    from qvr_core.runs.record.data_checks import check_data, files_of, programs_with_data
    from qvr_core.runs.record.settings import find_settings
    from qvr_core.semantics.types.diagnostics import Severity

    toml = find_settings(Path(file).parent) if file != "-" else None
    if toml is None:
        return
    text = read_program(file)
    snapshot = analysed_file(file, text)
    if any(one.severity is Severity.ERROR for one in snapshot.diagnostics()):
        return
    for name, config in programs_with_data(snapshot, read_settings(toml)):
        if program not in (None, name):
            continue
        if missing := [path for path in files_of(config, toml.parent) if not path.exists()]:
            say(f"{file}: the data of `{name}` are not checked, since {missing[0]} is not there", err=True)
            continue
        read = check_data(snapshot, name, config, toml.parent, _other)
        placed = (finding.located(snapshot) for finding in read)
        yield from (Finding(file, text, diagnostic) for diagnostic in placed if diagnostic is not None)


def _other(path: str, kind: str) -> Source | None:
    """Reads what is neither csv nor json."""
    from qvr_core.data.frames import of_columns
    from qvr_core.data.tables import read_columns

    return of_columns(read_columns(path, kind), 0)


def _fits(file: str, run_id: str) -> bool:
    """Say which parameters a checkpoint does not fit."""
    from qvr_core.cli.runs import opened
    from qvr_core.runs.figures.compatibility import differences
    from qvr_core.runs.prepare.failures import Refused
    from qvr_core.runs.record.files import DamagedFile

    run = opened(run_id)
    try:
        lines = differences(analysed_file(file), run)
    except (Refused, DamagedFile, OSError) as problem:
        stop(str(problem), 1)
    for line in lines:
        say(line, err=True)
    verdict = f"{len(lines)} parameters do not fit" if lines else "every parameter fits"
    say(f"{verdict} the checkpoint of {run.run_id}", err=True)
    return not lines
