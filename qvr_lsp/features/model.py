"""qvr/model: the typed model of a file as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qvr_lsp.features.resolving import encoded_in_thread, on_document
from qvr_lsp.json_values import Json
from qvr_lsp.language_server import QvrLanguageServer, server
from qvr_lsp.messages import ModelParams
from qvr_lsp.serialising import encoded_in_chunks

if TYPE_CHECKING:
    from qvr_lsp.documents import Document, View


@server.feature("qvr/model")
@on_document
def model(ls: QvrLanguageServer, document: Document, params: ModelParams) -> Any:
    """the typed model; see there"""
    return encoded_in_thread(model_answer, ls, document.frozen(), params)


def model_answer(ls: QvrLanguageServer, document: View, params: ModelParams) -> Json:
    from qvr_core.ide.model_as_json import model_json
    from qvr_lsp.answers.diagrams import range_of

    found = model_json(document.snapshot.model, lambda origin: range_of(document, origin), encoded_in_chunks)
    return {"version": document.version, "model": found}
