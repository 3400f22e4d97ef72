"""Answers in the format that the editor asks for: the one place where prose becomes Markdown or plain text."""

from __future__ import annotations

from typing import Any, Protocol

from qvr_core.ide.prose import RENDERERS, Prose
from qvr_lsp.rpc import Json

HOVER = "textDocument.hover.contentFormat"
COMPLETION = "textDocument.completion.completionItem.documentationFormat"
SIGNATURE = "textDocument.signatureHelp.signatureInformation.documentationFormat"


class Capabilities(Protocol):
    """What an editor can do, asked by path."""

    def get(self, path: str, default: Any = None) -> Any: ...


def markup(client: Capabilities, formats: str, answer: Prose) -> Json:
    """Prose as `MarkupContent`: in the first format that the editor lists under `formats`, else in Markdown."""
    offered = client.get(formats)
    kinds = offered if isinstance(offered, list) else []
    kind = next((kind for kind in kinds if isinstance(kind, str) and kind in RENDERERS), "markdown")
    return {"kind": kind, "value": RENDERERS[kind](answer)}
