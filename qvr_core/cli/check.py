"""`qvr check`: what is wrong with programs, for people and for other programs, and what mends it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from qvr_core.cli.console import PlainConsole, say
from qvr_core.cli.files import (
    analysed_file,
    program_files,
    read_program,
    read_settings,
    source_flags,
    stop,
    write_out,
    write_program,
)

if TYPE_CHECKING:
    from qvr_core.cli.output.diagnostics_text import Finding
    from qvr_core.data.problems import DataProblem
    from qvr_core.data.typed.sources import Source
    from qvr_core.runs.record.config import RunConfig
    from qvr_core.semantics.types.model.programs import Program

app = typer.Typer(add_completion=False)


class OutputFormat(StrEnum):
    """What `qvr check` prints."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    GITLAB = "gitlab"
    SARIF = "sarif"


@dataclass(frozen=True)
class Asked:
    """What one look at the files is to tell."""

    files: list[str]
    hints: bool
    data: list[str]
    columns: str | None
    program: str | None
    run: str | None
    output: OutputFormat


@app.command()
def check(
    files: list[str] = typer.Argument(help="Files, folders (every .qvr below them), or - for stdin."),
    output: OutputFormat = typer.Option(OutputFormat.TEXT, "--output-format", help="Who reads it: text is for people."),
    as_json: bool = typer.Option(False, "--json", help="The same as --output-format json: zero-based, UTF-16 units."),
    hints: bool = typer.Option(False, "--hints", help="Show hints as well."),
    fix: bool = typer.Option(False, "--fix", help="Apply the fixes that are the one way out, then check."),
    diff: bool = typer.Option(False, "--diff", help="Write nothing; print what --fix would change."),
    watch: bool = typer.Option(False, "--watch", help="Check again whenever a file changes."),
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
    if columns is not None and not data:
        stop("--columns says what names are called in the files of --data: add those")
    if as_json and output not in (OutputFormat.TEXT, OutputFormat.JSON):
        stop(f"--json and --output-format {output} ask for two things")
    if watch and (fix or diff or "-" in files):
        stop("--watch looks at files, and changes none: leave out --fix, --diff and -")
    asked = Asked(files, hints, data, columns, program, run, OutputFormat.JSON if as_json else output)
    if diff:
        _differences(files)
        return
    if fix:
        _fix(files)
    if watch:
        _watch(asked)
    elif not _checked(asked):
        raise typer.Exit(1)


def _checked(asked: Asked) -> bool:
    """Look once, print what is found; false where there is an error."""
    from qvr_core.cli.output import diagnostics_for_ci, diagnostics_text
    from qvr_core.semantics.types.diagnostics import Severity

    files = list(program_files(asked.files))
    texts = [(path, read_program(path)) for path in files]
    found = [
        diagnostics_text.Finding(path, text, diagnostic)
        for path, text in texts
        for diagnostic in analysed_file(path, text).diagnostics()
        if asked.hints or diagnostic.severity is not Severity.HINT
    ]
    found += [finding for path, text in texts for finding in _lexicon_findings(path, text)]
    if asked.data:
        found += _data_findings(asked.files[0], asked.program, asked.data, asked.columns)
    else:
        found += [finding for path in files for finding in _named_findings(path, asked.program)]
    if asked.output is OutputFormat.TEXT:
        diagnostics_text.show(found)
    else:
        write_out(diagnostics_for_ci.FORMATS[asked.output](found))
    errors = any(finding.diagnostic.severity is Severity.ERROR for finding in found)
    if asked.run is not None and not errors:
        errors = not _fits(asked.files[0], asked.run)
    return not errors


def _mended(files: list[str]) -> Iterator[tuple[str, str, str]]:
    """Each file that fixes change: its path, its text, its text then."""
    from qvr_core.cli.checking.fixing import fixed

    for path in program_files(files):
        text = read_program(path, exact=True)
        new = fixed(text, lambda text, path=path: analysed_file(path, text))
        if new != text:
            yield path, text, new


def _differences(files: list[str]) -> None:
    from qvr_core.cli.checking.fixing import difference

    changed = [difference(path, old, new) for path, old, new in _mended(files)]
    write_out("".join(changed))
    if changed:
        raise typer.Exit(1)


def _fix(files: list[str]) -> None:
    if "-" in files:
        stop("stdin cannot be written back: --diff prints what would change")
    for path, _, new in _mended(files):
        write_program(path, new)
        say(f"{path} fixed", err=True)


def _watch(asked: Asked) -> None:
    from qvr_core.cli.checking.watching import watch

    def look() -> None:
        if sys.stdout.isatty() and asked.output is OutputFormat.TEXT:
            PlainConsole().clear()
        with suppress(typer.Exit):
            _checked(asked)

    watch(look, lambda: [Path(path) for path in program_files(asked.files)], lambda: _behind(asked))


def _behind(asked: Asked) -> Iterator[Path]:
    """What the programs import, the settings beside them, and the tables that those or the flags name."""
    from qvr_core.disk import path_at
    from qvr_core.runs.record.data_checks import files_of, programs_with_data
    from qvr_core.runs.record.settings import UsageProblem
    from qvr_core.runs.record.settings_file import find_settings

    for path in program_files(asked.files):
        with suppress(typer.Exit, UsageProblem):
            snapshot = analysed_file(path)
            yield from filter(None, map(path_at, snapshot.table.modules))
            toml = find_settings(Path(path).parent)
            if toml is not None:
                yield toml
                for _, config in programs_with_data(snapshot, read_settings(toml)):
                    yield from files_of(config, toml.parent)
    for given in asked.data:
        yield Path(given.partition("=")[2] or given).with_name(given.rpartition(":")[2])


def _lexicon_findings(file: str, text: str) -> Iterator[Finding]:
    """What is wrong with the files of lexicons that a program names."""
    if "lexicon from" not in text:
        return
    from qvr_core.cli.output.diagnostics_text import Finding
    from qvr_core.runs.record.lexicon_checks import lexicon_problems

    yield from (Finding(file, text, problem) for problem in lexicon_problems(analysed_file(file, text)))


def _data_findings(file: str, program: str | None, data: list[str], columns: str | None) -> list[Finding]:
    """What does not fit between files and the program that is to read them."""
    from qvr_core.cli.output.diagnostics_text import Finding
    from qvr_core.runs.record.data_checks import check_data
    from qvr_core.runs.record.settings import UsageProblem, main_program, resolve
    from qvr_core.runs.record.settings_file import find_settings

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
    found = check_data(snapshot, name, config, folders["data"], _other, _by_blocks)
    located = (finding.located(snapshot) for finding in found)
    return [Finding(file, text, diagnostic) for diagnostic in located if diagnostic is not None]


def _named_findings(file: str, program: str | None) -> Iterator[Finding]:
    """What does not fit between a file's programs and the tables that its qvr.toml names; none that are not there."""
    from qvr_core.cli.output.diagnostics_text import Finding
    from qvr_core.runs.record.settings_file import find_settings
    from qvr_core.semantics.types.diagnostics import Severity

    toml = find_settings(Path(file).parent) if file != "-" else None
    if toml is None:
        return
    from qvr_core.runs.record.data_checks import check_data, files_of, programs_with_data

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
        read = check_data(snapshot, name, config, toml.parent, _other, _by_blocks)
        placed = (finding.located(snapshot) for finding in read)
        yield from (Finding(file, text, diagnostic) for diagnostic in placed if diagnostic is not None)


def _other(path: str, kind: str) -> Source | None:
    """Reads what is neither csv nor json, as far as the machine's memory holds it."""
    from qvr_core.data.file_sources import of_columns
    from qvr_core.data.size_limits import available
    from qvr_core.data.tables.reading import read_columns

    return of_columns(read_columns(path, kind, available()), 0)


def _by_blocks(program: Program, config: RunConfig, path: str, named: Mapping[str, Source]) -> list[DataProblem] | None:
    """Looks through a parquet table that is larger than is read at once."""
    from qvr_core.runs.prepare.tables_in_blocks import problems_in_blocks

    return problems_in_blocks(program, config, path, named)


def _fits(file: str, run_id: str) -> bool:
    """Say which parameters a checkpoint does not fit."""
    from qvr_core.cli.runs import opened
    from qvr_core.runs.evaluation.compatibility import differences
    from qvr_core.runs.prepare.failures import Refused
    from qvr_core.runs.record.atomic_files import DamagedFile

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
