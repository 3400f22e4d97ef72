"""The last fit of a program as its text shows it: figures beside the steps, what is bad at the step to blame."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from qvr_core.analysis import LocatedDiagnostic, LocatedFix, Snapshot, TextEdit
from qvr_core.runs.record.atomic_files import DamagedFile
from qvr_core.runs.record.program import analysed, imports_of
from qvr_core.runs.record.protocol import Cancelled, Check, Finished
from qvr_core.runs.record.store import RunDirectory, RunStore
from qvr_core.runs.record.summary import SiteSummary, read_summary
from qvr_core.semantics.file.references import unit_references
from qvr_core.semantics.file.site_origins import site_origins
from qvr_core.semantics.types.diagnostics import Code, Origin, Severity
from qvr_core.semantics.types.model.programs import Program
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.source import Cursor, Range
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.steps import SampleStep
from qvr_core.syntax.tree.units import Placed

UNRELIABLE = Code("unreliable-fit", Severity.WARNING, "The last run of a program is not to be trusted.")
ROUGH = Code("unreliable-fit", Severity.INFORMATION, UNRELIABLE.summary)

MOST_RUNS = 200
"""The newest runs of a folder, among which one of the program is looked for."""
MOST_TEXT = 1_000_000
"""Characters of a program whose fit is shown."""
MOST_LINES = 3_000
"""Those that a program may rest on; of more no change is seen."""


@dataclass(frozen=True)
class Fitted:
    """A run that is over.  `steps` holds the text of each step by the name that it binds, `""` that of the header;
    `rests_on` all statements of the program and of what it uses."""

    run_id: str
    program: str
    algorithm: str
    settings: Mapping[str, Any]
    sites: Mapping[str, SiteSummary]
    checks: tuple[Check, ...]
    steps: Mapping[str, str]
    rests_on: frozenset[str]


def last_fit(store: RunStore, file: Path, program: str, held: Fitted | None, now: Snapshot) -> Fitted | None:
    """The last fit of a program of a file; `held`, where it is that.  Its checks are gone where a newer run has
    begun.  What is damaged is passed over."""
    newest = True
    for name in reversed(store.names()[-MOST_RUNS:]):
        run = RunDirectory(store.folder / name)
        with contextlib.suppress(DamagedFile, OSError, ValueError, KeyError):
            if run.subject() != (file, program) or run.refused():
                continue
            ending = run.ending()
            if isinstance(ending, Finished | Cancelled):
                found = held if held is not None and held.run_id == name else fitted(run, program, ending, now)
                if found is not None and not newest:
                    found = replace(found, checks=())
                return found
            newest = False
    return None


def fitted(run: RunDirectory, program: str, ending: Finished | Cancelled, now: Snapshot) -> Fitted | None:
    """Read a run that is over; None where its text is too long.  Raises `DamagedFile`, OSError, ValueError."""
    job = run.job()
    if len(job.text) > MOST_TEXT:
        return None
    unchanged = "\n".join(now.lines) == "\n".join(job.text.splitlines()) and imports_of(now) == job.imports
    snapshot = now if unchanged else analysed(job)
    summary = read_summary(run)
    checks = ending.checks if isinstance(ending, Finished) else ()
    return Fitted(
        run.run_id,
        program,
        job.config.algorithm,
        job.config.model_dump(mode="json", exclude_none=True),
        {} if summary is None else {site.name: site for site in summary.sites},
        tuple(one for one in checks if not one.passed),
        dict(_step_texts(snapshot, program)),
        rests_on(snapshot, program),
    )


# ---------------------------------------------------------------- the text


def _program(snapshot: Snapshot, name: str) -> Program | None:
    found = snapshot.node(name)
    return found if isinstance(found, Program) else None


def _units(snapshot: Snapshot, program: str) -> dict[int, Placed[Any]]:
    statement = snapshot.statement_of(program)
    return {} if statement is None else {placed.uid: placed for placed in units_of(statement)}


def _step_texts(snapshot: Snapshot, program: str) -> Iterator[tuple[str, str]]:
    found, units = _program(snapshot, program), _units(snapshot, program)
    if found is None:
        return
    for name, origin in {"": found.origin, **site_origins(found)}.items():
        if origin.unit in units:
            yield name, units[origin.unit].unit.text


def rests_on(snapshot: Snapshot, program: str) -> frozenset[str]:
    """The texts of a program's statement and of all that it mentions, however indirectly; comments do not count."""
    todo, seen, found, lines = [program], {program}, set[str](), 0
    while todo and lines < MOST_LINES:
        statement = snapshot.statement_of(todo.pop())
        if statement is None:
            continue
        units = tuple(islice(units_of(statement), MOST_LINES))
        lines += len(units)
        found.add("\n".join(placed.unit.text for placed in units))
        for placed in units:
            new = {name for name, _ in unit_references(placed.unit).mentions if name in snapshot.owners} - seen
            seen |= new
            todo += sorted(new)
    return frozenset(found)


# ---------------------------------------------------------------- beside the steps


@dataclass(frozen=True)
class Beside:
    """What stands behind a step."""

    cursor: Cursor
    text: str
    tooltip: str
    older: bool = False
    """Whether the program has changed since."""
    drawn: Literal["run", "live", "prior"] = "run"
    """Where the figures are from."""


def beside(fit: Fitted, snapshot: Snapshot, told: Callable[[SiteSummary], str] | None = None) -> list[Beside]:
    """The figures of each site and kept let, behind the step that binds it: as `told`, which then says itself whether
    they are of an older text."""
    found, units = _program(snapshot, fit.program), _units(snapshot, fit.program)
    if found is None or not fit.sites:
        return []
    older = rests_on(snapshot, fit.program) != fit.rests_on
    said = told or figure
    note = f"Run {fit.run_id}." + (" The program has changed since." if older else "")
    behind: dict[int, list[str]] = {}
    for name, origin in site_origins(found).items():
        if name in fit.sites and origin.unit in units:
            behind.setdefault(origin.unit, []).append(name)
    shown: list[Beside] = []
    for unit, names in behind.items():
        end = len(units[unit].unit.text)
        figures = [said(fit.sites[name]) if len(names) == 1 else f"{name} {said(fit.sites[name])}" for name in names]
        text = ", ".join(figures) + (" · older text" if older and told is None else "")
        shown.append(Beside(snapshot.range(Origin(unit, Span(end, end))).start, text, note, older))
    return shown


def figure(site: SiteSummary) -> str:
    """`3.6 ± 2.9 · R̂ 1.00`, with the shape of its density where it is one number."""
    text, least = brief(site), "" if site.size == 1 else "≤ "
    return text if site.r_hat is None else f"{text} · R̂ {least}{site.r_hat:.2f}"


def brief(site: SiteSummary) -> str:
    """The same without R-hat."""
    if site.size == 1:
        element = site.elements[0]
        bars = "" if element.density is None else f"{blocks(coarse(element.density.posterior, 8))} "
        return f"{bars}{give_or_take(element.mean, element.sd)}"
    return f"{site.size:,} × {shown(site.low)} … {shown(site.high)}, sd ≤ {shown(site.sd)}"


def give_or_take(mean: float | None, sd: float | None) -> str:
    """`3.6 ± 2.9`: two digits of the standard deviation, and as many decimals of the mean."""
    if mean is None or sd is None or not 1e-5 < sd < 1e5:
        return f"{shown(mean)} ± {shown(sd)}"
    decimals = max(0, 1 - math.floor(math.log10(sd)))
    return f"{mean:.{decimals}f} ± {sd:.{decimals}f}".replace("-", "−")


def shown(value: float | None) -> str:
    """Three digits."""
    return "–" if value is None else f"{value:.3g}".replace("-", "−")


BLOCKS = "▁▂▃▄▅▆▇█"


def blocks(counts: list[int]) -> str:
    """Counts as bars; what is not empty is never the lowest of many."""
    most = max(counts, default=0)
    return "".join(BLOCKS[round((len(BLOCKS) - 1) * count / most)] if most else BLOCKS[0] for count in counts)


def coarse(counts: tuple[int, ...], bins: int) -> list[int]:
    """The same in fewer bins, that many at most."""
    width = max(1, -(-len(counts) // bins))
    return [sum(counts[at : at + width]) for at in range(0, len(counts), width)]


# ---------------------------------------------------------------- what is bad


def problems(fit: Fitted, snapshot: Snapshot) -> list[tuple[Check, LocatedDiagnostic]]:
    """The checks that failed, each at the step to blame, while that is as it was run; those of the whole program at
    its name, while the program is."""
    found, units = _program(snapshot, fit.program), _units(snapshot, fit.program)
    if found is None or not fit.checks:
        return []
    origins, located = site_origins(found), list[tuple[Check, LocatedDiagnostic]]()
    same = rests_on(snapshot, fit.program) == fit.rests_on
    for check in fit.checks:
        at = check.site if check.site in origins else None
        origin = found.origin if at is None else origins[at]
        unit = units.get(origin.unit)
        unchanged = same if at is None else unit is not None and unit.unit.text == fit.steps.get(at)
        place = snapshot.find(origin)
        if unchanged and place is not None and unit is not None:
            code = UNRELIABLE if check.grave else ROUGH
            fixes = tuple(_fixes(check, snapshot, unit))
            located.append((check, LocatedDiagnostic(code, message(check), place, (), fixes)))
    return located


def message(check: Check) -> str:
    """`divergences: 37 of 4,000 transitions diverged.` and what to do."""
    advice = f"; {check.advice}" if check.advice else ""
    return f"{check.name}: {check.text}{advice}"


def _fixes(check: Check, snapshot: Snapshot, placed: Placed[Any]) -> Iterator[LocatedFix]:
    """`[noncentred]` where that is the advice."""
    step = placed.unit.node
    if not isinstance(step, SampleStep) or "`[noncentred]`" not in (check.advice or ""):
        return
    given = () if step.options is None else step.options.items
    end = given[-1].span.end if given else step.draw.span.end
    place = snapshot.range(Origin(placed.uid, Span(end, end)))
    edit = TextEdit(Range(place.end, place.end), ", noncentred" if given else " [noncentred]")
    name = step.pattern.names[0].text
    yield LocatedFix(f"Sample `{name}` non-centred", (edit,), False)


def reruns(fit: Fitted, check: Check) -> tuple[str, dict[str, Any]] | None:
    """The title and the request of a run that does what a check advises; None where settings cannot."""
    if not check.settings:
        return None
    words = ", ".join(f"{key} = {value}" for key, value in check.settings.items())
    request = {"program": fit.program, "algorithm": fit.algorithm, "options": {**fit.settings, **check.settings}}
    return f"Run {fit.algorithm.upper()} again with {words}", request
