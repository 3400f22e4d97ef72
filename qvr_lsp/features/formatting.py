"""formatting, rangeFormatting, onTypeFormatting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qvr_core.ide.edits.formatting import edits, indentation
from qvr_lsp.documents import Document, View
from qvr_lsp.features.resolving import elsewhere, on_document
from qvr_lsp.rpc import CONTENT_MODIFIED, Json, RpcError

if TYPE_CHECKING:
    from qvr_core.ide.answers import TextEdit
    from qvr_lsp.server import Server


def made(document: View, found: list[TextEdit]) -> list[Json]:
    return [{"range": document.range(item.range), "newText": item.text} for item in found]


@on_document
def whole(server: Server, document: Document, params: Json) -> Any:
    if not document.large:
        return made(document, edits(document.snapshot))
    return of_large(document)


async def of_large(document: Document) -> list[Json]:
    """The edits of a large file, made in a thread: a snapshot is never changed."""
    still = document.still()
    found = await elsewhere(lambda: made(still, edits(still.snapshot)))
    if document.version != still.version:
        raise RpcError(CONTENT_MODIFIED, "the text was edited meanwhile")
    return found


@on_document
def partial(server: Server, document: Document, params: Json) -> list[Json]:
    stretch = document.stretch(params["range"])
    return made(document, edits(document.snapshot, stretch.start.line, stretch.end.line))


@on_document
def on_type(server: Server, document: Document, params: Json) -> list[Json]:
    """After a line end: the indentation that the new line should have."""
    return made(document, indentation(document.snapshot, document.cursor(params["position"])))
