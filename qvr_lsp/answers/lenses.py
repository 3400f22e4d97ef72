"""What stands over each exported program: run, diagram, parameters and the last result."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from qvr_core.semantics.programs.parameter_count import parameter_count
from qvr_core.semantics.types.diagnostics import DeclarationSite
from qvr_core.semantics.types.model.file import Model
from qvr_lsp.documents import Document
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from qvr_lsp.language_server import QvrLanguageServer
    from qvr_lsp.runs.processes import Run


def lenses_of(ls: QvrLanguageServer, document: Document) -> list[types.CodeLens]:
    model = document.snapshot.model
    lenses: list[types.CodeLens] = []
    for name in runnable_programs(model):
        found = document.snapshot.find(DeclarationSite(name))
        if found is None:
            continue
        place = document.range(found)
        target = {"uri": document.uri, "program": name}
        commands = [
            ("▶ SVI", "qvr.run", {**target, "algorithm": "svi"}),
            ("▶ NUTS", "qvr.run", {**target, "algorithm": "nuts"}),
            ("◫ Diagram", "qvr.diagram", {"uri": document.uri, "name": name}),
        ]
        running = ls.runs.running(document.uri, name)
        if running is not None:
            commands.append(("■ Cancel", "qvr.cancelRun", {"runId": running.job.run_id}))
        lenses += [
            types.CodeLens(place, types.Command(title, command, arguments=[argument]))
            for title, command, argument in commands
        ]
        text = status_text(ls, document, model, name, running)
        if text:
            command = types.Command(text, "qvr.runs", arguments=[{"uri": document.uri}])
            lenses.append(types.CodeLens(place, command))
    return lenses


def runnable_programs(model: Model) -> list[str]:
    """The exported programs; without an export, all programs.  Guides are drawn from by the runs of their program."""
    exported = [export.name for export in model.exports if export.name in model.programs]
    names = exported or list(model.programs)
    return [name for name in names if not model.programs[name].template and model.programs[name].guidance is None]


def status_text(ls: QvrLanguageServer, document: Document, model: Model, name: str, running: Run | None) -> str:
    """'132,352 parameters · last run: −ELBO 5.31 (2 min ago)', or the step of the run that is under way."""
    count = parameter_count(model, model.programs[name])
    parts = [f"{count:,} parameters"] if count else []
    path = path_of(document.uri)
    if running is not None:
        from qvr_lsp.runs.processes import describe

        parts.append(f"running: {describe(running.last) if running.last is not None else running.status}")
    elif path is not None:
        parts += last_run(ls, path, name)
    return " · ".join(parts)


def last_run(ls: QvrLanguageServer, path: Path, name: str) -> list[str]:
    # a web page has no runs and does without pydantic
    from qvr_core.runs.record.protocol import Finished

    overview = ls.runs.last_overview(ls.workspace.root_of(path), path, name)
    if overview is None:
        return []
    loss = f"−ELBO {overview.last_loss:.4g}" if overview.last_loss is not None else overview.status
    if isinstance(overview.ending, Finished) and overview.ending.held_out is not None:
        loss = f"{overview.ending.held_out.bits_per_byte:.4g} bits per byte held out"
    if overview.algorithm == "nuts":
        loss = overview.status
    bad = [one.name for one in overview.ending.checks if one.grave] if isinstance(overview.ending, Finished) else []
    warned = f" · ⚠ not to be trusted: {', '.join(bad)}" if bad else ""
    return [f"last run: {loss}{warned} ({age_text(overview.created)})"]


def age_text(moment: datetime) -> str:
    seconds = max(0, (datetime.now() - moment).total_seconds())
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return "just now"
