"""The command line: `qvr check`, `format`, `diagram`, `run`, `runs`, `check-fit` and the others of `COMMANDS`.

Each command is a module of this folder and is imported when it is called: `qvr check` starts without torch, and without
what only runs need.  Exit status: 0 success, 1 a problem was found, 2 wrong usage.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from io import TextIOWrapper
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from qvr_core import __version__, garbage_collection
from qvr_core.cli.console import say
from qvr_core.extras import needs
from qvr_core.runs.worker.command_engine import own_process

COMMANDS = (
    *("check", "explain", "format", "fix", "diagram", "graph", "new", "init", "run", "runs", "check-fit", "cv", "loo"),
    *("calibrate", "sample", "summary", "plot", "report", "export", "repl", "play", "schema", "lsp"),
)


class LazyGroup(TyperGroup):
    """A group whose commands are modules, imported one at a time."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"{__name__}.{cmd_name.replace('-', '_')}")
        garbage_collection.loaded()
        command = typer.main.get_command(module.app)
        command.name = cmd_name
        return command


app = typer.Typer(
    cls=LazyGroup,
    help="QVR: typed probabilistic programs.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"qvr {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """QVR: typed probabilistic programs."""


def main() -> None:
    """Entry point of the console script `qvr`.  What cannot be read, written or loaded is said in one sentence."""
    own_process()
    garbage_collection.while_loading()
    # nothing that others have installed is looked for in ten milliseconds of every command
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal of another encoding shows `?` for what it does not know.
            stream.reconfigure(errors="replace")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("qvr_core", "qvr_lsp"):
            raise
        _end(needs((error.name or "").partition(".")[0]))
    except OSError as error:
        _end(f"{error.filename or 'the output'}: {error.strerror or error}")


def _open_standard_streams() -> None:
    """What the caller has closed (`>&-`) leads nowhere: the exit status is all that is asked for.  Left closed, its
    number would go to the next file that is opened, and what is printed into that."""
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def _end(message: str) -> NoReturn:
    """The last words, on stderr; what stdout still holds is given up, for it could not be written either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with contextlib.suppress(OSError):
        sys.stderr.write(f"qvr: {message}\n")
        sys.stderr.flush()
    os._exit(1)
