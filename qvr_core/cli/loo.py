"""`qvr loo RUN`: leave-one-out cross-validation of a run, with refits where importance sampling cannot be trusted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from qvr_core.cli.files import CLUSTER, known_cluster, write_out

if TYPE_CHECKING:
    from qvr_core.runs.evaluation.loo import Loo
    from qvr_core.runs.evaluation.refitted import Refits
    from qvr_core.runs.record.store import RunDirectory
    from qvr_core.runs.worker.refits import Watch

app = typer.Typer(add_completion=False)


@app.command()
def loo(
    run_id: str = typer.Argument("last", help="An id, its beginning, a program (the newest with draws), or `last`."),
    exact: bool = typer.Option(False, "--exact", help="Refit without each observation whose Pareto k is too high."),
    again: bool = typer.Option(False, "--again", help="Refit although the run has these figures already."),
    cluster: str | None = typer.Option(None, "--cluster", metavar="ADDRESS", help=CLUSTER, callback=known_cluster),
    as_json: bool = typer.Option(False, "--json", help="As JSON, with the figure of each observation."),
) -> None:
    """Leave each observation out of a run: expected log predictive density by PSIS-LOO, exact where it is refitted."""
    from qvr_core.cli.output.refitting import refitted

    def estimate(run: RunDirectory, watch: Watch) -> tuple[Loo, Refits | None]:
        from qvr_core.runs.evaluation.refitted import asked_by, with_refits
        from qvr_core.runs.worker.refits import exact_loo, loo_of_run

        if exact:
            return exact_loo(run, again=again, watch=watch, cluster=cluster)
        return with_refits(loo_of_run(run), run, asked_by(run)), None

    run, (found, refits) = refitted(run_id, estimate)
    if as_json:
        write_out(json.dumps(_content(run.run_id, found), ensure_ascii=False, indent=1) + "\n")
    else:
        _show(run.run_id, found, refits)


def _content(run_id: str, found: Loo) -> dict[str, Any]:
    from qvr_core.cli.output.refitting import number

    rows = [
        {"name": name, "elpd": number(elpd), "pareto_k": number(k), "exact": name in found.exact}
        for name, elpd, k in zip(found.names, found.elpd.tolist(), found.k.tolist(), strict=True)
    ]
    return {
        "run_id": run_id, "elpd": number(found.total), "se": number(found.se),
        "p": number(float(found.parameters.sum())), "refitted": len(found.exact), "bad": len(found.bad),
        "good_k": found.good, "observations": rows,
    }  # fmt: skip


def _show(run_id: str, found: Loo, refits: Refits | None) -> None:
    from rich.text import Text

    from qvr_core.cli.output.refitting import trouble
    from qvr_core.cli.output.run_display import console
    from qvr_core.syntax.printable import printable

    out = console()
    how = f"{len(found.exact)} refitted, the others by PSIS" if found.exact else "by PSIS"
    if refits is not None and not found.exact:
        how = f"by PSIS: no Pareto k is above {found.good:.2f}, so there was nothing to refit"
    out.print(
        f"{run_id}, LOO: elpd {found.total:.1f}, SE {found.se:.1f}, p {found.parameters.sum():.1f}, of "
        f"{len(found.names):,} observations ({how})",
        soft_wrap=True,
    )
    if len(found.bad):
        shown = ", ".join(f"{found.names[at]} ({found.k[at]:.2f})" for at in found.bad[:3].tolist())
        more = ", …" if len(found.bad) > 3 else ""
        told = (
            f"Pareto k of {len(found.bad):,} is above {found.good:.2f}: {shown}{more}; --exact fits again without each"
        )
        out.print(Text(printable(told), "yellow"), soft_wrap=True)
    for line in trouble(refits) if refits is not None else ():
        out.print(Text(printable(line), "yellow"), soft_wrap=True)
