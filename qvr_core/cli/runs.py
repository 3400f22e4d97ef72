"""`qvr runs`: what was run, how it ended, and how runs compare."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from rich.table import Column, Table
from rich.text import Text

from qvr_core.cli.console import PlainConsole, say
from qvr_core.cli.files import stop, store, write_out
from qvr_core.runs.record.atomic_files import DamagedFile
from qvr_core.runs.record.protocol import Draws, Event, Progress, Started
from qvr_core.runs.record.store import NoSuchRun, RunDirectory

app = typer.Typer(
    add_completion=False, help="List, show, compare, export and delete runs.", invoke_without_command=True
)

STYLES = {"finished": "green", "running": "cyan", "cancelled": "yellow", "failed": "red", "crashed": "bold red"}
JSON = typer.Option(False, "--json", help="As JSON.")


def opened(run_id: str) -> RunDirectory:
    """The run of that id; ends the command where there is none."""
    try:
        return store().open(run_id)
    except NoSuchRun as problem:
        stop(str(problem))


def drawn_from(run_id: str) -> RunDirectory:
    """The run of that id, of a program the newest that left draws; says so where a newer one has none."""
    newest = opened(run_id)
    found = store().open(run_id, drawn=True)
    if found.run_id != newest.run_id:
        say(f"{newest.run_id} has no draws, so this is {found.run_id}", err=True)
    return found


@app.callback()
def listing(
    ctx: typer.Context,
    as_json: bool = JSON,
    count: int = typer.Option(30, "-n", help="At most so many."),
    everything: bool = typer.Option(False, "--all", help="Also those that were refused before their first step."),
) -> None:
    """List runs, newest first."""
    if ctx.invoked_subcommand is not None:
        return
    every = store().overviews()
    shown = [run for run in every if everything or not run.refused]
    runs = shown[:count]
    if as_json:
        say(
            json.dumps(
                [
                    {
                        "run_id": run.run_id,
                        "program": run.program,
                        "algorithm": run.algorithm,
                        "status": run.status,
                        "refused": run.refused,
                        "created": run.created.isoformat(),
                        "loss": run.last_loss,
                        "problem": run.problem,
                    }
                    for run in runs
                ],
                indent=1,
            )
        )
        return
    from qvr_core.cli.output.run_display import console

    damaged = any(run.problem for run in runs)
    table = Table(Column("run", no_wrap=True), "program", "how", "status", "loss", *(["problem"] if damaged else []))
    for run in runs:
        loss = "" if run.last_loss is None else f"{run.last_loss:.4f}"
        status = Text("refused" if run.refused else run.status, STYLES.get(run.status, ""))
        row = (run.run_id, run.program, run.algorithm, status, loss)
        table.add_row(*row, *([run.problem or ""] if damaged else []))
    hidden = len(every) - len(shown)
    if runs or not hidden:
        console().print(table if runs else "no runs yet: qvr run svi FILE")
    if hidden:
        say(f"{hidden} refused before the first step: qvr runs --all")


@app.command()
def show(
    run_id: str = typer.Argument(help="An id, its beginning, a program (its newest run), or `last`."),
    as_json: bool = JSON,
) -> None:
    """Show one run: what was asked, how it went, what came out."""
    run = opened(run_id)
    try:
        job, events, status = run.job(), list(run.events()), run.status()
    except (DamagedFile, OSError) as problem:
        stop(str(problem), 1)
    if as_json:
        content = {
            "run_id": run.run_id,
            "status": status,
            "job": job.model_dump(mode="json"),
            "events": [event.model_dump(mode="json", exclude_none=True) for event in events],
        }
        write_out(json.dumps(content, ensure_ascii=False, indent=1) + "\n")
        return
    from qvr_core.cli.output.run_display import Screen

    out = PlainConsole(highlight=False, soft_wrap=True)
    out.print(f"[bold]{run.run_id}[/bold]  {Text(status, STYLES.get(status, '')).markup}")
    out.print(f"{job.config.algorithm} of {job.program or 'the export'} in {job.path}", markup=False)
    asked = job.config.model_dump(mode="json", exclude_defaults=True)
    out.print(
        "settings: "
        + (", ".join(f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in asked.items()) or "all by default"),
        markup=False,
    )
    started = next((event for event in reversed(events) if isinstance(event, Started)), None)
    if started is not None:
        out.print(f"{started.sizes()} on {started.where()}; {started.data}", markup=False)
    _sparkline(out, events)
    screen = Screen(job)
    for event in events:
        if not isinstance(event, Started | Progress | Draws):
            screen.show(event)
    if status == "crashed" and not any(event.event == "crashed" for event in events):
        out.print("the worker is gone without a word; the end of its log:", style="red")
        for line in run.log_tail():
            out.print("  " + line, markup=False)


def _sparkline(out: PlainConsole, events: list[Event]) -> None:
    from qvr_core.cli.output.run_display import sparkline

    losses = [e.smoothed_loss for e in events if isinstance(e, Progress) and e.smoothed_loss is not None]
    if losses:
        out.print(f"loss {sparkline(losses)} {losses[-1]:.4f}")


@app.command()
def compare(
    run_ids: list[str] = typer.Argument(
        help="Two runs or more: ids, their beginnings, programs (the newest of each with draws), or `last`."
    ),
    as_json: bool = JSON,
    plot: Path | None = typer.Option(None, "--plot", help="Draw the losses into this image."),
) -> None:
    """Compare runs: predictive accuracy (elpd by PSIS-LOO), what differs in settings and programs, results, posteriors
    side by side."""
    from qvr_core.cli.output.comparison import compared

    runs = [drawn_from(run_id) for run_id in run_ids]
    compared(runs, as_json=as_json)
    if plot is not None:
        from qvr_core.runs.record.exports import losses_of
        from qvr_core.runs.record.plots_without_arviz import plot_losses

        descending = [run.run_id for run in runs if losses_of(run)]
        if not descending:
            stop("these runs have no losses to draw: `qvr sample RUN --plot` draws data beside what each predicts")
        plot_losses(descending, store(), plot)


@app.command()
def delete(
    run_ids: list[str] = typer.Argument(help="Ids, their beginnings, or `last`."),
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask."),
) -> None:
    """Delete runs with everything that they left.  One that is running is refused."""
    runs = list(dict.fromkeys(opened(run_id) for run_id in run_ids))
    for run in runs:
        try:
            working = run.status() == "running"
        except (DamagedFile, OSError, ValueError):
            working = False
        if working:
            stop(f"run {run.run_id} is running: cancel it, or wait for its end", 1)
    if not yes:
        say(f"this deletes {', '.join(run.run_id for run in runs)} for good")
        typer.confirm("go on?", abort=True)
    for run in runs:
        run.delete()
        say(f"deleted {run.run_id}")


@app.command()
def export(
    run_id: str = typer.Argument(help="An id, its beginning, a program (its newest run), or `last`."),
    output: Path = typer.Option(..., "--output", "-o", help="A .csv file, or .nc for a posterior."),
) -> None:
    """Write losses or posterior draws for other programs: CSV, or NetCDF."""
    from qvr_core.runs.record.exports import export_csv, export_netcdf

    run = opened(run_id)
    try:
        match output.suffix:
            case ".csv":
                export_csv(run, output)
            case ".nc":
                export_netcdf(run, output)
            case _:
                stop(f"{output} is neither .csv nor .nc")
    except DamagedFile as problem:
        stop(str(problem), 1)
    except OSError as problem:
        stop(f"{problem.filename or output} cannot be written: {problem.strerror or problem}", 1)
    say(f"wrote {output}")
