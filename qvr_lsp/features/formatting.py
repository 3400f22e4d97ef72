"""formatting, rangeFormatting, onTypeFormatting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from qvr_core.ide.edits.formatting import edits, indentation
from qvr_lsp.documents import Document
from qvr_lsp.features.resolving import on_document
from qvr_lsp.rpc import CONTENT_MODIFIED, Json, RpcError

if TYPE_CHECKING:
    from qvr_core.ide.answers import TextEdit
    from qvr_lsp.server import Server


LONG = 1000


def made(document: Document, found: list[TextEdit]) -> list[Json]:
    return [{"range": document.range(item.range), "newText": item.text} for item in found]


@on_document
def whole(server: Server, document: Document, params: Json) -> Any:
    if len(document.lines) < LONG:
        return made(document, edits(document.snapshot))
    return elsewhere(document)


async def elsewhere(document: Document) -> list[Json]:
    """The edits of a long file, made in a thread: a snapshot is never changed."""
    version = document.version
    found = await asyncio.to_thread(edits, document.snapshot)
    if document.version != version:
        raise RpcError(CONTENT_MODIFIED, "the text was edited meanwhile")
    return made(document, found)


@on_document
def partial(server: Server, document: Document, params: Json) -> list[Json]:
    stretch = document.stretch(params["range"])
    return made(document, edits(document.snapshot, stretch.start.line, stretch.end.line))


@on_document
def on_type(server: Server, document: Document, params: Json) -> list[Json]:
    """After a line end: the indentation that the new line should have."""
    return made(document, indentation(document.snapshot, document.cursor(params["position"])))
