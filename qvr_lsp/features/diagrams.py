"""qvr/diagram."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qvr_lsp.features.resolving import on_document
from qvr_lsp.language_server import QvrLanguageServer, server
from qvr_lsp.messages import DiagramParams

if TYPE_CHECKING:
    from qvr_lsp.documents import Document


@server.feature("qvr/diagram")
@on_document
def diagram(ls: QvrLanguageServer, document: Document, params: DiagramParams) -> Any:
    """a diagram; see there"""
    from qvr_lsp.answers.diagrams import diagram_of

    return diagram_of(ls, document, params)
