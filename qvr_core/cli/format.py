"""`qvr format`: canonical text, in place."""

from __future__ import annotations

import typer

from qvr_core.cli.checking.fixing import difference
from qvr_core.cli.console import say
from qvr_core.cli.files import program_files, read_program, write_out, write_program

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
            write_out(difference(path, text, formatted))
        elif check:
            say(f"{path} would be formatted")
        else:
            write_program(path, formatted)
            say(f"{path} formatted")
    if (check or diff) and changed:
        raise typer.Exit(1)
