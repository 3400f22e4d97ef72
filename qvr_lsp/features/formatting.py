"""formatting, rangeFormatting, onTypeFormatting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.ide.edits.formatting import edits, indentation
from qvr_lsp.documents import Document, View
from qvr_lsp.features.resolving import edits_in_thread_if_large, on_document
from qvr_lsp.rpc import Json

if TYPE_CHECKING:
    from qvr_core.ide.answers import TextEdit
    from qvr_lsp.session import Session


def edits_json(document: View, found: list[TextEdit]) -> list[Json]:
    return [{"range": document.range(item.range), "newText": item.text} for item in found]


@on_document
@edits_in_thread_if_large
def whole(session: Session, document: View, params: Json) -> list[Json]:
    return edits_json(document, edits(document.snapshot))


@on_document
def partial(session: Session, document: Document, params: Json) -> list[Json]:
    stretch = document.stretch(params["range"])
    return edits_json(document, edits(document.snapshot, stretch.start.line, stretch.end.line))


@on_document
def on_type(session: Session, document: Document, params: Json) -> list[Json]:
    """After a line end: the indentation that the new line should have."""
    return edits_json(document, indentation(document.snapshot, document.cursor(params["position"])))
