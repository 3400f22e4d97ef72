"""`qvr calibrate FILE`: simulation-based calibration of a program and its sampler."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

import typer

from qvr_core.cli.console import say
from qvr_core.cli.files import CLUSTER, analysed_file, known_cluster, stop, write_out

if TYPE_CHECKING:
    from qvr_core.inference.calibration import Elsewhere, Rank
    from qvr_core.runs.prepare.prepare import Prepared
    from qvr_core.runs.record.protocol import Job

app = typer.Typer(add_completion=False)

BINS = 16


@app.command()
def calibrate(
    file: str = typer.Argument(metavar="FILE.qvr", help="A program whose latents all data share."),
    replicates: int = typer.Option(200, "--replicates", min=20, max=10_000, help="Data sets drawn from the prior."),
    data: str | None = typer.Option(
        None, "--data", metavar="SOURCE:PATH", help="Shapes and predictors; qvr.toml's by default, else synthetic."
    ),
    other: str | None = typer.Option(
        None, "--fit", metavar="OTHER.qvr", help="Sample this program's posterior instead."
    ),
    seed: int = typer.Option(0, "--seed", min=0, help="Seed of everything random."),
    cluster: str | None = typer.Option(None, "--cluster", metavar="ADDRESS", help=CLUSTER, callback=known_cluster),
    as_json: bool = typer.Option(False, "--json", help="As JSON: one object a number, with its ranks."),
) -> None:
    """Does the sampler find what was put in?  Ranks of latents drawn from the prior among draws of the posterior of
    data drawn with them: uniform where program and sampler agree.  Exit status 1 where they are not."""
    from qvr_core.cli.run import unstored
    from qvr_core.runs.worker.command_engine import engine_of

    given = {"data": data, "cluster": cluster}
    job = unstored(file, {"algorithm": "nuts"} | {name: value for name, value in given.items() if value is not None})
    job = job.model_copy(update={"config": job.config.drawing_data()})
    with engine_of(job):
        ranks = _ranks(job, other, replicates, seed)
    if as_json:
        rows = [_row(one) for one in ranks]
        content = {"replicates": replicates, "numbers": rows} | _power(ranks, replicates)
        write_out(json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    else:
        _show(ranks, replicates)
    if not all(one.passed for one in ranks):
        raise typer.Exit(1)


def _ranks(job: Job, other: str | None, replicates: int, seed: int) -> list[Rank]:
    """Of data sets drawn from a job's program, in the posterior of the `other` one where there is one."""
    from rich.progress import Progress

    from qvr_core.cli.console import PlainConsole
    from qvr_core.data.problems import DataProblem
    from qvr_core.inference import calibration
    from qvr_core.inference.pointwise import Given
    from qvr_core.runs.prepare.failures import Refused
    from qvr_core.runs.prepare.prepare import prepare
    from qvr_core.runs.record.program import analysed, of_snapshot
    from qvr_core.runtime.values.errors import RuntimeProblem

    try:
        prepared = prepare(job, analysed(job))
        _, given = prepared.train.batch(_first())
        observed = Given(prepared.model, None, given).observed_data()
        if not observed:
            stop(f"`{prepared.program.name}` observes nothing: there is no posterior to calibrate", 1)
        within = prepared.model.observed_inside
        if within:
            what = f"`{within[0]}` is observed inside of an arrow, and replicates of it are not drawn"
            stop(f"{what}: observe it in `{prepared.program.name}` itself", 1)
        fixed = {name: value for name, value in given.items() if name not in observed}
        fitted = prepared
        if other is not None:
            again = of_snapshot(job.model_copy(update={"program": None}), analysed_file(other))
            fitted = prepare(again, analysed(again))
        with Progress(console=PlainConsole(stderr=True), transient=True) as bar:
            task = bar.add_task(f"{replicates} replicates", total=None)

            def watch(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total)

            with _elsewhere(fitted, fixed, replicates, watch) as elsewhere:
                return calibration.calibrate(
                    prepared.model, fixed, observed, replicates, fitted=fitted.model, seed=seed, watch=watch,
                    elsewhere=elsewhere,
                )  # fmt: skip
    except DataProblem as problem:
        stop(str(problem), 2 if problem.usage else 1)
    except (Refused, RuntimeProblem) as problem:
        fixes = "".join(f"\n  = fix: {fix}" for fix in getattr(problem, "fixes", ()))
        stop(f"{problem}{fixes}", 1)


@contextlib.contextmanager
def _elsewhere(
    fitted: Prepared, fixed: Mapping[str, Any], replicates: int, watch: Callable[[int, int], None]
) -> Generator[Elsewhere | None]:
    """Who samples the replicates, where the settings name a cluster."""
    from qvr_core.cluster.address import address_of

    address = address_of(fitted.job.config.cluster)
    if address is None:
        yield None
        return
    from qvr_core.runs.fit.clusters import on_cluster
    from qvr_core.runs.worker import replicates as units

    again = ("Run it here: --cluster none", "Run it there, or on another one: --cluster tcp://HOST:PORT in its place")
    with on_cluster(address, replicates, again, lambda text: say(text, err=True)) as dealer:
        yield units.on_cluster(dealer, fitted.job, fitted.known, fixed, watch)


def _first() -> Any:
    from qvr_core.arrays.engine import arrays

    return arrays.zeros(1, dtype=arrays.int64)


def _power(ranks: list[Rank], replicates: int) -> dict[str, Any]:
    """What these replicates could have seen."""
    import math

    from qvr_core.inference.calibration_power import OFTEN, seen

    if not ranks:
        return {}
    found = seen(replicates, ranks[0].draws, ranks[0].limit)
    each = {"shift": found.shift, "narrow": found.narrow or None, "wide": found.wide}
    finite = {name: None if size is None or math.isinf(size) else size for name, size in each.items()}
    return {"seen": {"probability": OFTEN, **finite}}


def _row(one: Rank) -> dict[str, Any]:
    from qvr_core.inference.calibration import verdict

    return {
        "name": one.name, "passed": one.passed, "verdict": verdict(one), "distance": one.distance, "limit": one.limit,
        "draws": one.draws, "ranks": list(one.ranks),
    }  # fmt: skip


def _show(ranks: list[Rank], replicates: int) -> None:
    from rich.table import Column, Table
    from rich.text import Text

    from qvr_core.cli.output.run_display import BLOCKS, console
    from qvr_core.inference.calibration import verdict
    from qvr_core.syntax.printable import printable

    title = f"ranks of {replicates} replicates among {ranks[0].draws} draws each" if ranks else "no latents"
    table = Table(Column("name", no_wrap=True), "ranks, low to high", "distance", "limit", "verdict", title=title)
    for one in ranks:
        counts = one.histogram(BINS)
        scale = (len(BLOCKS) - 1) / max(2 * replicates / BINS, *counts)
        bars = "".join(BLOCKS[round(count * scale)] for count in counts)
        style = "green" if one.passed else "bold yellow"
        figures = (f"{one.distance:.2f}", f"{one.limit:.2f}")
        table.add_row(Text(printable(one.name)), bars, *figures, Text(verdict(one), style))
    out = console()
    out.print(table)
    bad = sum(not one.passed for one in ranks)
    if bad or not ranks:
        out.print(f"{bad} of {len(ranks)} numbers are not calibrated")
        return
    from qvr_core.inference.calibration_power import in_words, seen

    words = in_words(seen(replicates, ranks[0].draws, ranks[0].limit), replicates)
    out.print(f"all {len(ranks)} numbers are calibrated, {words}")
