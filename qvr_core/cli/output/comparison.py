"""`qvr runs compare`: predictive accuracy, what differs, results and posteriors of runs, side by side."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from qvr_core.cli.console import PlainConsole
from qvr_core.cli.files import stop, write_out
from qvr_core.runs.record.atomic_files import DamagedFile
from qvr_core.runs.record.data_files import noted
from qvr_core.runs.record.protocol import Accuracies, Cancelled, Finished, HeldOut, Job, Started
from qvr_core.runs.record.store import RunDirectory
from qvr_core.syntax.printable import printable

if TYPE_CHECKING:
    from qvr_core.runs.evaluation.ranking import Ranking

COMPARED = 24
"""Scalars of the posteriors that are shown."""


def compared(runs: Sequence[RunDirectory], *, as_json: bool) -> None:
    """Write the comparison of runs."""
    from qvr_core.runs.evaluation.ranking import cross_validated, ranking

    if len(runs) < 2:
        stop(f"name two runs or more: qvr runs compare {runs[0].run_id} ANOTHER")
    names = [run.run_id for run in runs]
    try:
        jobs = [run.job() for run in runs]
        results = [_results(run) for run in runs]
        read = [" ".join(file.sha256 for file in noted(run.path)) for run in runs]
        ranked, refitted = ranking(runs), cross_validated(runs)
        posteriors = [_posterior(run) for run in runs]
    except (DamagedFile, OSError) as problem:
        stop(str(problem), 1)
    if as_json:
        content = {
            "runs": names,
            "elpd": [asdict(one) for one in ranked.rows],
            "note": ranked.note,
            "cross_validation": [asdict(one) for one in refitted],
            "settings": _differing(jobs),
            "programs": _numbers([job.text for job in jobs]),
            "data_files": _numbers(read),
            "results": results,
            "posteriors": [_figures(run) for run in runs],
        }
        write_out(json.dumps(content, ensure_ascii=False, indent=1) + "\n")
        return
    _show(names, jobs, results, read, [ranked, *refitted], posteriors)


def _show(
    names: list[str],
    jobs: list[Job],
    results: list[dict[str, str]],
    read: list[str],
    rankings: Sequence[Ranking],
    posteriors: list[dict[str, str]],
) -> None:
    from qvr_core.cli.output.run_display import console

    out = console()
    for ranked in rankings:
        if ranked.rows:
            out.print(_accuracy(ranked))
        if ranked.note is not None:
            out.print(Text(printable(ranked.note), "yellow"), soft_wrap=True)
    table = Table("", *names)
    for key, values in _differing(jobs).items():
        table.add_row(key, *(json.dumps(value, ensure_ascii=False) for value in values))
    _versions(table, "program", [job.text for job in jobs])
    _versions(table, "data files", read)
    table.add_section()
    for key in dict.fromkeys(key for result in results for key in result):
        table.add_row(key, *(result.get(key, "") for result in results))
    out.print(table)
    if any(posteriors):
        out.print(_side_by_side(names, posteriors))
    for name, job in zip(names[1:], jobs[1:], strict=True):
        _difference(out, names[0], name, jobs[0].text, job.text)


def _accuracy(ranked: Ranking) -> Table:
    """The runs by their expected log predictive density, the best first."""
    loo = ("p", "difference", "SE of it", "Pareto k") if ranked.estimate == "LOO" else ("difference", "SE of it")
    table = Table("run", f"elpd ({ranked.estimate})", "SE", *loo, title="predictive accuracy, best first")
    for one in ranked.rows:
        difference = ("", "") if one.difference == 0 and one is ranked.rows[0] else (
            f"{one.difference:.1f}", f"{one.difference_se:.1f}"
        )  # fmt: skip
        figures = (one.run, f"{one.elpd:.1f}", f"{one.se:.1f}")
        if one.parameters is None or one.good is None:
            table.add_row(*figures, *difference)
            continue
        bad = f"{one.bad} of {one.observations} above {one.good:.2f}" if one.bad else f"all {one.observations} good"
        bad += f", {one.exact} refitted" if one.exact else ""
        table.add_row(*figures, f"{one.parameters:.1f}", *difference, bad)
    return table


def _difference(out: PlainConsole, first: str, second: str, one: str, other: str) -> None:
    """The lines in which two programs differ."""
    lines = difflib.unified_diff(one.splitlines(), other.splitlines(), first, second, lineterm="", n=1)
    for line in lines:
        style = {"+": "green", "-": "red"}.get(line[:1], "dim")
        out.print(Text(printable(line), style), soft_wrap=True)


def _differing(jobs: Sequence[Job]) -> dict[str, list[Any]]:
    """The settings in which runs differ, a value of each."""
    settings = [job.config.model_dump(mode="json") for job in jobs]
    columns = {key: [setting[key] for setting in settings] for key in settings[0]}
    return {key: values for key, values in columns.items() if len({json.dumps(value) for value in values}) > 1}


def _numbers(contents: Sequence[str]) -> list[int]:
    """The different contents that runs had, numbered from 1."""
    distinct = list(dict.fromkeys(contents))
    return [distinct.index(content) + 1 for content in contents]


def _versions(table: Table, what: str, contents: Sequence[str]) -> None:
    """A row that numbers the different contents that runs had; none where all had the same."""
    if len(set(contents)) > 1:
        table.add_row(what, *(f"version {number}" for number in _numbers(contents)))


def _results(run: RunDirectory) -> dict[str, str]:
    """What came out of a run, in words."""
    results = {"status": run.status()}
    for event in run.events():
        match event:
            case Started(parameters=parameters):
                if parameters:  # weights of a network
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


def _figures(run: RunDirectory) -> dict[str, Any]:
    """The rows of a posterior by name."""
    ending = run.ending()
    if not isinstance(ending, Finished | Cancelled):
        return {}
    return {row.name: row.model_dump(exclude={"name"}, exclude_none=True) for row in ending.posterior}


def _side_by_side(names: list[str], posteriors: list[dict[str, str]]) -> Table:
    """The posteriors of runs, a column each; of many scalars the first ones."""
    scalars = list(dict.fromkeys(name for posterior in posteriors for name in posterior))
    more = len(scalars) - COMPARED
    left = f"{more} more: `qvr runs show` has all of a run" if more > 0 else None
    table = Table("posterior, mean ± sd", *names, caption=left, caption_justify="left")
    for name in scalars[:COMPARED]:
        table.add_row(Text(printable(name)), *(posterior.get(name, "") for posterior in posteriors))
    return table
