"""textDocument/signatureHelp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from qvr_lsp.features.resolving import on_part
from qvr_lsp.language_server import QvrLanguageServer, server

if TYPE_CHECKING:
    from qvr_lsp.documents import View


@server.feature(
    types.TEXT_DOCUMENT_SIGNATURE_HELP,
    types.SignatureHelpOptions(trigger_characters=list("(,["), retrigger_characters=[")"]),
)
@on_part
def signature_help(
    ls: QvrLanguageServer, document: View, params: types.SignatureHelpParams
) -> types.SignatureHelp | None:
    """the arguments of the call around"""
    from qvr_core.ide.completion.signature import signature
    from qvr_lsp.answers.markup import SIGNATURE, markup

    found = signature(document.snapshot, document.cursor(params.position))
    if found is None:
        return None
    parameters = [
        types.ParameterInformation(label, markup(ls, SIGNATURE, text) if text else None)
        for label, text in found.parameters
    ]
    documentation = markup(ls, SIGNATURE, found.documentation) if found.documentation else None
    made = types.SignatureInformation(found.label, documentation, parameters, active_parameter=found.active)
    return types.SignatureHelp([made], active_signature=0, active_parameter=found.active)
