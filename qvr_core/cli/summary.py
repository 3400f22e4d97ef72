"""`qvr summary RUN`: the numbers of a posterior as a table for a paper, a script or a terminal."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

import typer

from qvr_core.cli.files import stop, write_out
from qvr_core.runs.record.protocol import PosteriorRow

if TYPE_CHECKING:
    from qvr_core.runs.record.protocol import Job
    from qvr_core.runs.record.store import RunDirectory

app = typer.Typer(add_completion=False)

HEADS = ("name", "mean", "sd", "5 %", "median", "95 %", "R-hat", "ESS")


class Format(StrEnum):
    md = "md"
    latex = "latex"
    csv = "csv"
    json = "json"


@app.command()
def summary(
    run_id: str = typer.Argument("last", help="An id, its beginning, a program (the newest with draws), or `last`."),
    form: Format = typer.Option(Format.md, "--format", help="Markdown, LaTeX (booktabs), csv or JSON."),
    names: str | None = typer.Option(
        None, "--vars", metavar="NAMES", help="Names or patterns between commas, as `b_*,sigma`; else all that vary."
    ),
) -> None:
    """Mean, sd, quantiles, R-hat and ESS of a posterior, as a table.  What is fixed, and standardised helpers, are
    left out unless they are named."""
    rows, _ = rows_of(run_id, names)
    write_out(WRITERS[form](rows))


def rows_of(run_id: str, names: str | None) -> tuple[list[PosteriorRow], str]:
    """The rows that are asked for, and the id of their run; ends the command where there are none."""
    from qvr_core.cli.output.chosen_rows import chosen, site_of
    from qvr_core.cli.runs import drawn_from
    from qvr_core.data.column_names import listed, nearest
    from qvr_core.runs.record.atomic_files import DamagedFile
    from qvr_core.runs.record.name_roles import standardised
    from qvr_core.runs.record.protocol import Cancelled, Finished

    run = drawn_from(run_id)
    try:
        ending, job = run.ending(), run.job()
    except (DamagedFile, OSError) as problem:
        stop(str(problem), 1)
    every = ending.posterior if isinstance(ending, Finished | Cancelled) else ()
    if not every:
        stop(f"run {run.run_id} is {run.status()} and left no posterior: {_what_to_do(run, job)}", 1)
    rows = chosen(every, names, standardised(job) if names is None else ())
    if not rows:
        sites = list(dict.fromkeys(site_of(row.name) for row in every))
        near = nearest(names or "", sites)
        guess = f"; did you mean `{near}`?" if near else ""
        stop(f"run {run.run_id} has no `{names}`: there are {listed(sites)}{guess}", 1)
    return rows, run.run_id


def _numbers(row: PosteriorRow) -> tuple[float | None, ...]:
    return row.mean, row.sd, row.q05, row.median, row.q95, row.r_hat, row.ess


def _what_to_do(run: RunDirectory, job: Job) -> str:
    """With a run that has no posterior: a checkpoint is gone on from, unless its fit has made all its steps."""
    if job.config.algorithm == "svi" and run.status() == "finished":
        return f"no latent of its program is one that all rows share; `qvr sample {run.run_id}` draws from it"
    left = any(run.checkpoints.glob("*")) if run.checkpoints.is_dir() else False
    go_on = left and run.status() != "failed"
    return f"qvr run {job.config.algorithm} --resume {run.run_id}" if go_on else "qvr run nuts FILE"


def cells(row: PosteriorRow) -> list[str]:
    """The numbers of a row as people read them: as many digits as their sd is worth."""
    *values, r_hat, ess = _numbers(row)
    shown = ["" if value is None else _rounded(value, row.sd) for value in values]
    return [*shown, "" if r_hat is None else f"{r_hat:.3f}", "" if ess is None else f"{ess:.0f}"]


def _rounded(value: float, sd: float | None) -> str:
    from math import floor, isfinite, log10

    if not sd or not isfinite(sd) or not isfinite(value):
        return f"{value:.4g}"
    digits = 1 - floor(log10(sd))
    return f"{value:.4g}" if digits > 8 or digits < -4 else f"{value:.{max(digits, 0)}f}"


def _markdown(rows: Sequence[PosteriorRow]) -> str:
    lines = ["| " + " | ".join(HEADS) + " |", "|---|" + "---:|" * (len(HEADS) - 1)]
    lines += ["| " + " | ".join([f"`{row.name}`".replace("|", "\\|"), *cells(row)]) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _latex(rows: Sequence[PosteriorRow]) -> str:
    heads = " & ".join(head.replace("%", r"\%").replace("R-hat", r"$\hat R$") for head in HEADS)
    lines = [r"\begin{tabular}{l" + "r" * (len(HEADS) - 1) + "}", r"\toprule", heads + r" \\", r"\midrule"]
    for row in rows:
        numbers = [f"${cell}$" if cell.startswith("-") else cell for cell in cells(row)]
        lines.append(" & ".join([rf"\texttt{{{_escaped(row.name)}}}", *numbers]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _escaped(text: str) -> str:
    """What TeX reads as a command, as a letter."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(one, f"\\{one}" if one in "#$%&_{}" else one) for one in text)


def _csv(rows: Sequence[PosteriorRow]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["name", "mean", "sd", "q05", "median", "q95", "r_hat", "ess"])
    writer.writerows([row.name, *("" if value is None else value for value in _numbers(row))] for row in rows)
    return out.getvalue()


def _json(rows: Sequence[PosteriorRow]) -> str:
    content = [row.model_dump(mode="json", exclude_none=True) for row in rows]
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


WRITERS = {Format.md: _markdown, Format.latex: _latex, Format.csv: _csv, Format.json: _json}
