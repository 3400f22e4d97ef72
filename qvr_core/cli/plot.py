"""`qvr plot RUN KIND`: pictures of a posterior, its chains and its predictions, through ArviZ."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from qvr_core.cli.console import say
from qvr_core.cli.files import stop

if TYPE_CHECKING:
    from qvr_core.runs.pictures.stored import Stored
    from qvr_core.runs.record.protocol import Job
    from qvr_core.runs.record.store import RunDirectory

app = typer.Typer(add_completion=False)


class Kind(StrEnum):
    posterior = "posterior"
    trace = "trace"
    rank = "rank"
    forest = "forest"
    pairs = "pairs"
    energy = "energy"
    ppc = "ppc"
    prior = "prior"
    loo = "loo"
    series = "series"


CAPTIONS = {
    Kind.posterior: "Posterior densities, with the mean and the interval that holds 90 % of the draws.",
    Kind.trace: "Draws of each chain in their order.",
    Kind.rank: "Ranks of each chain's draws among all: chains that draw from one distribution stay in the band.",
    Kind.forest: "Posterior means, with the intervals that hold 50 % and 90 % of the draws.",
    Kind.pairs: "Draws of two numbers at a time.",
    Kind.energy: "Energies of the draws, and of the moves between them.",
    Kind.ppc: "Data, and data sets drawn from the model.",
    Kind.prior: "Densities of the prior and of the posterior.",
    Kind.loo: "Leave-one-out cross-validation by Pareto-smoothed importance sampling.",
    Kind.series: "Data over their axis, in the intervals that hold 50 % and 90 % of what the model draws.",
}
PIT = "Where each observation lies in what all others predict of it."
STATISTICS = "Statistics of data sets drawn from the model, and those of the data."
PREDICTIVE = (Kind.ppc, Kind.series)
MOST_SERIES = 12


@app.command()
def plot(
    run_id: str = typer.Argument(
        metavar="RUN", help="An id, its beginning, a program (the newest with draws), or `last`."
    ),
    kind: Kind = typer.Argument(help="What to draw."),
    output: Path | None = typer.Option(
        None, "--output", "-o", help="A .png, .svg or .html file; KIND.png by default.  A page has light and dark."
    ),
    names: str | None = typer.Option(
        None, "--vars", metavar="NAMES", help="Names or patterns between commas, as `b_*,sigma`; else all that vary."
    ),
    by: str | None = typer.Option(None, "--by", metavar="NAME", help="ppc: a panel for each group, as --by county."),
    stats: str | None = typer.Option(
        None, "--stat", metavar="NAMES", help="ppc: statistics between commas: mean, sd, median, min, max, zeros."
    ),
    prior: bool = typer.Option(False, "--prior", help="ppc, series: what the prior draws, not the posterior."),
    pit: bool = typer.Option(False, "--pit", help="loo: where observations lie in their predictions (LOO-PIT)."),
    dark: bool = typer.Option(False, "--dark", help="Colours for a dark page."),
) -> None:
    """Draw a picture of a run: PNG, SVG, or an HTML page which fetches nothing.  What is fixed, and standardised
    helpers, are left out unless they are named."""
    from qvr_core.runs.pictures.look import SUFFIXES

    for flag, given, kinds in (
        ("--by", by, (Kind.ppc,)), ("--stat", stats, (Kind.ppc,)), ("--pit", pit, (Kind.loo,)),
        ("--prior", prior, PREDICTIVE),
    ):  # fmt: skip
        if given and kind not in kinds:
            stop(f"{flag} goes with {' and '.join(f'`{one}`' for one in kinds)}, not with `{kind}`")
    target = output or Path(f"{kind}.png")
    if target.suffix not in SUFFIXES:
        stop(f"{target} is none of {', '.join(SUFFIXES)}")
    if importlib.util.find_spec("arviz_plots") is None:
        stop(f"pictures are drawn through ArviZ: {sys.executable} -m pip install 'qvr-lsp[plots]'", 1)
    _draw(run_id, kind, target, names, by, stats, prior=prior, pit=pit, dark=dark)


def _draw(
    run_id: str, kind: Kind, target: Path, names: str | None, by: str | None, stats: str | None,
    *, prior: bool, pit: bool, dark: bool,
) -> None:  # fmt: skip
    from qvr_core.cli.output.chosen_rows import patterns_of
    from qvr_core.cli.runs import drawn_from
    from qvr_core.cli.summary import rows_of
    from qvr_core.runs.pictures.look import write
    from qvr_core.runs.pictures.stored import NoPicture, Stored
    from qvr_core.runs.record.atomic_files import DamagedFile

    run = drawn_from(run_id)
    of_data = kind in (*PREDICTIVE, Kind.loo, Kind.energy)
    chosen = [] if of_data else [row.name for row in rows_of(run_id, names)[0]]
    try:
        job = run.job()
        stored = Stored.of(run, chosen)
        asked = patterns_of(names or "")
        if kind is Kind.loo and not pit:
            figure = _accuracy(stored, run)
        else:
            figure = _picture(stored, job, kind, asked if of_data else [], by, stats, prior=prior, pit=pit)
        title = f"{job.program or Path(job.path).stem} · {kind}"
        caption = PIT if pit else STATISTICS if stats else CAPTIONS[kind]
        write(target, figure, title=title, caption=caption, dark=dark)
    except FileNotFoundError as problem:
        if problem.filename is not None and Path(problem.filename) == target:
            stop(f"{target} cannot be written: {problem.strerror}", 1)
        stop(f"run {run.run_id} is {run.status()} and stored no draws for a picture: qvr run nuts FILE", 1)
    except NoPicture as problem:
        stop(str(problem), 1)
    except DamagedFile as problem:
        stop(str(problem), 1)
    except OSError as problem:
        stop(f"{problem.filename or target} cannot be written: {problem.strerror or problem}", 1)
    _say_the_rest(kind, chosen)
    say(f"wrote {target}")


def _say_the_rest(kind: Kind, chosen: Sequence[str]) -> None:
    from qvr_core.runs.pictures.posteriors import MOST

    most = MOST.get(kind)
    if most is not None and len(chosen) > most:
        say(f"the first {most} of {len(chosen):,} numbers; --vars chooses others", err=True)


def _accuracy(stored: Stored, run: RunDirectory) -> Callable[[], Any]:
    from qvr_core.runs.evaluation.loo import loo_of
    from qvr_core.runs.evaluation.refitted import asked_by, with_refits
    from qvr_core.runs.pictures.accuracy import pareto

    found = loo_of(stored.tree)
    refitted = found and with_refits(found, run, asked_by(run))
    return lambda: pareto(found, refitted)


def _picture(
    stored: Stored, job: Job, kind: Kind, asked: list[str], by: str | None, stats: str | None,
    *, prior: bool, pit: bool,
) -> Callable[[], Any]:  # fmt: skip
    """What draws the figure; called once for each theme."""
    from qvr_core.runs.pictures import predictions
    from qvr_core.runs.pictures.accuracy import loo_pit
    from qvr_core.runs.pictures.posteriors import POSTERIORS
    from qvr_core.runs.record.name_roles import labels_of, predicted_last

    if kind in POSTERIORS:
        return lambda: POSTERIORS[kind](stored)
    source, group = ("prior", "prior_predictive") if prior else ("posterior", "posterior_predictive")
    steps = predictions.steps_of(stored, group, asked)
    if kind is Kind.loo:
        return lambda: loo_pit(stored, steps)
    if kind is Kind.series:
        ahead = [] if prior else predictions.ahead_of(stored, predicted_last(job), asked, steps)
        lines = predictions.lines_of(stored, group, asked)
        if len(lines) > MOST_SERIES:
            say(f"the first {MOST_SERIES} of {len(lines):,} series; --vars chooses steps", err=True)
        return lambda: predictions.series(lines[:MOST_SERIES], ahead, source)
    if by is not None:
        steps = [part for step in steps for part in predictions.grouped(stored, step, by, labels_of(job))]
    if stats is not None:
        wanted = [one.strip() for one in stats.split(",") if one.strip()]
        return lambda: predictions.statistics(steps, wanted, source)
    return lambda: predictions.predictive(steps, source)
