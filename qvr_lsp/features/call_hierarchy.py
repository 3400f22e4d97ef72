"""textDocument/prepareCallHierarchy and the calls in and out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.ide.answers import Call, DocumentSymbol
from qvr_core.ide.navigation import callable_at, callees, callers
from qvr_lsp.documents import Document
from qvr_lsp.features.document_symbols import KINDS
from qvr_lsp.features.resolving import on_document
from qvr_lsp.rpc import Json

if TYPE_CHECKING:
    from qvr_lsp.session import Session


@on_document
def prepare(session: Session, document: Document, params: Json) -> list[Json] | None:
    symbol = callable_at(document.snapshot, document.cursor(params["position"]))
    return [item(document, symbol)] if symbol is not None else None


def item(document: Document, symbol: DocumentSymbol) -> Json:
    made: Json = {
        "name": symbol.name,
        "kind": KINDS[symbol.kind],
        "uri": document.uri,
        "range": document.range(symbol.range),
        "selectionRange": document.range(symbol.name_range),
    }
    return {**made, "detail": symbol.detail} if symbol.detail else made


def _document(session: Session, params: Json) -> Document | None:
    document = session.documents.find(params["item"]["uri"])
    return document if document is not None and document.ready else None


def incoming(session: Session, params: Json) -> list[Json]:
    """Which lets and programs use the arrow."""
    document = _document(session, params)
    found = callers(document.snapshot, params["item"]["name"]) if document is not None else []
    return [_side(document, "from", call) for call in found if document is not None]


def outgoing(session: Session, params: Json) -> list[Json]:
    """What the arrow uses."""
    document = _document(session, params)
    found = callees(document.snapshot, params["item"]["name"]) if document is not None else []
    return [_side(document, "to", call) for call in found if document is not None]


def _side(document: Document, key: str, call: Call) -> Json:
    return {key: item(document, call.symbol), "fromRanges": [document.range(place) for place in call.places]}
