"""`qvr format`: canonical text, in place."""

from __future__ import annotations

import difflib
from pathlib import Path

import typer

from qvr_core.cli.console import say
from qvr_core.cli.files import program_files, read_program, stop, write_out

app = typer.Typer(add_completion=False)


@app.command()
def format(
    files: list[str] = typer.Argument(help="Files, folders, or - to format stdin to stdout."),
    check: bool = typer.Option(False, "--check", help="Write nothing; exit status 1 where a file would change."),
    diff: bool = typer.Option(False, "--diff", help="Write nothing; print what would change."),
) -> None:
    """Format programs.  Comments and meaning stay; damaged statements are left as they are."""
    from qvr_core.syntax.formatter import format_text

    changed = 0
    for path in program_files(files):
        text = read_program(path, exact=True)
        formatted = format_text(text)
        if path == "-" and not (check or diff):
            write_out(formatted)
            continue
        if formatted == text:
            continue
        changed += 1
        if diff:
            old, new = text.splitlines(keepends=True), formatted.splitlines(keepends=True)
            write_out("".join(difflib.unified_diff(old, new, path, path)))
        elif check:
            say(f"{path} would be formatted")
        else:
            try:
                Path(path).write_bytes(formatted.encode("utf-8", "surrogatepass"))
            except OSError as error:
                stop(f"{path} cannot be written: {error.strerror}", 1)
            say(f"{path} formatted")
    if (check or diff) and changed:
        raise typer.Exit(1)
