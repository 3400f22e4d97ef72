"""formatting, rangeFormatting, onTypeFormatting."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lsprotocol import types

from qvr_lsp.features.resolving import edits_in_thread_if_large, on_document
from qvr_lsp.language_server import QvrLanguageServer, server

if TYPE_CHECKING:
    from qvr_core.ide.answers import TextEdit
    from qvr_lsp.documents import Document, View


def text_edits(document: View, found: Iterable[TextEdit]) -> list[types.TextEdit]:
    return [types.TextEdit(document.range(item.range), item.text) for item in found]


@server.feature(types.TEXT_DOCUMENT_FORMATTING)
@on_document
@edits_in_thread_if_large
def whole(ls: QvrLanguageServer, document: View, params: types.DocumentFormattingParams) -> list[types.TextEdit]:
    """the whole text as it should be laid out"""
    from qvr_core.ide.edits.formatting import edits

    return text_edits(document, edits(document.snapshot))


@server.feature(types.TEXT_DOCUMENT_RANGE_FORMATTING)
@on_document
def partial(
    ls: QvrLanguageServer, document: Document, params: types.DocumentRangeFormattingParams
) -> list[types.TextEdit]:
    """some lines"""
    from qvr_core.ide.edits.formatting import edits

    stretch = document.stretch(params.range)
    return text_edits(document, edits(document.snapshot, stretch.start.line, stretch.end.line))


@server.feature(
    types.TEXT_DOCUMENT_ON_TYPE_FORMATTING, types.DocumentOnTypeFormattingOptions(first_trigger_character="\n")
)
@on_document
def on_type(
    ls: QvrLanguageServer, document: Document, params: types.DocumentOnTypeFormattingParams
) -> list[types.TextEdit]:
    """the indentation of a new line"""
    from qvr_core.ide.edits.formatting import indentation

    return text_edits(document, indentation(document.snapshot, document.cursor(params.position)))
