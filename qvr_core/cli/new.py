"""`qvr new FORMULA --data csv:d.csv`: a commented program from a formula and a table."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from qvr_core.cli.console import say
from qvr_core.cli.files import stop, write_out

if TYPE_CHECKING:
    from polars import Series

    from qvr_core.data.formula.result import Program

app = typer.Typer(add_completion=False)


@app.command()
def new(
    formula: str = typer.Argument(metavar="FORMULA", help='As in "y ~ x + (1 + x | g)"; quote it.'),
    data: str = typer.Option(..., "--data", metavar="SOURCE:PATH", help="The table: csv:, parquet: or ndjson:."),
    output: Path | None = typer.Option(None, "--output", "-o", help="Where to write it; stdout by default."),
    family: str | None = typer.Option(
        None, "--family", help="normal, student, poisson, beta, cumulative …; by the outcome by default."
    ),
) -> None:
    """Write a program from a formula: typed data from the columns, weakly informative priors stated in words."""
    if output is not None and output.exists():
        stop(f"{output} exists: name another file, or remove it first", 1)
    made = written(formula, data, family, re.sub(r"\W", "_", output.stem) if output is not None else "model")
    if made.incomplete:
        stop(f"{_gaps(made.incomplete)}: fill them in, or leave the rows out, as `qvr init` does", 1)
    if output is None:
        write_out(made.text)
    else:
        output.write_text(made.text, encoding="utf-8")
    renamed = [f"{word}={column}" for word, column in made.columns.items()]
    flag = f" --columns {shlex.quote(','.join(renamed))}" if renamed else ""
    careful = "".join(f" --{key.replace('_', '-')} {value}" for key, value in made.settings.items())
    tell(made)
    if output is not None:
        say(f"wrote {output}; next: qvr run nuts {output} --data {data}{flag}{careful}")
    end_without(made)


def tell(made: Program) -> None:
    """What the table holds that a program has to say something of, and what of the formula it does not have."""
    for line in made.told:
        say(line, err=True)
    for line in made.left_out:
        say(f"left out: {line}", err=True)


def end_without(made: Program) -> None:
    """End with 1 where something of the formula is left out: what was written is another program than was asked for."""
    if made.left_out:
        terms = "a term" if len(made.left_out) == 1 else f"{len(made.left_out)} terms"
        stop(f"{terms} of the formula left out, as said above: the program says where", 1)


def _gaps(incomplete: Mapping[str, int]) -> str:
    return ", ".join(
        f"column `{name}` has {'an empty cell' if gaps == 1 else f'{gaps} empty cells'}"
        for name, gaps in incomplete.items()
    )


def written(
    formula: str, data: str, family: str | None, name: str, columns: Mapping[str, Series] | None = None
) -> Program:
    """The program of a formula; ends the command where there is none.  `columns` are those of `data`, once read."""
    from qvr_core.analysis import Analyzer
    from qvr_core.data.formula.problems import WrongFormula
    from qvr_core.data.formula.program import family_named, program
    from qvr_core.data.problems import DataProblem
    from qvr_core.semantics.types.diagnostics import Severity

    try:
        if family is not None:
            family_named(family)
        made = program(formula, columns if columns is not None else table(data), family, name)
    except (WrongFormula, DataProblem) as problem:
        stop(str(problem), 1)
    wrong = [one for one in Analyzer(made.text).snapshot().diagnostics() if one.severity is Severity.ERROR]
    if wrong:
        stop(f"the program of this formula has an error, {wrong[0].message}: please report it\n{made.text}", 1)
    return made


def table(data: str) -> dict[str, Series]:
    """The columns of a table that is named as csv:d.csv.  Raises `DataProblem`."""
    from polars import Series

    from qvr_core.data.tables.reading import read_frame

    source, _, path = data.partition(":")
    if source not in ("csv", "parquet", "ndjson") or not path:
        stop(f"--data {data}: a table is named by csv:, parquet: or ndjson: and a path, as csv:d.csv")
    found = read_frame(path, source).columns
    return {one: series for one, series in found.items() if isinstance(series, Series)}
