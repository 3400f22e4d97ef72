"""The requests of the page of `qvr play` beside those of every editor, one row each."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from qvr_core.extras import lacking, remedy
from qvr_lsp.methods import METHODS
from qvr_lsp.play import records
from qvr_lsp.play.folder import Folder
from qvr_lsp.rpc import INVALID_PARAMS, Json, RpcError
from qvr_lsp.shapes import require

if TYPE_CHECKING:
    from qvr_lsp.session import Session

EXECUTE = "workspace/executeCommand"
NEEDED = "torch"
"""What no run can do without."""


def requests_for(folder: Folder) -> dict[str, Callable[[Session, Any], Any]]:
    """By method, what answers it for a page that works in a folder."""
    nothing = (dict, type(None))
    rows: dict[str, tuple[Any, Callable[[Session, Json], Json]]] = {
        "play/folder": (nothing, lambda session, params: {**folder.listing(), "lacks": lacks()}),
        "play/read": ({"path": str}, lambda session, params: folder.read(params)),
        "play/save": (
            {"path": str, "text": str, "stamp?": str, "new?": bool},
            lambda session, params: folder.save(params),
        ),
        "play/run": ({"uri": str, "runId": str}, records.run),
    }
    return {EXECUTE: execute, **{method: answering(method, *row) for method, row in rows.items()}}


def execute(session: Session, params: Any) -> Any:
    """The commands of every editor, but for the one that writes wherever it is told."""
    from qvr_lsp.features import commands

    require(EXECUTE, METHODS[EXECUTE].shape, params)
    if params["command"] == "qvr.exportDiagram":
        raise RpcError(INVALID_PARAMS, "`qvr.exportDiagram` is not for a page: it saves what it has drawn by itself")
    return commands.execute(session, params)


def answering(method: str, shape: Any, answer: Callable[[Session, Json], Json]) -> Callable[[Session, Any], Any]:
    """In a thread: a disk may be slow."""

    async def answered(session: Session, params: Any) -> Json:
        require(method, shape, params)
        return await asyncio.to_thread(answer, session, params or {})

    return answered


def lacks() -> str | None:
    """Why nothing can be fitted here, and what to do; None where it can."""
    if NEEDED in sys.modules or find_spec(NEEDED) is not None:
        return None
    return f"fits need {lacking(NEEDED)}; install what they need by: {remedy()}"
