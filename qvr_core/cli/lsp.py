"""`qvr lsp`: the language server, which stands in a package of its own."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

import typer

from qvr_core.cli.files import stop

app = typer.Typer(add_completion=False)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})
def lsp(ctx: typer.Context) -> None:
    """Start the language server (the same as `qvr-lsp`, with the same options)."""
    start_server("qvr lsp", ctx.args)


def start_server(name: str, arguments: list[str]) -> None:
    """Become the command `qvr-lsp`, under another name."""
    found = entry_points(group="console_scripts", name="qvr-lsp")
    if not found:
        stop("the command qvr-lsp is missing: install this package again, with its commands", 1)
    sys.argv = [name, *arguments]
    next(iter(found)).load()()
