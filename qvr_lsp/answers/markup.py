"""Answers in the format that the editor asks for: the one place where prose becomes Markdown or plain text."""

from __future__ import annotations

from typing import Any, Protocol

from lsprotocol import types

from qvr_core.ide.prose import RENDERERS, Prose

HOVER = "text_document.hover.content_format"
COMPLETION = "text_document.completion.completion_item.documentation_format"
SIGNATURE = "text_document.signature_help.signature_information.documentation_format"


class Capabilities(Protocol):
    """What an editor can do, asked by path."""

    def get(self, path: str) -> Any: ...


def markup(client: Capabilities, formats: str, answer: Prose) -> types.MarkupContent:
    """Prose in the first format that the editor lists under `formats`, else in Markdown."""
    kinds: list[types.MarkupKind] = client.get(formats) or []
    kind = next((kind for kind in kinds if kind.value in RENDERERS), types.MarkupKind.Markdown)
    return types.MarkupContent(kind, RENDERERS[kind.value](answer))
