"""`qvr sample RUN`: draws from a fitted program."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from qvr_core.cli.console import say
from qvr_core.cli.files import stop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qvr_core.runs.fit.svi import SviFit

app = typer.Typer()


@app.command()
def sample(
    run_id: str = typer.Argument(help="An id, its beginning, or `last`."),
    prompt: str = typer.Option("", "--prompt", help="Text to go on from, where the program predicts the next token."),
    count: int = typer.Option(200, "-n", min=1, help="Tokens to write, windows to fill in, or draws."),
    seed: int = typer.Option(0, "--seed", help="Seed of the draws."),
    output: Path | None = typer.Option(None, "--output", "-o", help="Write posterior predictive draws to this .npz."),
) -> None:
    """Draw from a fitted program: text for a language model, else the posterior predictive."""
    from qvr_core.cli.runs import opened
    from qvr_core.data.problems import DataProblem
    from qvr_core.runs.prepare.failures import Refused
    from qvr_core.runs.record.files import DamagedFile
    from qvr_core.runs.worker import sampling
    from qvr_core.runtime.values.errors import RuntimeProblem

    try:
        fit = sampling.restored(opened(run_id))
        writes = fit.prepared.text and sampling.corpus_and_task(fit.prepared)[1].task == "next"
        if prompt and not writes:
            stop("--prompt is for programs that predict the next token of a text: this one does not write on")
        if fit.prepared.job.config.source == "pairs" and output is None:
            for pair in sampling.fill_pairs(fit, min(count, 20), seed):
                guesses = ", ".join(f"{truth!r}: {guess!r}" for truth, guess in pair.tokens)
                verdict = "" if pair.label is None else f"  [{pair.label[0]}: {pair.label[1]}]"
                say(f"{pair.shown}\n    {guesses}{verdict}")
        elif not fit.prepared.text:
            _predictive(fit, count, seed, output)
        elif writes:
            corpus, _ = sampling.corpus_and_task(fit.prepared)
            sys.stdout.write(prompt)
            tokens = list(sampling.generate(fit, prompt, count, seed))
            sys.stdout.write(sampling.decode(corpus, tokens) + "\n")
        else:
            for row in sampling.fill(fit, min(count, 20), 8, seed):
                say(f"{row.before!r} [{row.truth!r}] {row.after!r}: {' '.join(map(repr, row.draws))}")
    except (Refused, DataProblem, DamagedFile, RuntimeProblem) as problem:
        stop(str(problem), 1)


def _predictive(fit: object, count: int, seed: int, output: Path | None) -> None:
    """Mean and sd of every site, or all draws into an npz."""
    import numpy as np
    from rich.markup import escape
    from rich.table import Table

    from qvr_core.cli.display import console
    from qvr_core.runs.fit.svi import SviFit
    from qvr_core.runs.worker import sampling

    assert isinstance(fit, SviFit)
    draws = {name: value.cpu().numpy() for name, value in sampling.predictive(fit, count, seed).items()}
    if output is not None:
        np.savez(output, allow_pickle=False, **draws)
        say(f"wrote {output}")
        return
    table = Table("site", "shape", "mean", "sd", "5 %", "95 %")
    for name, shape, value in _rows(fit, draws):
        low, high = np.quantile(value, [0.05, 0.95])
        table.add_row(escape(name), shape, f"{value.mean():.4g}", f"{value.std():.4g}", f"{low:.4g}", f"{high:.4g}")
    console().print(table)


def _rows(fit: SviFit, draws: Mapping[str, NDArray[Any]]) -> Iterator[tuple[str, str, NDArray[Any]]]:
    """A row per site with its shape; of a small prediction one for each of its elements, by their labels."""
    from qvr_core.inference.axes import axes_of
    from qvr_core.runs.figures.posterior import TABLED, labels

    axes = axes_of(fit.model)
    for name, value in draws.items():
        shape = value.shape[1:]
        if name in fit.model.predicted and value[0].size <= TABLED:
            flat = value.reshape(len(value), -1)
            called = labels(name, shape, [axis.labels for axis in axes.get(name, ())])
            yield from ((one, "()", flat[:, at]) for at, one in enumerate(called))
        else:
            yield name, str(shape), value
