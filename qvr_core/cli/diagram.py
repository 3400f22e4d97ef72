"""`qvr diagram`: a let or a program as lines of text, Mermaid, DOT, SVG, PNG, TikZ or JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from qvr_core.cli.files import analysed_file, stop

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot
    from qvr_core.diagrams import Diagram
    from qvr_core.semantics.types.diagnostics import Origin

app = typer.Typer(add_completion=False)

FORMATS = {
    "text": ("txt",),
    "mermaid": ("mmd", "mermaid", "md"),
    "dot": ("dot", "gv"),
    "svg": ("svg",),
    "png": ("png",),
    "tikz": ("tex", "tikz"),
    "json": ("json",),
}


@app.command()
def diagram(
    file: str = typer.Argument(help="A .qvr file, or - for stdin."),
    name: str | None = typer.Argument(None, help="The let or program to draw; by default what the file exports."),
    output: Path | None = typer.Option(None, "--output", "-o", help="Where to write it; stdout by default."),
    format: str | None = typer.Option(
        None,
        "--format",
        "-f",
        help="text (for a terminal), mermaid, dot, svg, png, tikz or json; by default what the output's name says, "
        "else mermaid.",
    ),
    direction: Literal["right", "down"] = typer.Option("right", "--direction", "-d", help="Where wires lead to."),
    fold: bool = typer.Option(False, "--fold", help="Draw the middle of each long chain as one node."),
) -> None:
    """Draw a let or a program."""
    from qvr_core import diagrams

    chosen = format or (_format_of(output) if output else "mermaid")
    if chosen not in FORMATS:
        stop(f"unknown format `{chosen}`: {', '.join(FORMATS)}")
    snapshot = analysed_file(file)
    try:
        graph = diagrams.build(snapshot, name, fold=fold)
        match chosen:
            case "mermaid":
                drawn = diagrams.to_mermaid(graph, direction)
                page = output is not None and output.suffix.lower() == ".md"
                content = (f"```mermaid\n{drawn.rstrip()}\n```\n" if page else drawn).encode()
            case "text":
                content = (diagrams.to_text(graph) + "\n").encode()
            case "dot":
                content = diagrams.to_dot(graph, direction).encode()
            case "tikz":
                content = diagrams.to_tikz(graph, direction).encode()
            case "json":
                content = document(snapshot, graph)
            case "svg":
                content = diagrams.to_svg(graph, direction).encode()
            case _:
                content = diagrams.to_png(graph, direction)
    except (diagrams.NoDiagram, diagrams.NoDot) as problem:
        stop(str(problem), 1)
    if output is None:
        sys.stdout.buffer.write(content)
        return
    try:
        output.write_bytes(content)
    except OSError as error:
        stop(f"{output} cannot be written: {error.strerror}", 1)


def document(snapshot: Snapshot, graph: Diagram) -> bytes:
    """The diagram as JSON, with the ranges of the text."""
    from qvr_core.diagrams.json_document import to_document
    from qvr_core.runs.record.ranges import utf16

    def located(origin: Origin) -> object:
        found = snapshot.find(origin)
        return None if found is None else utf16(found, snapshot.layout.lines)

    return to_document(graph, located).encode()


def _format_of(output: Path) -> str:
    """The format that a file's name asks for."""
    suffix = output.suffix.removeprefix(".").lower()
    found = next((key for key, known in FORMATS.items() if suffix in known), None)
    if found is None:
        known = ", ".join(f".{suffix}" for suffixes in FORMATS.values() for suffix in suffixes)
        stop(f"{output} does not say its format: name it with one of {known}, or choose one with --format")
    return found
