"""`qvr report RUN`: one page of HTML with all that a run says, which fetches nothing."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from qvr_core.cli.console import say
from qvr_core.cli.files import stop

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qvr_core.runs.record.protocol import Finished, Job, PosteriorRow
    from qvr_core.runs.record.store import RunDirectory
    from qvr_core.runs.record.summary import Summary

app = typer.Typer(add_completion=False)

STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --soft: #57606a; --line: #d0d7de; --page: #fff; --fill: #9cc3ee;
  --mark: #0a58b0; --bad: #b3261e; --good: #1a6e2e; --code: #f3f5f7 }
@media (prefers-color-scheme: dark) { :root { --text: #e6e9ed; --soft: #a8b1bb; --line: #3c444d; --page: #16191d;
  --fill: #2f5f96; --mark: #8cc2ff; --bad: #ff9a90; --good: #7ddb93; --code: #20252b } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); max-width: 66rem;
  margin: 0 auto; padding: 1.5rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2.2rem; border-bottom: 1px solid var(--line) }
h3 { font-size: 1rem; margin-bottom: 0 }
.soft, figcaption { color: var(--soft) } .bad { color: var(--bad) } .good { color: var(--good) }
pre { background: var(--code); padding: .8rem; white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85rem }
.wide { overflow-x: auto } table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid var(--line) }
th:first-child, td:first-child { text-align: left }
td:first-child, code { font-family: ui-monospace, monospace } code { font-size: .9em }
figure { margin: 1rem 0 } figure svg { max-width: 100%; height: auto } svg text { fill: var(--soft); font-size: 12px }
.density, .data { fill: var(--fill) } .prior { fill: none; stroke: var(--soft); stroke-dasharray: 3 2 }
.interval, .band { stroke: var(--mark); stroke-width: 2 } .mean { fill: var(--mark) }
.chain { fill: none; stroke-width: .8; opacity: .8 } .c0 { stroke: #4c8bd6 } .c1 { stroke: #d9822b }
.c2 { stroke: #3f9e5f } .c3 { stroke: #b65fc2 } .c4 { stroke: #c4544d } .c5 { stroke: #7d8590 }
@media (max-width: 800px) { body { padding: .8rem } th, td { padding: .1rem .28rem; font-size: .82rem }
  .posterior { width: 100% } th { white-space: nowrap } .posterior th:last-child { width: 99%; white-space: normal }
  td svg { width: 100%; min-width: 84px; max-width: 180px } pre { font-size: .76rem } }
.diverged { stroke: var(--bad); stroke-width: 1.5 }
"""
MOST_ROWS = 200
DATA = ("observed_data", "constant_data")
"""The groups of a stored posterior that hold what the program read."""


@app.command()
def report(
    run_id: str = typer.Argument("last", help="An id, its beginning, a program (the newest with draws), or `last`."),
    output: Path | None = typer.Option(None, "--output", "-o", help="Where to write it; RUN.html by default."),
    names: str | None = typer.Option(
        None, "--vars", metavar="NAMES", help="Names or patterns between commas, as `b_*,sigma`; else all that vary."
    ),
) -> None:
    """Write one HTML page of a run: program, diagram, data, prior, checks, posterior, predictions against the data,
    LOO, traces, command, versions.  It opens from the disk and fetches nothing."""
    from qvr_core.cli.runs import drawn_from
    from qvr_core.cli.summary import rows_of
    from qvr_core.runs.record.atomic_files import DamagedFile
    from qvr_core.runs.record.protocol import Finished
    from qvr_core.runs.record.summary import read_summary

    rows, _ = rows_of(run_id, names)
    run = drawn_from(run_id)
    ending = run.ending()
    if not isinstance(ending, Finished):
        stop(f"run {run.run_id} is {run.status()}: a report is of a run that has finished", 1)
    try:
        page = "".join(_page(run, run.job(), ending, rows, read_summary(run)))
    except (DamagedFile, OSError) as problem:
        stop(str(problem), 1)
    target = output or Path(f"{run.run_id}.html")
    target.write_text(page, encoding="utf-8")
    say(f"wrote {target}")


def _page(
    run: RunDirectory, job: Job, ending: Finished, rows: list[PosteriorRow], summary: Summary | None
) -> Iterator[str]:
    from qvr_core.diagrams.page_svg import STYLE as DIAGRAM

    name = escape(f"{job.program or Path(job.path).stem} · {job.config.algorithm.upper()}")
    yield f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>{STYLE}{DIAGRAM}</style></head><body><main>\n<h1>{name}</h1>\n"
    kind = "bad" if any(one.grave for one in ending.checks) else "good"
    yield f'<p class="{kind}">{escape(ending.verdict())}</p>\n<p class="soft">{escape(run.run_id)}</p>\n'
    yield f"<h2>Program</h2>\n<pre>{escape(job.text)}</pre>\n"
    yield from _diagram(job)
    yield from _data(run, job)
    yield from _predictions(summary, prior=True)
    yield from _checks(job, ending)
    yield from _posterior(rows, summary)
    yield from _predictions(summary, prior=False)
    yield from _loo(run)
    yield from _traces(rows, summary)
    yield from _command(job)
    yield "</main></body></html>\n"


def _checks(job: Job, ending: Finished) -> Iterator[str]:
    yield "<h2>Checks</h2>\n<ul>\n"
    for one in ending.checks:
        kind, word = ("good", "passed") if one.passed else ("soft", "note") if one.note else ("bad", "look here")
        mark = f'<span class="{kind}">{word}</span>'
        advice = f"<br>{_marked(one.advice)}" if one.advice else ""
        yield f"<li>{mark} <strong>{escape(one.name)}</strong>: {_marked(one.text)}{advice}</li>\n"
    # what the sampler warns of is in its checks
    for warning in () if job.config.algorithm == "nuts" and ending.checks else ending.warnings:
        yield f'<li class="bad">{_marked(warning)}</li>\n'
    yield "</ul>\n"


def _marked(text: str) -> str:
    """A sentence, what stands in backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _posterior(rows: list[PosteriorRow], summary: Summary | None) -> Iterator[str]:
    from qvr_core.cli.output.drawings import density, minus
    from qvr_core.cli.summary import HEADS, cells

    drawn = {one.name: one.density for site in (summary.sites if summary else ()) for one in site.elements}
    yield "<h2>Posterior</h2>\n"
    if len(rows) > MOST_ROWS:
        yield f'<p class="soft">The first {MOST_ROWS} of {len(rows):,} numbers; --vars chooses others.</p>\n'
    unbroken = (head.replace("-", "\N{NON-BREAKING HYPHEN}") for head in HEADS)
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in (*unbroken, "density, 90 % interval"))
    yield f'<div class="wide" tabindex="0"><table class="posterior"><thead><tr>{heads}</tr></thead><tbody>\n'
    for row in rows[:MOST_ROWS]:
        of = drawn.get(row.name)
        picture = density(of, row.q05, row.q95, row.name) if of is not None else ""
        numbers = "".join(f"<td>{escape(minus(cell))}</td>" for cell in cells(row))
        yield f"<tr><td>{escape(row.name)}</td>{numbers}<td>{picture}</td></tr>\n"
    yield "</tbody></table></div>\n"


def _predictions(summary: Summary | None, *, prior: bool) -> Iterator[str]:
    """The data beside what the prior, or the posterior, draws of them."""
    from qvr_core.cli.output.drawings import against_data

    source = "prior" if prior else "posterior"
    drawn = [(one, one.prior if prior else one.posterior) for one in (summary.predictive if summary else ())]
    drawn = [(one, band) for one, band in drawn if band is not None]
    if not drawn:
        return
    yield f"<h2>Data and what the {source} draws</h2>\n"
    for one, band in drawn:
        yield f"<figure>{against_data(one, band, source)}<figcaption>{escape(one.name)}: bars are shares of the data, "
        yield "points the mean over draws, lines from 5 to 95 %; "
        yield f"{band.outside:.1%} of the drawn values lie outside</figcaption></figure>\n"


def _loo(run: RunDirectory) -> Iterator[str]:
    """Predictive accuracy, where the run kept a log likelihood and numpy is there to weigh it."""
    from qvr_core.cli.output.drawings import minus

    try:
        from qvr_core.runs.evaluation.ranking import ranking
    except ModuleNotFoundError:
        return
    found = ranking([run])
    yield "<h2>Predictive accuracy (PSIS-LOO)</h2>\n"
    for one in found.rows:
        bad = f"; Pareto k above {one.good:.2f} at {one.bad} of them" if one.bad else ""
        yield f"<p>elpd {minus(f'{one.elpd:.1f}')} ± {one.se:.1f}, effective parameters {one.parameters:.1f}, "
        yield f"{one.observations:,} observations{bad}</p>\n"
    if found.note and not found.rows:
        yield f'<p class="soft">{escape(found.note)}</p>\n'


def _traces(rows: list[PosteriorRow], summary: Summary | None) -> Iterator[str]:
    from qvr_core.cli.output.drawings import trace

    if summary is None or not summary.traces:
        return
    wanted = {row.name for row in rows}
    yield '<h2>Chains</h2>\n<p class="soft">A colour each; a mark at the foot is a divergence.</p>\n'
    for at, name in enumerate(summary.drawn):
        if name in wanted:
            picture = trace(summary.traces, at, name)
            yield f"<figure><figcaption>{escape(name)}</figcaption>{picture}</figure>\n"


def _diagram(job: Job) -> Iterator[str]:
    """The program's graph, laid out here; a network's is too large for a page."""
    from qvr_core import diagrams
    from qvr_core.diagrams.page_svg import LEGEND, to_page_svg
    from qvr_core.runs.record.program import analysed

    try:
        graph = diagrams.build(analysed(job), job.program)
    except diagrams.NoDiagram:
        return
    picture = to_page_svg(graph, f"what depends on what in {job.program}")
    yield f'<figure class="wide" tabindex="0">{picture}<figcaption>{LEGEND}</figcaption></figure>\n'


def _command(job: Job) -> Iterator[str]:
    from qvr_core import __version__

    given = job.config.model_dump(mode="json", exclude_defaults=True, exclude={"algorithm"})
    settings = "".join(f"\n{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in given.items())
    settings = settings.replace(f":{Path.cwd()}{os.sep}", ":")  # as one writes it here, like the program's path
    command = f"qvr run {job.config.algorithm} {os.path.relpath(job.path)}"
    yield f"<h2>Command and settings</h2>\n<pre>{escape(command + settings)}</pre>\n"
    yield f'<p class="soft">qvr-lsp {escape(__version__)}, {escape(_versions())}</p>\n'


def _data(run: RunDirectory, job: Job) -> Iterator[str]:
    """Where data are from; of each thing that the program read, how many numbers there are, and where they lie, or
    which label is the commonest."""
    from qvr_core.cli.output.drawings import minus
    from qvr_core.runs.record.protocol import Started

    said = next((event.data for event in run.events() if isinstance(event, Started)), "")
    yield f"<h2>Data</h2>\n<p>{escape(said)}</p>\n"
    try:
        import numpy as np

        from qvr_core.runs.record.name_roles import enumerated, labels_of
        from qvr_core.runs.record.netcdf import labels_along, read_netcdf

        sets, known = labels_of(job), enumerated(job)
        # names of a set's elements stand with what is drawn for each, where no data are
        tree = read_netcdf(run.posterior, (*DATA, "posterior") if sets else DATA)
    except (ModuleNotFoundError, FileNotFoundError):
        return
    columns = ("name", "numbers", "missing", "least", "mean", "largest")
    heads = "".join(f'<th scope="col">{head}</th>' for head in columns)
    yield f'<div class="wide" tabindex="0"><table><thead><tr>{heads}</tr></thead><tbody>\n'
    for group in (tree.children[each] for each in DATA if each in tree.children):
        for name, values in group.data_vars.items():
            numbers = np.asarray(values.values, np.float64).ravel()
            there = numbers[np.isfinite(numbers)]
            if name in sets and there.size:
                labels = labels_along(tree, sets[name]) or known.get(sets[name])
                shown = f'<td colspan="3">{escape(_commonest(there, labels))}</td>'
            else:
                figures = (there.min(), there.mean(), there.max()) if there.size else ()
                shown = "".join(f"<td>{minus(f'{one:.4g}')}</td>" for one in figures) or "<td></td>" * 3
            over = f" over {escape(' · '.join(values.dims))}" if values.dims else ""
            missing = numbers.size - there.size
            yield f"<tr><td>{escape(name)}</td><td>{numbers.size:,}{over}</td><td>{missing:,}</td>{shown}</tr>\n"
    yield "</tbody></table></div>\n"


def _commonest(codes: NDArray[np.float64], labels: tuple[str, ...] | None) -> str:
    """`9 labels, most often Anoka (12)`, of elements of a set, which have numbers where they have no names."""
    import numpy as np

    found, counts = np.unique(codes.astype(np.int64), return_counts=True)
    most = int(counts.argmax())
    name = labels[int(found[most])] if labels is not None else f"{int(found[most])}"
    other = len(labels) if labels is not None else len(found)
    number = f"{len(found):,}" if len(found) == other else f"{len(found):,} of {other:,}"
    return f"{number} {'label' if number == '1' else 'labels'}, most often {name} ({counts[most]:,})"


def _versions() -> str:
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = [f"Python {platform.python_version()}"]
    for package in ("numpy", "llvmlite", "polars"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)
