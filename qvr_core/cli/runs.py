"""`qvr runs`: what was run, how it ended, and how runs compare."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.table import Column, Table
from rich.text import Text

from qvr_core.cli.console import PlainConsole, say
from qvr_core.cli.files import stop, store, write_out
from qvr_core.runs.record.data_files import noted
from qvr_core.runs.record.files import DamagedFile
from qvr_core.runs.record.protocol import Accuracies, Cancelled, Event, Finished, HeldOut, Progress, Started
from qvr_core.runs.record.store import NoSuchRun, RunDirectory
from qvr_core.syntax.printable import printable

app = typer.Typer(help="List, show and compare runs.", invoke_without_command=True)

STYLES = {"finished": "green", "running": "cyan", "cancelled": "yellow", "failed": "red", "crashed": "bold red"}
COMPARED = 24
"""Scalars of the posteriors that `compare` shows."""
JSON = typer.Option(False, "--json", help="As JSON.")


def opened(run_id: str) -> RunDirectory:
    """The run of that id; ends the command where there is none."""
    try:
        return store().open(run_id)
    except NoSuchRun as problem:
        stop(str(problem))


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
    from qvr_core.cli.display import console

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
def show(run_id: str = typer.Argument(help="An id, its beginning, or `last`."), as_json: bool = JSON) -> None:
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
    from qvr_core.cli.display import Screen

    out = PlainConsole(highlight=False, soft_wrap=True)
    out.print(f"[bold]{run.run_id}[/bold]  {Text(status, STYLES.get(status, '')).markup}")
    out.print(f"{job.config.algorithm} of {job.program or 'the export'} in {job.path}", markup=False)
    asked = job.config.model_dump(mode="json", exclude_defaults=True)
    out.print(
        "settings: " + (", ".join(f"{k} = {json.dumps(v)}" for k, v in asked.items()) or "all by default"), markup=False
    )
    started = next((event for event in reversed(events) if isinstance(event, Started)), None)
    if started is not None:
        out.print(f"{started.sizes()} on {started.where()}; {started.data}", markup=False)
    _sparkline(out, events)
    screen = Screen(job)
    for event in events:
        if not isinstance(event, Started | Progress):
            screen.show(event)
    if status == "crashed" and not any(event.event == "crashed" for event in events):
        out.print("the worker is gone without a word; the end of its log:", style="red")
        for line in run.log_tail():
            out.print("  " + line, markup=False)


def _sparkline(out: PlainConsole, events: list[Event]) -> None:
    from qvr_core.cli.display import sparkline

    losses = [e.smoothed_loss for e in events if isinstance(e, Progress) and e.smoothed_loss is not None]
    if losses:
        out.print(f"loss {sparkline(losses)} {losses[-1]:.4f}")


@app.command()
def compare(
    run_ids: list[str] = typer.Argument(help="Two runs or more."),
    plot: Path | None = typer.Option(None, "--plot", help="Draw the losses into this image."),
) -> None:
    """Compare runs: settings that differ, losses, held-out figures, posteriors."""
    from qvr_core.cli.display import console

    runs = [opened(run_id) for run_id in run_ids]
    table = Table("", *(run.run_id for run in runs))
    try:
        settings = [run.job().config.model_dump(mode="json") for run in runs]
        results = [_results(run) for run in runs]
        texts = [run.job().text for run in runs]
        read = [" ".join(file.sha256 for file in noted(run.path)) for run in runs]
    except (DamagedFile, OSError) as problem:
        stop(str(problem), 1)
    for key in settings[0]:
        values = [json.dumps(setting[key]) for setting in settings]
        if len(set(values)) > 1:
            table.add_row(key, *values)
    _versions(table, "program", texts)
    _versions(table, "data files", read)
    table.add_section()
    for key in dict.fromkeys(key for result in results for key in result):
        table.add_row(key, *(result.get(key, "") for result in results))
    console().print(table)
    if any(posteriors := [_posterior(run) for run in runs]):
        console().print(_side_by_side([run.run_id for run in runs], posteriors))
    if plot is not None:
        from qvr_core.runs.record.plots import plot_losses

        plot_losses([run.run_id for run in runs], store(), plot)


def _versions(table: Table, what: str, contents: Sequence[str]) -> None:
    """A row that numbers the different contents that runs had; none where all had the same."""
    distinct = list(dict.fromkeys(contents))
    if len(distinct) > 1:
        table.add_row(what, *(f"version {distinct.index(content) + 1}" for content in contents))


def _results(run: RunDirectory) -> dict[str, str]:
    """What came out of a run, in words."""
    results = {"status": run.status()}
    for event in run.events():
        match event:
            case Started(parameters=parameters):
                results["parameters"] = f"{parameters:,}"
            case HeldOut(bits_per_byte=bits):
                results["held out, bits"] = f"{bits:.4f}"
            case Accuracies(sites=sites):
                results |= {f"held out, {one.site}": f"{one.accuracy:.1%} of {one.baseline:.1%}" for one in sites}
            case Finished(losses=losses, seconds=seconds, divergences=divergences):
                if divergences is not None:
                    results["divergences"] = f"{divergences:,}"
                if losses is not None and losses.mean_of_last is not None:
                    results["loss (last steps)"] = f"{losses.mean_of_last:.4f}"
                results["seconds"] = f"{seconds:.1f}"
            case _:
                pass
    return results


def _posterior(run: RunDirectory) -> dict[str, str]:
    """Mean and sd of every scalar that a run ended with."""
    ending = run.ending()
    if not isinstance(ending, Finished | Cancelled):
        return {}
    return {
        row.name: " ± ".join("?" if number is None else f"{number:.4g}" for number in (row.mean, row.sd))
        for row in ending.posterior
    }


def _side_by_side(names: list[str], posteriors: list[dict[str, str]]) -> Table:
    """The posteriors of runs, a column each; of many scalars the first ones."""
    scalars = list(dict.fromkeys(name for posterior in posteriors for name in posterior))
    more = len(scalars) - COMPARED
    left = f"{more} more: `qvr runs show` has all of a run" if more > 0 else None
    table = Table("posterior, mean ± sd", *names, caption=left, caption_justify="left")
    for name in scalars[:COMPARED]:
        table.add_row(Text(printable(name)), *(posterior.get(name, "") for posterior in posteriors))
    return table


@app.command()
def export(
    run_id: str = typer.Argument(help="An id, its beginning, or `last`."),
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
