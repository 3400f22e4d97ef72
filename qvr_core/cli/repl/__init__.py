"""`qvr repl [FILE]`: a prompt for the language, with the answers that editors have."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from qvr_core.cli.files import read_program, stop
from qvr_core.extras import needs

if TYPE_CHECKING:
    from qvr_core.cli.repl.session import Session

app = typer.Typer(add_completion=False)


@app.command()
def repl(
    file: Path | None = typer.Argument(
        None, metavar="FILE", help="A .qvr file whose declarations are there at the start."
    ),
) -> None:
    """Try the language line by line: declarations grow a document, expressions say their type, `:help` lists the rest.

    Lines of a pipe are answered in plain text; the exit status is 1 where one of them was refused.
    """
    terminal = sys.stdin.isatty()
    if terminal and importlib.util.find_spec("prompt_toolkit") is None:
        stop(needs("prompt_toolkit"), 1)
    from qvr_core.cli.repl.commands import run_command
    from qvr_core.cli.repl.session import Session

    session = Session(run_command)
    if file is not None:
        session.load(file, read_program(str(file)))
    if terminal:
        from qvr_core.cli.repl.prompt import converse

        if file is None:
            session.say("A prompt for QVR: declarations, expressions, :help", "dim")
        converse(session)
        return
    pipe: Any = sys.stdin
    if hasattr(pipe, "reconfigure"):
        pipe.reconfigure(encoding="utf-8", errors="replace")
    answer(session, bounded(pipe))
    if session.refused:
        raise typer.Exit(1)


def bounded(stream: TextIO) -> Iterator[str]:
    """The lines of a stream; of one that is longer than anything that is read, its beginning."""
    from qvr_core.cli.repl.session import MOST_LETTERS

    while line := stream.readline(MOST_LETTERS + 1):
        rest = line
        while rest and not rest.endswith("\n"):
            rest = stream.readline(MOST_LETTERS)
        yield line


def answer(session: Session, lines: Iterable[str]) -> None:
    """Answer the lines of a pipe, each declaration once it is whole."""
    from qvr_core.cli.repl.session import MOST_LETTERS
    from qvr_core.cli.repl.typed_lines import goes_on, unfinished

    held: list[str] = []
    letters = 0
    for line in lines:
        session.look()
        line = line.rstrip("\r\n")
        command = line.lstrip().startswith(":")
        if held and (command or letters > MOST_LETTERS or not goes_on(held, line)):
            if not session.take("\n".join(held)):
                return
            held, letters = [], 0
        held.append(line)
        letters += len(line)
        if command or not unfinished(held, blank_ends=False):
            if not session.take("\n".join(held)):
                return
            held, letters = [], 0
    session.take("\n".join(held))
