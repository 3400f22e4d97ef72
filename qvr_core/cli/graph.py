"""`qvr graph`: who depends on whom in a program, who is independent of whom, and what an effect is adjusted for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from qvr_core.cli.console import say
from qvr_core.cli.files import analysed_file, stop

if TYPE_CHECKING:
    from qvr_core.dependence.effects import Adjustment
    from qvr_core.dependence.graph import Graph
    from qvr_core.dependence.separation import Separation, Step
    from qvr_core.semantics.types.model.file import Model
    from qvr_core.semantics.types.model.programs import Program

app = typer.Typer(add_completion=False)

FORMATS = {"text": ".txt", "json": ".json", "graphml": ".graphml"}


@app.command()
def graph(
    file: str = typer.Argument(help="A .qvr file, or - for stdin."),
    name: str | None = typer.Argument(None, help="The program; by default the one that the file exports."),
    independent: str | None = typer.Option(
        None,
        "--independent",
        metavar="'a, b | c'",
        help="Whether a and b are independent, given c (any number of names, or none).",
    ),
    given_data: bool = typer.Option(
        False, "--given-data", help="With --independent: all that is observed is given as well."
    ),
    effect: str | None = typer.Option(
        None, "--effect", metavar="'a -> b'", help="What the effect of a on b has to be adjusted for."
    ),
    output: Path | None = typer.Option(None, "--output", "-o", help="Where to write the graph; stdout by default."),
    format: str | None = typer.Option(
        None, "--format", "-f", help="text, json or graphml; by default what the output's name says, else text."
    ),
) -> None:
    """Tell what depends on what in a program.  With --independent the exit status is 1 where they may depend."""
    from qvr_core.dependence import NoAnswer, adjustment, dependence_graph, separation

    if given_data and independent is None:
        stop("--given-data goes with --independent")
    chosen = format or next((key for key, end in FORMATS.items() if output and output.suffix == end), "text")
    if chosen not in FORMATS:
        stop(f"unknown format `{chosen}`: {', '.join(FORMATS)}")
    model = analysed_file(file).model
    found = dependence_graph(_program(model, name), model)
    try:
        if independent is not None:
            first, second, given = _question(independent)
            answer = separation(found, first, second, given, given_data=given_data)
            say("\n".join(told(first, second, given, given_data, answer)))
            raise typer.Exit(0 if answer.independent else 1)
        if effect is not None:
            cause, _, other = (part.strip() for part in effect.partition("->"))
            if not cause or not other:
                stop(f"an effect is written 'a -> b', not '{effect}'")
            say("\n".join(advice(cause, other, adjustment(found, cause, other))))
            return
    except NoAnswer as problem:
        stop(str(problem))
    _write(_printed(found, chosen), output)


def _write(content: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(content)
        return
    try:
        output.write_text(content, encoding="utf-8")
    except OSError as error:
        stop(f"{output} cannot be written: {error.strerror}", 1)


def _program(model: Model, name: str | None) -> Program:
    exported = next((export.name for export in model.exports if export.name in model.programs), None)
    own = [each for each in model.order if each in model.own_programs]
    wanted = name or exported or (own[-1] if own else None)
    if wanted is None:
        stop("this file declares no program, so there is no graph")
    if wanted not in model.programs:
        stop(f"there is no program `{wanted}`" + (f"; it has {', '.join(f'`{each}`' for each in own)}" if own else ""))
    return model.programs[wanted]


def _question(text: str) -> tuple[str, str, list[str]]:
    """`a, b | c, d`"""
    asked, _, behind = text.partition("|")
    names, given = ([part.strip() for part in side.split(",") if part.strip()] for side in (asked, behind))
    if len(names) != 2:
        stop(f"a question is written 'a, b | c', with two names in front, not '{text}'")
    return names[0], names[1], given


def told(first: str, second: str, given: list[str], given_data: bool, answer: Separation) -> list[str]:
    """An answer in sentences."""
    all_given = [*(f"`{name}`" for name in given), *(["all that is observed"] if given_data else [])]
    behind = f" given {_listed(all_given)}" if all_given else ""
    if answer.determined:
        return [f"independent: `{first}` or `{second}` is known{behind}"]
    if answer.independent:
        return [f"independent: `{first}` and `{second}`{behind}"]
    lines = [f"not independent: `{first}` and `{second}`{behind}", f"  by {''.join(map(_way, answer.trail))}"]
    if answer.separator is None:
        lines.append("  whatever other sites are given")
    else:
        verb = "is" if len(answer.separator) == 1 else "are"
        also = " also" if all_given else ""
        lines.append(f"  independent where {_listed([f'`{name}`' for name in answer.separator])} {verb}{also} given")
    return lines


def _way(step: Step) -> str:
    """` → theta (→ effect, given)`: why a way goes on where arrows meet."""
    arrow = f" {step.arrow} " if step.arrow else ""
    through = f"→ {step.opened}, " if step.opened != step.name else ""
    return f"{arrow}{step.name}" + (f" ({through}given)" if step.opened else "")


def advice(cause: str, effect: str, found: Adjustment) -> list[str]:
    """What to adjust for, in sentences."""
    if not found.affects:
        return [f"`{cause}` has no effect on `{effect}`: no arrows lead from one to the other"]
    head = f"effect of `{cause}` on `{effect}`:"
    if found.observed is not None:
        if not found.observed:
            return [f"{head} nothing has to be adjusted for"]
        return [f"{head} adjust for {_listed([f'`{name}`' for name in found.observed])}"]
    lines = [f"{head} no observed sites block every back door"]
    if found.latent:
        lines.append(f"  with latents, {_listed([f'`{name}`' for name in found.latent])} would")
    if found.front is not None:
        lines.append(f"  by the front door: it goes through {_listed([f'`{name}`' for name in found.front])}")
    return lines


def _listed(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _printed(graph: Graph, format: str) -> str:
    from qvr_core.dependence.json_and_graphml import to_graphml, to_json

    match format:
        case "json":
            return to_json(graph)
        case "graphml":
            return to_graphml(graph)
        case _:
            return "\n".join(_lines(graph)) + "\n"


def _lines(graph: Graph) -> list[str]:
    """Each name with what it is, its sets, and what it reads; then colliders and Markov blankets."""
    from qvr_core.dependence import blanket, colliders, is_site

    rows: list[tuple[str, str, str]] = []
    for node, found in graph.nodes(data=True):
        plates = " × ".join(found["plates"])
        read = [
            f"{source} (earlier)" if 0 not in graph.edges[source, node]["lags"] else source
            for source in graph.predecessors(node)
        ]
        rows.append(
            (node, f"{found['kind']}{f' [{plates}]' if plates else ''}", f"← {', '.join(read)}" if read else "")
        )
    wide = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    lines = [str(graph.name), *(f"  {a:{wide[0]}}  {b:{wide[1]}}  {c}".rstrip() for a, b, c in rows)]
    if meeting := colliders(graph):
        lines += ["colliders", *(f"  {node:{wide[0]}}  {', '.join(above)}" for node, above in meeting.items())]
    sites = [node for node in graph if is_site(graph, node)]
    if shields := {node: around for node in sites if (around := blanket(graph, node))}:
        lines += ["Markov blankets", *(f"  {node:{wide[0]}}  {', '.join(around)}" for node, around in shields.items())]
    return lines
