"""The requests of the page of `qvr play` beside those of every editor."""

from __future__ import annotations

import asyncio
import sys
from importlib.util import find_spec

from pygls.exceptions import JsonRpcInvalidParams

from qvr_core.extras import lacking, remedy
from qvr_lsp.json_values import Json
from qvr_lsp.language_server import QvrLanguageServer
from qvr_lsp.messages import ExportDiagramArguments, Nothing, ReadParams, RecordParams, SaveParams
from qvr_lsp.play import run_records
from qvr_lsp.play.folder import Folder

NEEDED = "numpy"
"""What no run can do without.  Chains of programs without networks do without torch; a run that wants it says so."""


def register(server: QvrLanguageServer, folder: Folder) -> None:
    """Register them for a page that works in a folder.  In threads: a disk may be slow."""

    @server.feature("play/folder")
    async def listing(ls: QvrLanguageServer, params: Nothing | None) -> Json:
        return {**await asyncio.to_thread(folder.listing), "lacks": lacks()}

    @server.feature("play/read")
    async def read(ls: QvrLanguageServer, params: ReadParams) -> Json:
        return await asyncio.to_thread(folder.read, params)

    @server.feature("play/save")
    async def save(ls: QvrLanguageServer, params: SaveParams) -> Json:
        return await asyncio.to_thread(folder.save, params)

    @server.feature("play/run")
    async def run(ls: QvrLanguageServer, params: RecordParams) -> Json:
        return await asyncio.to_thread(run_records.run, ls, params)

    del server.protocol.registered.commands["qvr.exportDiagram"]

    @server.command("qvr.exportDiagram")
    def export_diagram(ls: QvrLanguageServer, given: ExportDiagramArguments) -> None:
        """The one command that writes wherever it is told."""
        raise JsonRpcInvalidParams("`qvr.exportDiagram` is not for a page: it saves what it has drawn by itself")


def lacks() -> str | None:
    """Why nothing can be fitted here, and what to do; None where it can."""
    if NEEDED in sys.modules or find_spec(NEEDED) is not None:
        return None
    return f"fits need {lacking(NEEDED)}; install what they need by: {remedy()}"
