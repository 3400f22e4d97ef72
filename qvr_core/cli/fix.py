"""`qvr fix`: programs in today's form: what an earlier edition wrote as plates, written with indices."""

from __future__ import annotations

import typer

from qvr_core.cli.checking.fixing import difference
from qvr_core.cli.console import say
from qvr_core.cli.files import analysed_file, program_files, read_program, write_out, write_program

app = typer.Typer(add_completion=False)


@app.command()
def fix(
    files: list[str] = typer.Argument(help="Files, folders, or - to rewrite stdin to stdout."),
    check: bool = typer.Option(False, "--check", help="Write nothing; exit status 1 where a file would change."),
    diff: bool = typer.Option(False, "--diff", help="Write nothing; print what would change."),
) -> None:
    """Write plates with indices: `theta\\[s : School] <- …` for `theta : School <- …`, `a\\[school\\[i]]` for `via=`.

    Densities, names and draws stay; so does a step that has no such form, and why is said.  A program with an error
    is left alone: what diagnostics offer is `qvr check --fix`.
    """
    from qvr_core.ide.to_indices.rewriting import rewritten

    changed = 0
    for path in program_files(files):
        text = read_program(path, exact=True)
        found = rewritten(text, lambda text, path=path: analysed_file(path, text))
        for kept in found.kept:
            say(f"{path}:{kept.line + 1}: left as it is: {kept.reason}", err=True)
        if path == "-" and not (check or diff):
            write_out(found.text)
            continue
        if found.text == text:
            continue
        changed += 1
        if diff:
            write_out(difference(path, text, found.text))
        elif check:
            say(f"{path} would be rewritten")
        else:
            write_program(path, found.text)
            say(f"{path} rewritten")
    if (check or diff) and changed:
        raise typer.Exit(1)
