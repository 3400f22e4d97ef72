"""`qvr check-fit RUN`: whether the draws of a run are to be trusted, and what to do where they are not."""

from __future__ import annotations

import json

import typer

from qvr_core.cli.files import stop, write_out

app = typer.Typer(add_completion=False)


@app.command()
def check_fit(
    run_id: str = typer.Argument("last", help="An id, its beginning, a program (the newest with draws), or `last`."),
    as_json: bool = typer.Option(False, "--json", help="As JSON: one object a check."),
) -> None:
    """Is a fit to be trusted?  Divergences, tree depth, E-BFMI, R-hat, bulk and tail ESS, MCSE, Pareto k; each with
    what to do and where.  Exit status 1 where a check of the draws fails; a high Pareto k is a note, since it says
    nothing against them: leave-one-out figures of those observations are rough."""
    from qvr_core.cli.output.run_display import check_lines, console
    from qvr_core.cli.runs import drawn_from
    from qvr_core.runs.record.atomic_files import DamagedFile
    from qvr_core.runs.worker.command_engine import engine_of

    run = drawn_from(run_id)
    try:
        job = run.job()
        with engine_of(job):
            from qvr_core.runs.evaluation.fit_checks import checks_of

            found = checks_of(run, job)
    except FileNotFoundError:
        fitted = "qvr run nuts FILE, or svi of a program whose latents all rows share"
        stop(f"run {run.run_id} is {run.status()} and left no posterior to check: {fitted}", 1)
    except (DamagedFile, OSError) as problem:
        stop(str(problem), 1)
    if as_json:
        content = {"run_id": run.run_id, "checks": [one.model_dump(mode="json", exclude_none=True) for one in found]}
        write_out(json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    else:
        out = console()
        for line in check_lines(found, job.path):
            out.print(line, soft_wrap=True)
    if not all(one.passed or one.note for one in found):
        raise typer.Exit(1)
