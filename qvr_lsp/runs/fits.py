"""The last fit of each program of the open documents, read off the event loop: figures beside the steps, hovers, and
warnings where a fit is not to be trusted."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from qvr_lsp.diagnostic_conversion import convert_one
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from qvr_core.analysis import LocatedDiagnostic, LocatedFix, Snapshot
    from qvr_core.ide.prose import Prose
    from qvr_core.runs.record.last_fit import Beside, Fitted
    from qvr_lsp.documents import Document, Documents
    from qvr_lsp.editor import Client
    from qvr_lsp.json_values import Json
    from qvr_lsp.workspace import QvrWorkspace

log = logging.getLogger("qvr.fits")


class Fits:
    """What the runs of open documents have found."""

    def __init__(self, client: Client, documents: Documents, workspace: QvrWorkspace) -> None:
        self._client = client
        self._documents = documents
        self._workspace = workspace
        self._held: dict[str, dict[str, Fitted]] = {}
        """By document and program."""
        self._about: dict[str, dict[str, dict[str, Prose]]] = {}
        self._asked: dict[str, int] = {}
        """The documents that were looked at."""
        self._reading: dict[str, bool] = {}
        """Documents whose runs are being read, and whether they have changed meanwhile."""

    # ------------------------------------------------------------ reading

    def follow(self, document: Document) -> None:
        """Look for the runs of a document that was not seen before."""
        if self._asked.get(document.uri) != id(document):
            self._asked[document.uri] = id(document)
            self.ask(document)

    def ask_all(self) -> None:
        """Runs have ended elsewhere."""
        for document in self._documents:
            self.ask(document)

    def ask(self, document: Document) -> None:
        path = path_of(document.uri)
        if path is None:
            return
        if document.uri in self._reading:
            self._reading[document.uri] = True
        elif os.path.isdir(self._workspace.root_of(path) / ".qvr" / "runs"):
            self._reading[document.uri] = False
            self._client.spawn(self._read(document, path))

    async def _read(self, document: Document, path: Path) -> None:
        uri = document.uri
        try:
            await document.wait_ready()
            root, held = self._workspace.root_of(path), self._held.get(uri, {})
            work = partial(fits_of, document.snapshot, path, root, held)
            found = await asyncio.get_running_loop().run_in_executor(None, work)
        except Exception:
            log.exception("the runs of %s could not be read", path)
            return
        finally:
            again = self._reading.pop(uri, False)
        if again and self._documents.find(uri) is document:
            self.ask(document)
        if found != held:
            self._hold(uri, found)
            self._show(uri)

    def _hold(self, uri: str, found: dict[str, Fitted]) -> None:
        from qvr_lsp.runs.hovers import about

        self._held[uri] = found
        self._about[uri] = {program: about(fit) for program, fit in found.items()}

    def _show(self, uri: str) -> None:
        self._documents.republish(uri)
        self._client.refresh("inlay_hint", "code_lens", "diagnostics")

    def run_began(self, uri: str, program: str | None) -> None:
        """What was bad in the run before is of yesterday."""
        from dataclasses import replace

        held = self._held.get(uri, {})
        for name, fit in held.items():
            if program in (name, None) and fit.checks:
                held[name] = replace(fit, checks=())
                self._show(uri)

    def run_ended(self, uri: str) -> None:
        document = self._documents.find(uri)
        if document is not None:
            self.ask(document)

    # ------------------------------------------------------------ showing

    def beside(self, uri: str, snapshot: Snapshot) -> Iterator[Beside]:
        """The figures that stand behind the steps; none while a text is analysed as a whole."""
        document = self._documents.find(uri)
        if not self._held.get(uri) or document is None or not document.ready:
            return
        from qvr_core.runs.record.last_fit import beside

        for fit in list(self._held[uri].values()):
            yield from beside(fit, snapshot)

    def about(self, uri: str) -> Mapping[str, Mapping[str, Prose]]:
        """By program and name, what hovers say."""
        return self._about.get(uri, {})

    def items(self, document: Document) -> list[Json]:
        """The diagnostics of a document's fits, as the editor wants them."""
        lines = document.snapshot.lines
        return [convert_one(self._client, document.uri, lines, found) for found, _, _ in self.mends(document)]

    def mends(
        self, document: Document
    ) -> Iterator[tuple[LocatedDiagnostic, tuple[LocatedFix, ...], tuple[str, Json] | None]]:
        """Each thing that is bad, with its fixes, and the title and argument of `qvr.run` for another run."""
        held = self._held.get(document.uri)
        if not held or not self._client.settings.diagnostics_fits:
            return
        from qvr_core.runs.record.last_fit import problems, reruns

        for fit in list(held.values()):
            for check, problem in problems(fit, document.snapshot):
                again = reruns(fit, check)
                yield problem, problem.fixes, again and (again[0], {"uri": document.uri, **again[1]})


def fits_of(snapshot: Snapshot, path: Path, root: Path, held: Mapping[str, Fitted]) -> dict[str, Fitted]:
    """The last fit of each program of a file that has one; those that are `held` are not read again."""
    from qvr_core.runs.record.last_fit import last_fit
    from qvr_core.runs.record.store import RunStore

    store, file = RunStore(root), Path(os.path.abspath(path))
    found = ((name, last_fit(store, file, name, held.get(name), snapshot)) for name in snapshot.model.programs)
    return {name: fit for name, fit in found if fit is not None}
