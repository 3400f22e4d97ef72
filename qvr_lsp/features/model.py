"""qvr/model: the typed model of a file as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.ide.exchange import model_json
from qvr_lsp.documents import Document
from qvr_lsp.features.diagrams import place
from qvr_lsp.features.resolving import on_document
from qvr_lsp.rpc import Json

if TYPE_CHECKING:
    from qvr_lsp.server import Server


@on_document
def model(server: Server, document: Document, params: Json) -> Json:
    made = model_json(document.snapshot.model, lambda origin: place(document, origin))
    return {"version": document.version, "model": made}
