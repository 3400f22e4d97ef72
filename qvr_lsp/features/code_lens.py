"""textDocument/codeLens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from qvr_lsp.features.resolving import on_document
from qvr_lsp.language_server import QvrLanguageServer, server

if TYPE_CHECKING:
    from qvr_lsp.documents import Document


@server.feature(types.TEXT_DOCUMENT_CODE_LENS)
@on_document
def code_lens(ls: QvrLanguageServer, document: Document, params: types.CodeLensParams) -> list[types.CodeLens]:
    """run, diagram, parameters, the last run"""
    if not ls.settings.code_lens:
        return []
    from qvr_lsp.answers.lenses import lenses_of

    return lenses_of(ls, document)
