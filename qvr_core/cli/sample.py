"""`qvr sample RUN`: draws from a fitted program, or from the prior of one before it is fitted."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from qvr_core.cli.console import say
from qvr_core.cli.files import analysed_file, read_program, source_flags, stop, write_out

if TYPE_CHECKING:
    from qvr_core.runs.fit.svi import SviFit
    from qvr_core.runs.record.protocol import Job
    from qvr_core.runs.record.store import RunDirectory
    from qvr_core.runs.worker.prediction import Drawn

app = typer.Typer(add_completion=False)

LISTED = 64
"""Numbers of a site that the terminal lists one by one."""
FIGURES = ("mean", "sd", "q05", "median", "q95")
TERMS = ("term", "share")
"""What is said of a place where a term was drawn."""


@app.command()
def sample(
    run_id: str = typer.Argument(
        metavar="RUN",
        help="A run: its id, a beginning of it, its program (the newest with draws), or `last`; or a FILE.qvr.",
    ),
    prior: bool = typer.Option(False, "--prior", help="From the prior alone: needs no fit, so a file will do."),
    data: list[str] | None = typer.Option(
        None,
        "--data",
        metavar="SOURCE:PATH",
        help="Predict for these rows, as csv:new.csv; observed columns may lack. Again for further tables: "
        "County=csv:more.csv, beside whose rows those of the fit count.",
    ),
    count: int = typer.Option(200, "--draws", "-n", min=1, help="Draws; of text: tokens to write, windows to fill in."),
    seed: int = typer.Option(0, "--seed", help="Seed of the draws."),
    prompt: str = typer.Option("", "--prompt", help="Text to go on from, where the program predicts the next token."),
    output: Path | None = typer.Option(
        None, "--output", "-o", help="Write all numbers: .csv (a row each), .npz (draws) or .nc (draws with labels)."
    ),
    plot: Path | None = typer.Option(
        None, "--plot", help="Draw the data beside what is drawn of them into this image (PNG, SVG or PDF)."
    ),
    as_json: bool = typer.Option(False, "--json", help="As JSON: one object a number."),
) -> None:
    """Draw from a fitted program: the posterior predictive of its data or of new rows, text for a language model; with
    --prior the prior predictive, before any fit."""
    from qvr_core.runs.record.atomic_files import DamagedFile
    from qvr_core.runs.worker.command_engine import engine_of

    given = {key: value for key, value in source_flags(data or ()).items() if value is not None}
    try:
        run, job = _asked(run_id, given, prior=prior)
    except DamagedFile as problem:
        stop(str(problem), 1)
    with engine_of(job):
        drawn = _drawn(run, job, data, count, seed, prior=prior, prompt=prompt, text=output is None)
    if drawn is None:
        return
    for note in drawn.notes:
        say(note, err=True)
    _write(drawn, output, as_json)
    if plot is not None:
        _picture(drawn, "prior" if prior else "posterior", plot, as_json)


def _asked(run_id: str, given: dict[str, str], *, prior: bool) -> tuple[RunDirectory | None, Job]:
    """The run that draws are taken from, none for those of a prior, and its job.  Raises `DamagedFile`."""
    from qvr_core.cli.run import unstored
    from qvr_core.cli.runs import drawn_from, opened

    if run_id.endswith(".qvr"):
        if not prior:
            stop(f"{run_id} is not fitted: add --prior, or fit it and name the run (`last`)")
        _require_sound(run_id)
        return None, unstored(run_id, given)
    if prior:
        return None, opened(run_id).job()
    run = drawn_from(run_id)
    return run, run.job()


def _drawn(
    run: RunDirectory | None,
    job: Job,
    data: list[str] | None,
    count: int,
    seed: int,
    *,
    prior: bool,
    prompt: str,
    text: bool,
) -> Drawn | None:
    """The draws; None where a language model has written its text instead, which it does where `text`."""
    from qvr_core.data.problems import DataProblem
    from qvr_core.runs.prepare.failures import Refused
    from qvr_core.runs.record.atomic_files import DamagedFile
    from qvr_core.runs.worker import prediction, text_generation
    from qvr_core.runs.worker.new_data import NewFiles, with_data
    from qvr_core.runtime.values.errors import RuntimeProblem

    here = str(Path.cwd())
    try:
        if run is None:
            # the job of a file has the data already
            again = with_data(job, data, here) if data and job.run_id else job
            return prediction.from_prior(again, count, seed)
        if text and not run.posterior.exists() and _says_text(fit := text_generation.restored(run)):
            _text(fit, prompt, count, seed)
            return None
        if prompt:
            stop("--prompt is for programs that predict the next token of a text: this one does not write on")
        return prediction.from_posterior(run, count, seed, NewFiles(data, here) if data else None)
    except DataProblem as problem:
        stop(str(problem), 2 if problem.usage else 1)
    except (Refused, DamagedFile, RuntimeProblem) as problem:
        fixes = "".join(f"\n  = fix: {fix}" for fix in getattr(problem, "fixes", ()))
        place = f"{problem.place}: " if isinstance(problem, RuntimeProblem) and problem.place else ""
        stop(f"{place}{problem}{fixes}", 1)


def _require_sound(file: str) -> None:
    """End the command where the program has errors, and show them."""
    from qvr_core.cli.output.diagnostics_text import Finding, show
    from qvr_core.semantics.types.diagnostics import Severity

    text = read_program(file)
    found = [Finding(file, text, each) for each in analysed_file(file, text).diagnostics()]
    errors = [each for each in found if each.diagnostic.severity is Severity.ERROR]
    if errors:
        show(errors)
        raise typer.Exit(1)


def _picture(drawn: Drawn, source: str, plot: Path, quiet: bool) -> None:
    """Data and what is drawn of them, as an image."""
    import numpy as np

    from qvr_core.runs.evaluation.summaries import shares_of
    from qvr_core.runs.record.plots_without_arviz import plot_predictive

    def flat(value: Any) -> Any:
        return value.detach().cpu().double().numpy().reshape(len(value), -1)

    known = {name: flat(value.reshape(1, -1))[0] for name, value in drawn.observed.items()}
    data = {name: value[np.isfinite(value)] for name, value in known.items()}
    values = {name: flat(drawn.values[name]) for name in drawn.steps if name not in drawn.terms}
    steps = [shares_of(name, data.get(name, np.empty(0)), each) for name, each in values.items() if each.size]
    if not steps:
        stop("there is nothing to draw: the program observes no numbers", 1)
    try:
        plot_predictive(steps, source, plot, drawn.censored)
    except (OSError, ValueError) as problem:
        stop(f"{plot}: {problem}", 1)
    for name in drawn.censored:
        said = f"the data of `{name}` are cut off where they are censored, and what is drawn of it is not"
        say(f"{said}: the picture compares the two only where nothing is", err=True)
    say(f"wrote {plot}", err=quiet)


def _says_text(fit: SviFit) -> bool:
    return fit.prepared.text or fit.prepared.job.config.source == "pairs"


def _text(fit: SviFit, prompt: str, count: int, seed: int) -> None:
    """What a language model says: text that goes on, or what it fills in."""
    from qvr_core.runs.worker import text_generation

    writes = fit.prepared.text and text_generation.corpus_and_task(fit.prepared)[1].task == "next"
    if prompt and not writes:
        stop("--prompt is for programs that predict the next token of a text: this one does not write on")
    if fit.prepared.job.config.source == "pairs":
        for pair in text_generation.fill_pairs(fit, min(count, 20), seed):
            guesses = ", ".join(f"{truth!r}: {guess!r}" for truth, guess in pair.tokens)
            verdict = "" if pair.label is None else f"  [{pair.label[0]}: {pair.label[1]}]"
            say(f"{pair.shown}\n    {guesses}{verdict}")
    elif writes:
        corpus, _ = text_generation.corpus_and_task(fit.prepared)
        sys.stdout.write(prompt)
        tokens = list(text_generation.generate(fit, prompt, count, seed))
        sys.stdout.write(text_generation.decode(corpus, tokens) + "\n")
    else:
        for row in text_generation.fill(fit, min(count, 20), 8, seed):
            say(f"{row.before!r} [{row.truth!r}] {row.after!r}: {' '.join(map(repr, row.draws))}")


def _write(drawn: Drawn, output: Path | None, as_json: bool) -> None:
    """Draws into a file, or their figures onto the screen."""
    import numpy as np

    from qvr_core.cli.output.drawn_terms import all_texts, commonest

    if as_json:
        write_out(json.dumps([*_numbers(drawn), *commonest(drawn)], ensure_ascii=False, indent=1) + "\n")
    if output is None:
        if not as_json:
            _table(drawn)
        return
    match output.suffix:
        case ".csv":
            with open(output, "w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, ["name", *FIGURES, *(TERMS if drawn.terms else ())])
                writer.writeheader()
                writer.writerows(_numbers(drawn))
                writer.writerows(commonest(drawn))
        case ".npz":
            numbers = {n: v.cpu().numpy() for n, v in drawn.values.items()}
            np.savez(output, allow_pickle=False, **{**numbers, **all_texts(drawn)})
        case ".nc":
            from qvr_core.inference.dataset import dataset
            from qvr_core.runs.record.netcdf import write_netcdf

            numbers = {name: value for name, value in drawn.values.items() if name not in drawn.terms}
            if len(numbers) < len(drawn.values):
                say(f"{', '.join(f'`{name}`' for name in drawn.terms)}: terms are written to .csv and .npz", err=True)
            values = {name: value.detach().cpu().unsqueeze(0) for name, value in numbers.items()}
            write_netcdf(output, dataset(values, drawn.axes))
        case _:
            stop(f"{output} is neither .csv, .npz nor .nc")
    say(f"wrote {output}", err=as_json)


def _numbers(drawn: Drawn, most: int | None = None) -> Iterator[dict[str, Any]]:
    """The figures of each number, by its label; of sites of at most so many numbers."""
    import numpy as np

    from qvr_core.runs.evaluation.posterior_table import labels

    for name, value in drawn.values.items():
        if name in drawn.terms:
            continue
        draws = value.detach().cpu().double().numpy()
        shape = draws.shape[1:]
        if most is not None and int(np.prod(shape)) > most:
            continue
        called = labels(name, shape, [axis.labels for axis in drawn.axes.get(name, ())])
        flat = draws.reshape(len(draws), -1)
        quantiles = np.quantile(flat, (0.05, 0.5, 0.95), axis=0)
        for at, one in enumerate(called):
            if np.isnan(flat[:, at]).all():
                continue  # an element that does not exist
            figures = (flat[:, at].mean(), flat[:, at].std(), *quantiles[:, at])
            yield {"name": one, **dict(zip(FIGURES, map(float, figures), strict=True))}


def _table(drawn: Drawn) -> None:
    import numpy as np
    from rich.table import Column, Table
    from rich.text import Text

    from qvr_core.cli.output.run_display import console
    from qvr_core.syntax.printable import printable

    table = Table(Column("name", no_wrap=True), "mean", "sd", "5 %", "median", "95 %")
    for row in _numbers(drawn, LISTED):
        table.add_row(Text(printable(row["name"])), *(f"{row[figure]:.4g}" for figure in FIGURES))
    numbers = {name: value for name, value in drawn.values.items() if name not in drawn.terms}
    large = {name: value for name, value in numbers.items() if value[0].numel() > LISTED}
    for name, value in large.items():
        columns = value.detach().cpu().double().numpy().reshape(len(value), -1)
        flat = columns[:, ~np.isnan(columns).all(0)].reshape(-1)
        figures = (flat.mean(), flat.std(), *np.quantile(flat, (0.05, 0.5, 0.95)))
        shown = f"{name} {tuple(value.shape[1:])}, all together"
        table.add_row(Text(printable(shown)), *(f"{figure:.4g}" for figure in figures))
    if numbers:
        console().print(table)
    many = _terms(drawn)
    if not numbers and not drawn.terms:
        say("nothing to show: the program draws nothing, and keeps no `let`", err=True)
    if large or many:
        say(f"-o FILE.csv writes every {'number' if large else 'row'}")


def _terms(drawn: Drawn) -> bool:
    """The commonest terms of the first rows; whether there are more."""
    from rich.table import Table
    from rich.text import Text

    from qvr_core.cli.output.drawn_terms import commonest
    from qvr_core.cli.output.run_display import console
    from qvr_core.syntax.printable import printable

    table, found = Table("name", "commonest term", "share"), commonest(drawn)
    for row in islice(found, LISTED):
        table.add_row(Text(printable(row["name"])), Text(printable(row["term"])), f"{row['share']:.3g}")
    if table.row_count:
        console().print(table)
    return next(found, None) is not None
