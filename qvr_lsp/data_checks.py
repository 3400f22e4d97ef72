"""The data files that qvr.toml names for the programs of open documents: checked off the event loop, shown at the names
that read them."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from qvr_lsp.diagnostic_conversion import convert_one
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from qvr_core.analysis import LocatedDiagnostic, Snapshot
    from qvr_core.data.typed.excerpts import Excerpts
    from qvr_core.runs.record.data_checks import DataFinding, Read
    from qvr_lsp.documents import Document, Documents
    from qvr_lsp.editor import Client
    from qvr_lsp.json_values import Json
    from qvr_lsp.workspace import QvrWorkspace

log = logging.getLogger("qvr.data")

PAUSE = 0.3
"""Seconds without an edit after which a document's data are looked at again."""


class DataChecks:
    """What is wrong with the data of open documents."""

    def __init__(self, client: Client, documents: Documents, workspace: QvrWorkspace) -> None:
        self._client = client
        self._documents = documents
        self._workspace = workspace
        self._found: dict[str, list[DataFinding]] = {}
        self._about: dict[str, dict[str, Mapping[str, str]]] = {}
        """By document and program: of each data name what the files hold."""
        self._asked: dict[str, tuple[int, int]] = {}
        """The state of each document that was looked at last: which it was, and how often it had been edited."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._excerpts: tuple[str, Excerpts] | None = None

    def follow(self, document: Document) -> None:
        """Look at a document's data again where its text has changed."""
        if self._asked.get(document.uri) != (id(document), document.edits):
            self.ask(document)

    def ask_all(self) -> None:
        """Files or settings have changed."""
        for document in self._documents:
            self.ask(document)

    def ask(self, document: Document) -> None:
        uri = document.uri
        self._asked[uri] = (id(document), document.edits)
        if uri in self._timers:
            self._timers[uri].cancel()
        self._timers[uri] = asyncio.get_running_loop().call_later(PAUSE, self._start, uri)

    def _start(self, uri: str) -> None:
        self._timers.pop(uri, None)
        document, path = self._documents.find(uri), path_of(uri)
        if document is not None and document.ready and path is not None:
            self._client.spawn(self._check(document, path))

    async def _check(self, document: Document, path: Path) -> None:
        work = partial(findings, document.snapshot, path, self._workspace, self.reader().read)
        try:
            found, self._about[document.uri] = await asyncio.get_running_loop().run_in_executor(None, work)
        except Exception:
            log.exception("the data of %s could not be checked", path)
            return
        if found != self._found.get(document.uri, []):
            self._found[document.uri] = found
            self._documents.republish(document.uri)
            # an editor that pulls asks again
            self._client.refresh("diagnostics")

    def reader(self) -> Excerpts:
        """What reads the files that take polars or numpy: a process of the interpreter that runs are started with."""
        from qvr_core.data.typed.excerpts import Excerpts
        from qvr_core.runs.record.data_checks import MOST_ROWS

        python = self._client.settings.python or sys.executable
        if self._excerpts is None or self._excerpts[0] != python:
            self._excerpts = (python, Excerpts(python, MOST_ROWS))
        return self._excerpts[1]

    def about(self, uri: str) -> Mapping[str, Mapping[str, str]]:
        """By program, of each data name what the files hold, as they were read last."""
        return self._about.get(uri, {})

    def located(self, document: Document) -> list[LocatedDiagnostic]:
        """The diagnostics of a document's data, at the places of its text as it is."""
        snapshot = document.snapshot
        placed = (finding.located(snapshot) for finding in self._found.get(document.uri, ()))
        return [found for found in placed if found is not None]

    def items(self, document: Document) -> list[Json]:
        """The same as the editor wants them."""
        lines = document.snapshot.lines
        return [convert_one(self._client, document.uri, lines, found) for found in self.located(document)]

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()


def findings(
    snapshot: Snapshot, path: Path, workspace: QvrWorkspace, other: Read | None = None
) -> tuple[list[DataFinding], dict[str, Mapping[str, str]]]:
    """What does not fit between a file's programs and the data that its settings name, and what the data hold; nothing
    of a file with errors, whose programs are not what they will be."""
    from qvr_core.runs.record.data_checks import looked_at, programs_with_data
    from qvr_core.semantics.types.diagnostics import Severity

    held = workspace.settings_text(path)
    if held is None or any(one.severity is Severity.ERROR for one in snapshot.diagnostics()):
        return [], {}
    found: list[DataFinding] = []
    about: dict[str, Mapping[str, str]] = {}
    for name, config in programs_with_data(snapshot, held[1]):
        looked = looked_at(snapshot, name, config, held[0].parent, other)
        found += looked.findings
        about[name] = looked.about
    return found, about
