"""What programs say while they are written: draws from the prior or the posterior of the one under the cursor, by a
process of their own, for the text as it stands; what they say stands beside the steps and in hovers."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pygls import IS_WASM
from pygls.exceptions import JsonRpcContentModified, JsonRpcException, JsonRpcInvalidParams

from qvr_lsp.json_values import Json
from qvr_lsp.protocol import RequestFailed
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from lsprotocol import types

    from qvr_core.analysis import Snapshot
    from qvr_core.ide.prose import Prose
    from qvr_core.runs.client.live import LiveWorker
    from qvr_core.runs.record.last_fit import Beside, Fitted
    from qvr_core.runs.record.live import Asked, Drawn
    from qvr_core.runs.record.protocol import Job
    from qvr_core.runs.record.summary import SiteSummary
    from qvr_lsp.documents import Document, Documents
    from qvr_lsp.editor import Client
    from qvr_lsp.workspace import QvrWorkspace

log = logging.getLogger("qvr.live")

PAUSE = 0.3
"""Seconds without an edit after which a program is drawn from again."""
DRAWS = 200
"""From the prior."""
MOST_HELD = 20
"""Documents whose last draws are remembered."""
EVENT = "qvr/live"
NOT_TOLD = {"drawn": True, "traces": True, "sites": {"__all__": {"elements": {"__all__": {"ranks"}}}}}
"""Of a summary, what nothing that is shown beside a text wants."""


@dataclass(frozen=True, slots=True)
class Held:
    """The last draws of a document: as a fit, as they came, and what hovers say."""

    fit: Fitted
    drawn: Drawn
    about: dict[str, dict[str, Prose]]


class Live:
    """What was drawn last of each open document, and the one question that is under way for each."""

    def __init__(self, client: Client, documents: Documents, workspace: QvrWorkspace) -> None:
        self._client = client
        self._documents = documents
        self._workspace = workspace
        self._worker: LiveWorker | None = None
        self._asked: dict[str, asyncio.Task[Drawn]] = {}
        self._held: dict[str, Held] = {}
        self._places: dict[str, types.Position] = {}
        """Where each document was edited last, or the cursor is said to be."""
        self._seen: dict[str, tuple[int, int]] = {}
        """The state of each document that was looked at last: which it was, and how often it had been edited."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._said: dict[str, Json] = {}

    # ------------------------------------------------------------ asked by the editor

    async def draw(self, document: Document, path: Path, program: str, draws: int) -> Json:
        """Draws from the prior of a text as it is.  Raises `JsonRpcContentModified` once it is edited, or asked about
        again."""
        uri, snapshot, version = document.uri, document.snapshot, document.version
        from qvr_core.runs.record.live import Asked

        job = self._job(path, document.text, snapshot, program)
        self.drop(uri)
        task = asyncio.get_running_loop().create_task(self._process().ask(Asked(job=job, draws=draws)))
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

    def _process(self) -> LiveWorker:
        from qvr_core.runs.client.live import LiveWorker

        python = self._client.settings.python or sys.executable
        if self._worker is None:
            self._worker = LiveWorker(python)
        self._worker.python = python
        return self._worker

    # ------------------------------------------------------------ as somebody types

    @property
    def wanted(self) -> bool:
        """Whether anything is drawn unasked."""
        return self._client.settings.live != "off" and self._client.trusted and not IS_WASM

    def follow(self, document: Document) -> None:
        """Draw again where a document's text has changed, once it has come to rest."""
        if self.wanted and self._seen.get(document.uri) != (id(document), document.edits):
            self._rest(document)

    def again_all(self) -> None:
        """Data, or settings of runs, have changed."""
        for document in self._documents if self.wanted else ():
            self._forget(document.uri)
            self._rest(document)

    def settings_changed(self) -> None:
        """Begin, end, or draw what is wanted now."""
        if self.wanted:
            self.again_all()
            return
        for uri in {*self._asked, *self._timers, *self._held}:
            self.drop(uri)
            self._forget(uri)
        self._client.refresh("inlay_hint")
        self._seen.clear()
        if self._worker is not None:
            self._worker.kill()

    def edited(self, uri: str, position: types.Position | None = None) -> None:
        """What was asked about the text before is not wanted any more."""
        self.drop(uri)
        if position is not None:
            self._places[uri] = position

    def look_at(self, document: Document, position: types.Position) -> Json | None:
        """The cursor has come to rest somewhere: what is drawn is the program there.  How it stands so far."""
        self._places[document.uri] = position
        said = self._said.get(document.uri)
        if self.wanted and said is not None and said["program"] != program_at(document, position):
            self._rest(document)
        return said

    def drop(self, uri: str) -> None:
        timer, task = self._timers.pop(uri, None), self._asked.pop(uri, None)
        if timer is not None:
            timer.cancel()
        if task is not None:
            task.cancel()

    def _rest(self, document: Document) -> None:
        uri = document.uri
        self._seen[uri] = (id(document), document.edits)
        if path_of(uri) is None:
            return
        self.drop(uri)
        self._timers[uri] = asyncio.get_running_loop().call_later(PAUSE, self._begin, uri)
        if self._process().pid is None:
            self._client.spawn(self._warm())

    async def _warm(self) -> None:
        """Start the process while somebody types still."""
        try:
            await self._process().warm()
        except OSError as error:
            log.warning("nothing draws: %s cannot be started (%s)", self._process().python, error.strerror)

    def _begin(self, uri: str) -> None:
        """A text has come to rest."""
        from qvr_core.semantics.types.diagnostics import Severity

        self._timers.pop(uri, None)
        document, path = self._documents.find(uri), path_of(uri)
        if document is None or not document.ready or path is None or not self.wanted:
            return
        snapshot, program = document.snapshot, program_at(document, self._places.get(uri))
        if program is None or any(one.severity is Severity.ERROR for one in snapshot.diagnostics()):
            why = f"`{program}` is drawn from once the errors are mended" if program else "there is no program"
            self._say(document, "waiting", program, why)
            return
        if self._is_drawn(uri, snapshot, program):
            return
        try:
            asked = self._question(path, document, program)
        except JsonRpcException as error:
            self._refuse(document, program, str(error))
            return
        self._client.spawn(self._follow(document, program, asked))

    def _question(self, path: Path, document: Document, program: str) -> Asked:
        from qvr_core.runs.record.live import Asked

        settings = self._client.settings
        kind = "prior" if settings.live == "prior" else "posterior"
        job = self._job(path, document.text, document.snapshot, program)
        return Asked(kind=kind, job=job, draws=DRAWS, budget=settings.live_budget)

    def _is_drawn(self, uri: str, snapshot: Snapshot, program: str) -> bool:
        """Whether the draws that there are would come out as they are: a comment has changed."""
        held = self._held.get(uri)
        if (
            held is None
            or not held.drawn.last
            or (held.drawn.method == "prior") != (self._client.settings.live == "prior")
        ):
            return False
        from qvr_core.runs.record.last_fit import rests_on

        return held.fit.program == program and held.fit.rests_on == rests_on(snapshot, program)

    async def _follow(self, document: Document, program: str, asked: Asked) -> None:
        """Ask, and show what comes."""
        uri, snapshot = document.uri, document.snapshot

        def show(drawn: Drawn) -> None:
            if self._documents.find(uri) is document and self._asked.get(uri) is task:
                self._hold(uri, snapshot, program, drawn)
                self._say(
                    document, "drawn", program, in_words(program, drawn, asked.budget), drawn, asked.job.config.data
                )

        self.drop(uri)
        task = asyncio.get_running_loop().create_task(self._process().ask(asked, show))
        self._asked[uri] = task
        self._say(document, "drawing", program, f"drawing from the {asked.kind} of `{program}`")
        try:
            last = await task
        except asyncio.CancelledError:
            return
        except (OSError, ValueError) as error:
            # TimeoutError is one of them
            self._refuse(document, program, str(error) or "it takes too long")
            return
        if last.problem is not None:
            self._refuse(document, program, last.problem)
        elif not last.dropped:
            show(last)
        if self._asked.get(uri) is task:
            del self._asked[uri]

    def _refuse(self, document: Document, program: str, why: str) -> None:
        """There is nothing to show, and this is why."""
        if self._documents.find(document.uri) is document:
            if self._forget(document.uri):
                self._client.refresh("inlay_hint")
            self._say(document, "problem", program, why)

    def _say(
        self, document: Document, state: str, program: str | None, text: str, drawn: Drawn | None = None, data: str = ""
    ) -> None:
        """Tell the editor how it stands, quietly."""
        said: Json = {"uri": document.uri, "version": document.version, "program": program}
        said |= {"kind": self._client.settings.live, "state": state, "text": text}
        if drawn is not None and drawn.summary is not None:
            said["method"], said["last"], said["data"] = drawn.method, drawn.last, data
            said["outside"], said["notes"] = drawn.outside, list(drawn.notes)
            said["summary"] = drawn.summary.model_dump(mode="json", exclude_none=True, exclude=NOT_TOLD)
        self._said[document.uri] = said
        self._client.protocol.notify(EVENT, said)

    def stop(self) -> None:
        """The session is over."""
        for uri in {*self._asked, *self._timers}:
            self.drop(uri)
        if self._worker is not None:
            self._worker.kill()

    # ------------------------------------------------------------ showing

    def _forget(self, uri: str) -> bool:
        """Whether there was anything."""
        return self._held.pop(uri, None) is not None

    def _hold(self, uri: str, snapshot: Snapshot, program: str, found: Drawn) -> None:
        from qvr_core.runs.record.last_fit import Fitted, rests_on
        from qvr_lsp.runs.hovers import about_drawn

        self._forget(uri)
        if found.summary is not None:
            sites = {site.name: site for site in found.summary.sites}
            fit = Fitted("", program, found.method, {}, sites, (), {}, rests_on(snapshot, program))
            self._held[uri] = Held(fit, found, {program: about_drawn(found)})
        for old in list(self._held)[:-MOST_HELD]:
            del self._held[old]
        self._client.refresh("inlay_hint")

    def beside(self, uri: str, snapshot: Snapshot) -> Iterator[Beside]:
        """The figures behind the steps.  Of a prior only while the program is the one that they were drawn from; those
        of a posterior are marked as those of the text before until there are others."""
        held, document = self._held.get(uri), self._documents.find(uri)
        if held is None or document is None or not document.ready:
            return
        from dataclasses import replace

        from qvr_core.runs.record.last_fit import beside

        drawn, program = held.drawn, held.fit.program
        prior = drawn.method == "prior"
        lines = {line for name in drawn.outside if (line := _line_of(snapshot, program, name)) is not None}
        words = in_words(program, drawn, self._client.settings.live_budget)
        kept = f"{words[:1].upper()}{words[1:]}. No run: nothing of it is kept."
        tooltip = f"Draws from the prior of `{program}`." if prior else kept
        mark = "prior" if prior else "live ≈" if drawn.method == "pathfinder" else "live"
        for one in beside(held.fit, snapshot, figure_of):
            if prior and one.older:
                return
            misses = " · misses its data" if one.cursor.line in lines else ""
            told = tooltip + (" The program has changed since." if one.older else "")
            text = f"{'before' if one.older else mark} {one.text}{misses}"
            yield replace(one, text=text, tooltip=told, drawn="prior" if prior else "live")

    def about(self, uri: str, snapshot: Snapshot) -> Mapping[str, Mapping[str, Prose]]:
        """By program and name, what hovers say while the program is the one that was drawn from."""
        held, document = self._held.get(uri), self._documents.find(uri)
        if held is None or document is None or not document.ready:
            return {}
        from qvr_core.runs.record.last_fit import rests_on

        return held.about if rests_on(snapshot, held.fit.program) == held.fit.rests_on else {}


def program_at(document: Document, position: types.Position | None) -> str | None:
    """The program around a place, else the main one."""
    from qvr_core.runs.record.settings import main_program

    snapshot = document.snapshot
    if position is not None:
        statement = snapshot.statement_at(document.cursor(position))
        uid = None if statement is None else statement.uid
        found = next((name for name in snapshot.model.programs if snapshot.owners.get(name) == uid), None)
        if found is not None:
            return found
    return main_program(snapshot.model)


def in_words(program: str, drawn: Drawn, budget: float) -> str:
    """What was drawn, in a line."""
    assert drawn.summary is not None
    draws, chains = f"{drawn.summary.draws:,} draws", drawn.summary.chains
    if drawn.method == "prior":
        return f"prior of `{program}`: {draws}"
    if drawn.method == "pathfinder":
        why = f"the warm-up of chains does not fit {budget:g} s" if drawn.last else "chains warm up"
        return f"posterior of `{program}`, approximated by Pathfinder: {why}"
    diverged = f", {drawn.diverged:,} diverged" if drawn.diverged else ""
    return f"live posterior of `{program}`: {chains} chains of {draws} in {drawn.seconds:.1f} s{diverged}"


def figure_of(site: SiteSummary) -> str:
    """Figures that are not cut: VS Code shows 43 characters of a line's hints.  R-hat only where it is too large."""
    from qvr_core.runs.record.last_fit import brief, figure

    return figure(site) if any(one.unmixed for one in site.elements) else brief(site)


def _line_of(snapshot: Snapshot, program: str, step: str) -> int | None:
    from qvr_core.semantics.file.site_origins import site_origins

    origin = site_origins(snapshot.model.programs[program]).get(step)
    place = None if origin is None else snapshot.find(origin)
    return None if place is None else place.start.line
