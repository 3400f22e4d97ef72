"""textDocument/prepareCallHierarchy and the calls in and out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from qvr_lsp.features.resolving import on_document
from qvr_lsp.language_server import QvrLanguageServer, server

if TYPE_CHECKING:
    from qvr_lsp.documents import Document


@server.feature(types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY)
@on_document
def prepare(ls: QvrLanguageServer, document: Document, params: types.CallHierarchyPrepareParams) -> Any:
    """the arrow at a place"""
    from qvr_lsp.answers.call_hierarchy import arrow_at

    view = document.frozen()
    return arrow_at(ls, view, view.cursor(params.position))


@server.feature(types.CALL_HIERARCHY_INCOMING_CALLS)
async def incoming(
    ls: QvrLanguageServer, params: types.CallHierarchyIncomingCallsParams
) -> list[types.CallHierarchyIncomingCall]:
    """what uses an arrow"""
    from qvr_lsp.answers.call_hierarchy import calls_in

    return await calls_in(ls, params.item)


@server.feature(types.CALL_HIERARCHY_OUTGOING_CALLS)
async def outgoing(
    ls: QvrLanguageServer, params: types.CallHierarchyOutgoingCallsParams
) -> list[types.CallHierarchyOutgoingCall]:
    """what an arrow uses"""
    from qvr_lsp.answers.call_hierarchy import calls_out

    return await calls_out(ls, params.item)
