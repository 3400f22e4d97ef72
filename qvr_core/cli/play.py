"""`qvr play`: the playground's page on this machine, beside the folder that it works in."""

from __future__ import annotations

from pathlib import Path

import typer

from qvr_core.cli.lsp import start_server

app = typer.Typer(add_completion=False)


@app.command()
def play(
    folder: Path = typer.Argument(Path("."), help="Folder to work in: its programs, qvr.toml and data."),
    port: int = typer.Option(0, min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one."),
    no_open: bool = typer.Option(False, "--no-open", help="Only print the address; open no browser."),
) -> None:
    """Edit, check and fit programs of a folder in the browser, on this machine only.

    The page wants the token in the address that is printed. Ctrl-C ends it and its runs, which keep a checkpoint.
    """
    flags = ["--no-open"] if no_open else []
    start_server("qvr play", [f"--play={folder}", f"--port={port}", *flags])
