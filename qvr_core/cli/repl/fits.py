"""`:run` and `:posterior`: the commands `qvr run` and `qvr summary`, of a document that need not be saved."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import typer

from qvr_core.cli.files import read_settings, stop
from qvr_core.cli.repl.document import Document

ALGORITHMS = ("nuts", "svi")


def run(document: Document, given: str) -> str | None:
    """Fit the document in a process of its own, and show it; the id of the run where it left a posterior.  The words
    behind `:run` are those of `qvr run`: its parser reads them, its qvr.toml counts."""
    from qvr_core.cli.files import store
    from qvr_core.cli.run import app

    try:
        words = shlex.split(given)
    except ValueError as problem:
        stop(f"{problem}: {given}")
    algorithm = words.pop(0) if words and words[0] in ALGORITHMS else usual(document)
    file = [] if any(word.partition("=")[0] == "--resume" for word in words) else [str(document.path or "-")]
    command: Any = typer.main.get_command(app)
    arguments = [algorithm, *file, *words]
    try:
        ended = command.main(arguments, prog_name=":run", standalone_mode=False, obj=document.text)
    except typer.Exit:
        raise
    except Exception as problem:
        # click's own errors of usage, which it would print and end the process with
        if (told := getattr(problem, "format_message", None)) is None:
            raise
        stop(f"{told()}; :run {algorithm} --help lists the flags")
    if isinstance(ended, int):
        raise typer.Exit(ended)
    if not isinstance(ended, str):
        return None  # --help
    return ended if getattr(store().open(ended).ending(), "posterior", ()) else None


def usual(document: Document) -> str:
    """What qvr.toml says of the program; else chains, and steps of an optimiser where there are weights of networks."""
    from qvr_core.runs.record.settings import UsageProblem, main_program, resolve
    from qvr_core.runs.record.settings_file import find_settings
    from qvr_core.semantics.programs.parameter_count import parameter_count

    model = document.snapshot().model
    name = main_program(model) or ""
    toml = find_settings(document.path.parent if document.path is not None else Path.cwd())
    try:
        resolved = resolve(name, None if toml is None else read_settings(toml), {})
    except UsageProblem:
        return "nuts"  # which says what is wrong
    if resolved.origins["algorithm"] != "default":
        return resolved.config.algorithm
    program = model.programs.get(name)
    return "svi" if program is None or parameter_count(model, program) else "nuts"


def posterior(document: Document, run_id: str | None, names: str) -> None:
    """The numbers of a run: the last one of this session, else the newest of the program that left draws."""
    from qvr_core.cli.output.run_display import console, posterior_table
    from qvr_core.cli.summary import rows_of
    from qvr_core.runs.record.settings import main_program

    name = run_id or main_program(document.snapshot().model)
    if name is None:
        stop("there is no program to be fitted: :run fits one")
    rows, _ = rows_of(name, names or None)
    console().print(posterior_table(rows))
