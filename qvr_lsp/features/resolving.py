"""What handlers of one document share: wait for its first analysis, then answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from qvr_lsp.documents import Document
from qvr_lsp.rpc import Json

if TYPE_CHECKING:
    from qvr_lsp.server import Server

Answer = Callable[["Server", Document, Json], Any]


def on_document(answer: Answer) -> Callable[[Server, Json], Any]:
    """A handler from a function on an open, analysed document.  Answers at once where the analysis is there."""

    @wraps(answer)
    def handler(server: Server, params: Json) -> Any:
        document = server.documents.get(params["textDocument"]["uri"])
        if document.ready:
            return answer(server, document, params)
        return later(server, document, params)

    async def later(server: Server, document: Document, params: Json) -> Any:
        await document.wait_ready()
        return answer(server, document, params)

    return handler
