"""Draws from the prior of the program under the cursor: by a process of their own, for the text as it stands; what they
say stands beside the steps and in hovers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pygls.exceptions import JsonRpcContentModified, JsonRpcInvalidParams

from qvr_lsp.protocol import RequestFailed
from qvr_lsp.serialising import Json

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot
    from qvr_core.ide.prose import Prose
    from qvr_core.runs.client.prior import PriorWorker
    from qvr_core.runs.record.fitted import Beside, Fitted
    from qvr_core.runs.record.prior import PriorDrawn
    from qvr_core.runs.record.protocol import Job
    from qvr_lsp.client import Client
    from qvr_lsp.documents import Document, Documents
    from qvr_lsp.workspace import QvrWorkspace

MOST_HELD = 20
"""Documents whose last draws are remembered."""


class Priors:
    """What was drawn last of each open document, and the one question that is under way for each."""

    def __init__(self, client: Client, documents: Documents, workspace: QvrWorkspace) -> None:
        self._client = client
        self._documents = documents
        self._workspace = workspace
        self._worker: PriorWorker | None = None
        self._asked: dict[str, asyncio.Task[PriorDrawn]] = {}
        self._held: dict[str, Fitted] = {}
        self._about: dict[str, dict[str, dict[str, Prose]]] = {}
        self._outside: dict[str, frozenset[str]] = {}
        """The observed steps whose data the prior leaves out."""

    # ------------------------------------------------------------ drawing

    async def draw(self, document: Document, path: Path, program: str, draws: int) -> Json:
        """Draws for a text as it is.  Raises `JsonRpcContentModified` once it is edited, or asked about again."""
        uri, snapshot, version = document.uri, document.snapshot, document.version
        job = self._job(path, document.text, snapshot, program)
        self.edited(uri)
        task = asyncio.get_running_loop().create_task(self._process().draw(job, draws))
        self._asked[uri] = task
        try:
            found = await task
        except asyncio.CancelledError:
            if self._asked.get(uri) is task:
                raise  # the request itself was cancelled
            raise JsonRpcContentModified("the text was edited, or asked about again, meanwhile") from None
        except TimeoutError:
            raise RequestFailed(f"the prior of `{program}` takes too long to draw from") from None
        except (OSError, ValueError) as error:
            raise RequestFailed(f"the prior of `{program}` could not be drawn from: {error}") from error
        finally:
            if self._asked.get(uri) is task:
                del self._asked[uri]
        self._hold(uri, snapshot, program, found)
        answer: Json = {"program": program, "version": version, "data": job.config.data, "problem": found.problem}
        summary = None if found.summary is None else found.summary.model_dump(mode="json", exclude_none=True)
        return {**answer, "summary": summary, "notes": list(found.notes), "outside": found.outside}

    def _job(self, path: Path, text: str, snapshot: Snapshot, program: str) -> Job:
        from qvr_core.runs.record.config import RunConfig
        from qvr_core.runs.record.program import imports_of
        from qvr_core.runs.record.protocol import Job
        from qvr_lsp.runs.processes import first_problem

        root = self._workspace.root_of(path)
        try:
            config = RunConfig(**self._workspace.run_table(path, program))
        except ValueError as error:
            raise JsonRpcInvalidParams(first_problem(error)) from error
        return Job(
            run_id="",
            directory=str(root / ".qvr" / "unstored"),
            path=str(path),
            text=text,
            location=snapshot.location,
            imports=imports_of(snapshot),
            program=program,
            config=config,
            base=str(root),
        )

    def _process(self) -> PriorWorker:
        from qvr_core.runs.client.prior import PriorWorker

        python = self._client.settings.python or sys.executable
        if self._worker is None:
            self._worker = PriorWorker(python)
        self._worker.python = python
        return self._worker

    def edited(self, uri: str) -> None:
        """What was asked about the text before is not wanted any more."""
        task = self._asked.pop(uri, None)
        if task is not None:
            task.cancel()

    def stop(self) -> None:
        """The session is over."""
        for uri in list(self._asked):
            self.edited(uri)
        if self._worker is not None:
            self._worker.kill()

    # ------------------------------------------------------------ showing

    def _hold(self, uri: str, snapshot: Snapshot, program: str, found: PriorDrawn) -> None:
        from qvr_core.runs.record.fitted import Fitted, rests_on
        from qvr_lsp.runs.hovers import about_prior

        self._held.pop(uri, None)
        self._about.pop(uri, None)
        if found.summary is not None:
            sites = {site.name: site for site in found.summary.sites}
            self._held[uri] = Fitted("", program, "prior", {}, sites, (), {}, rests_on(snapshot, program))
            self._about[uri] = {program: about_prior(found)}
            self._outside[uri] = frozenset(found.outside)
        for old in list(self._held)[:-MOST_HELD]:
            del self._held[old], self._about[old], self._outside[old]
        self._client.refresh("inlay_hint")

    def beside(self, uri: str, snapshot: Snapshot) -> Iterator[Beside]:
        """The figures of the prior behind the steps, while the program is the one that they were drawn from."""
        fit = self._current(uri, snapshot)
        if fit is None:
            return
        from dataclasses import replace

        from qvr_core.runs.record.fitted import beside

        lines = {line for name in self._outside[uri] if (line := _line_of(snapshot, fit.program, name)) is not None}
        for one in beside(fit, snapshot):
            misses = " · leaves its data outside" if one.cursor.line in lines else ""
            yield replace(one, text=f"prior {one.text}{misses}", tooltip=f"Draws from the prior of `{fit.program}`.")

    def about(self, uri: str, snapshot: Snapshot) -> Mapping[str, Mapping[str, Prose]]:
        """By program and name, what hovers say while the program is the one that was drawn from."""
        return self._about[uri] if self._current(uri, snapshot) is not None else {}

    def _current(self, uri: str, snapshot: Snapshot) -> Fitted | None:
        fit, document = self._held.get(uri), self._documents.find(uri)
        if fit is None or document is None or not document.ready:
            return None
        from qvr_core.runs.record.fitted import rests_on

        return fit if rests_on(snapshot, fit.program) == fit.rests_on else None


def _line_of(snapshot: Snapshot, program: str, step: str) -> int | None:
    from qvr_core.semantics.file.site_origins import site_origins

    origin = site_origins(snapshot.model.programs[program]).get(step)
    place = None if origin is None else snapshot.find(origin)
    return None if place is None else place.start.line
