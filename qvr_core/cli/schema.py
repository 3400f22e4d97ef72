"""`qvr schema`: the JSON Schema of qvr.toml."""

from __future__ import annotations

import json

import typer

from qvr_core.cli.files import write_out

app = typer.Typer(add_completion=False)


@app.command()
def schema(
    events: bool = typer.Option(False, "--events", help="The schema of a run's events instead."),
) -> None:
    """Print the JSON Schema of qvr.toml."""
    from qvr_core.runs.record.config import settings_schema
    from qvr_core.runs.record.protocol import events_schema

    content = events_schema() if events else settings_schema()
    write_out(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
