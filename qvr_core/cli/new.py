"""`qvr new FORMULA --data csv:d.csv`: a commented program from a formula and a table."""

from __future__ import annotations

import re
from pathlib import Path

import typer

from qvr_core.cli.console import say
from qvr_core.cli.files import stop, write_out

app = typer.Typer(add_completion=False)


@app.command()
def new(
    formula: str = typer.Argument(metavar="FORMULA", help='As in "y ~ x + (1 + x | g)"; quote it.'),
    data: str = typer.Option(..., "--data", metavar="SOURCE:PATH", help="The table: csv:, parquet: or ndjson:."),
    output: Path | None = typer.Option(None, "--output", "-o", help="Where to write it; stdout by default."),
    family: str | None = typer.Option(
        None, "--family", help="normal, bernoulli or poisson; by the outcome by default."
    ),
) -> None:
    """Write a program from a formula: typed data from the columns, weakly informative priors stated in words."""
    if output is not None and output.exists():
        stop(f"{output} exists: name another file, or remove it first", 1)
    text = written(formula, data, family, re.sub(r"\W", "_", output.stem) if output is not None else "model")
    if output is None:
        write_out(text)
        return
    output.write_text(text, encoding="utf-8")
    say(f"wrote {output}; next: qvr run nuts {output} --data {data}")


def written(formula: str, data: str, family: str | None, name: str) -> str:
    """The program of a formula; ends the command where there is none."""
    from polars import Series

    from qvr_core.analysis import Analyzer
    from qvr_core.data.formula import FAMILIES, WrongFormula, check_names, parsed, program
    from qvr_core.data.problems import DataProblem
    from qvr_core.data.tables import read_columns
    from qvr_core.semantics.types.diagnostics import Severity

    source, _, path = data.partition(":")
    if source not in ("csv", "parquet", "ndjson") or not path:
        stop(f"--data {data}: a table is named by csv:, parquet: or ndjson: and a path, as csv:d.csv")
    if family is not None and family not in FAMILIES:
        stop(f"--family is one of {', '.join(FAMILIES)}, not {family}")
    try:
        columns = {
            one: series for one, series in read_columns(path, source).columns.items() if isinstance(series, Series)
        }
        check_names(formula, columns)
        text = program(parsed(formula), columns, family, name)
    except (WrongFormula, DataProblem) as problem:
        stop(str(problem), 1)
    wrong = [one for one in Analyzer(text).snapshot().diagnostics() if one.severity is Severity.ERROR]
    if wrong:
        stop(f"a name of the table cannot stand in a program: {wrong[0].message}; rename the column", 1)
    return text
