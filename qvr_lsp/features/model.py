"""qvr/model: the typed model of a file as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qvr_core.ide.exchange import model_json
from qvr_lsp.documents import Document, View
from qvr_lsp.features.diagrams import range_of
from qvr_lsp.features.resolving import encoded_in_thread, on_document
from qvr_lsp.rpc import Json, encoded_in_chunks

if TYPE_CHECKING:
    from qvr_lsp.session import Session


@on_document
def model(session: Session, document: Document, params: Json) -> Any:
    return encoded_in_thread(model_answer, session, document.frozen(), params)


def model_answer(session: Session, document: View, params: Json) -> Json:
    found = model_json(document.snapshot.model, lambda origin: range_of(document, origin), encoded_in_chunks)
    return {"version": document.version, "model": found}
