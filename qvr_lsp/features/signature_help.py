"""textDocument/signatureHelp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.ide.completion.signature import signature
from qvr_lsp.documents import View
from qvr_lsp.features.resolving import on_part
from qvr_lsp.markup import SIGNATURE, markup
from qvr_lsp.rpc import Json

if TYPE_CHECKING:
    from qvr_lsp.session import Session


@on_part
def signature_help(session: Session, document: View, params: Json) -> Json | None:
    found = signature(document.snapshot, document.cursor(params["position"]))
    if found is None:
        return None
    parameters = [
        {"label": label, "documentation": markup(session.client, SIGNATURE, text)} if text else {"label": label}
        for label, text in found.parameters
    ]
    made: Json = {"label": found.label, "parameters": parameters, "activeParameter": found.active}
    if found.documentation:
        made["documentation"] = markup(session.client, SIGNATURE, found.documentation)
    return {"signatures": [made], "activeSignature": 0, "activeParameter": found.active}
