"""`qvr check`: what is wrong with programs, for people or as JSON."""

from __future__ import annotations

import json

import typer

from qvr_core.cli.files import program_files, read_program

app = typer.Typer()


@app.command()
def check(
    files: list[str] = typer.Argument(help="Files, folders (every .qvr below them), or - for stdin."),
    as_json: bool = typer.Option(False, "--json", help="One JSON array: zero-based, UTF-16 units, end exclusive."),
    hints: bool = typer.Option(False, "--hints", help="Show hints as well."),
) -> None:
    """Check programs.  Exit status 1 where there is an error; warnings and hints do not count."""
    from qvr_core.analysis import Analyzer
    from qvr_core.cli import report
    from qvr_core.semantics.diagnostics import Severity

    found = [
        report.Finding(path, text, diagnostic)
        for path in program_files(files)
        for text in [read_program(path)]
        for diagnostic in Analyzer(text).snapshot().diagnostics()
        if hints or diagnostic.severity is not Severity.HINT
    ]
    if as_json:
        typer.echo(json.dumps([report.as_json(finding) for finding in found], ensure_ascii=False, indent=1))
    else:
        report.show(found)
    errors = any(finding.diagnostic.severity is Severity.ERROR for finding in found)
    if errors:
        raise typer.Exit(1)
