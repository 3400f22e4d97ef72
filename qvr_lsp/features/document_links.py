"""textDocument/documentLink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from qvr_lsp.features.resolving import on_document
from qvr_lsp.language_server import QvrLanguageServer, server

if TYPE_CHECKING:
    from qvr_lsp.documents import Document


@server.feature(types.TEXT_DOCUMENT_DOCUMENT_LINK)
@on_document(in_settings="settings_file:links")
def document_links(
    ls: QvrLanguageServer, document: Document, params: types.DocumentLinkParams
) -> list[types.DocumentLink]:
    """imports, data files, addresses, pages of codes"""
    from qvr_lsp.answers.links import links_of

    return links_of(ls, document)
