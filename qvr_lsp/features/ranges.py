"""foldingRange, selectionRange, linkedEditingRange."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.ide.navigation import linked
from qvr_core.ide.outline import folds, selections
from qvr_lsp.documents import Document, View
from qvr_lsp.features.resolving import in_thread_if_large, on_document, on_part
from qvr_lsp.rpc import Json

if TYPE_CHECKING:
    from qvr_lsp.session import Session


@on_document
@in_thread_if_large
def folding(session: Session, document: View, params: Json) -> list[Json]:
    limit = session.client.get("textDocument.foldingRange.rangeLimit") or 5000
    return [
        {"startLine": first, "endLine": last, **({"kind": kind} if kind else {})}
        for first, last, kind in folds(document.snapshot)[:limit]
    ]


@on_part
def selection(session: Session, document: View, params: Json) -> list[Json]:
    return [_chain(document, position) for position in params["positions"]]


def _chain(document: View, position: Json) -> Json:
    found: Json = {}
    for stretch in reversed(selections(document.snapshot, document.cursor(position))):
        found = {"range": document.range(stretch), **({"parent": found} if found else {})}
    return found


@on_document
def linked_editing(session: Session, document: Document, params: Json) -> Json | None:
    found = linked(document.snapshot, document.cursor(params["position"]))
    if len(found) < 2:
        return None
    return {"ranges": [document.range(stretch) for stretch in found], "wordPattern": "[A-Za-z_][A-Za-z0-9_]*"}
