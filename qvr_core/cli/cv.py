"""`qvr cv RUN`: how well a program predicts observations that it has not seen, by refits without them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from qvr_core.cli.files import CLUSTER, known_cluster, write_out

if TYPE_CHECKING:
    from qvr_core.runs.evaluation.refitted import Refits
    from qvr_core.runs.record.store import RunDirectory
    from qvr_core.runs.worker.refits import Watch

app = typer.Typer(add_completion=False)
WORST = 5
"""Folds that are shown by name."""


@app.command()
def cv(
    run_id: str = typer.Argument("last", help="An id, its beginning, a program (the newest with draws), or `last`."),
    folds: int | None = typer.Option(
        None, "--folds", min=2, help="How many folds; 10 by default, and with --by one for each group."
    ),
    by: str | None = typer.Option(
        None, "--by", metavar="NAME", help="Leave whole groups out: a data name, or a set, that says which."
    ),
    again: bool = typer.Option(False, "--again", help="Refit although the run has these figures already."),
    cluster: str | None = typer.Option(None, "--cluster", metavar="ADDRESS", help=CLUSTER, callback=known_cluster),
    as_json: bool = typer.Option(False, "--json", help="As JSON, with the figure of each observation."),
) -> None:
    """Cross-validate a run of NUTS: fit its program again without a fold of the observations, and score these.

    A group that is left out has no data: its effect is drawn from its population, which the score integrates over.
    """
    from qvr_core.cli.output.refitting import refitted
    from qvr_core.runs.evaluation.refitted import Plan

    plan = Plan(10 if folds is None and by is None else folds, by)

    def refits_of(run: RunDirectory, watch: Watch) -> Refits:
        from qvr_core.runs.worker.refits import cross_validate

        return cross_validate(run, plan, again=again, watch=watch, cluster=cluster)

    run, refits = refitted(run_id, refits_of)
    if as_json:
        write_out(json.dumps(_content(run.run_id, refits), ensure_ascii=False, indent=1) + "\n")
    else:
        _show(run.run_id, refits)


def _content(run_id: str, refits: Refits) -> dict[str, Any]:
    from qvr_core.cli.output.refitting import number

    found = refits.pointwise()
    rows = [
        {"name": name, "fold": fold, "elpd": number(value)}
        | ({} if refits.labels is None else {"group": refits.labels[at]})
        for at, (name, fold, value) in enumerate(zip(refits.names, refits.fold, found.elpd.tolist(), strict=True))
    ]
    return {
        "run_id": run_id, "estimate": refits.plan.words, "folds": refits.count, "elpd": number(found.total),
        "se": number(found.se), "mcse": number(refits.mcse()), "observations": rows,
        "refits": [{"fold": at, **one.stored()} for at, one in sorted(refits.done.items())],
    }  # fmt: skip


def _show(run_id: str, refits: Refits) -> None:
    import numpy as np
    from rich.table import Column, Table
    from rich.text import Text

    from qvr_core.cli.output.refitting import trouble
    from qvr_core.cli.output.run_display import console
    from qvr_core.syntax.printable import printable

    found, out = refits.pointwise(), console()
    out.print(
        f"{run_id}, {refits.plan.words}: elpd {found.total:.1f}, SE {found.se:.1f}, of {len(found.names):,} "
        f"observations in {refits.count} refits (Monte Carlo error {refits.mcse():.2g})",
        soft_wrap=True,
    )
    if refits.labels is not None:
        table = Table(
            Column(refits.plan.by or "", no_wrap=True), "observations", "elpd", "elpd each", title="the worst predicted"
        )
        fold = np.asarray(refits.fold)
        sums = [found.elpd[fold == at] for at in range(refits.count)]
        for at in sorted(range(refits.count), key=lambda one: sums[one].mean())[:WORST]:
            table.add_row(
                Text(printable(refits.label(at))),
                f"{len(sums[at]):,}",
                f"{sums[at].sum():.1f}",
                f"{sums[at].mean():.2f}",
            )
        out.print(table)
    for line in trouble(refits):
        out.print(Text(printable(line), "yellow"), soft_wrap=True)
