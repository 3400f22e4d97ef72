"""foldingRange, selectionRange, linkedEditingRange."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from qvr_lsp.features.resolving import in_thread_if_large, on_document, on_part
from qvr_lsp.language_server import QvrLanguageServer, server

if TYPE_CHECKING:
    from qvr_lsp.documents import Document, View


@server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
@on_document
@in_thread_if_large
def folding(ls: QvrLanguageServer, document: View, params: types.FoldingRangeParams) -> list[types.FoldingRange]:
    """blocks and comments"""
    from qvr_core.ide.outline_and_folding import folds

    limit = ls.get("text_document.folding_range.range_limit") or 5000
    return [
        types.FoldingRange(first, last, kind=kind or None) for first, last, kind in folds(document.snapshot)[:limit]
    ]


@server.feature(types.TEXT_DOCUMENT_SELECTION_RANGE)
@on_part
def selection(ls: QvrLanguageServer, document: View, params: types.SelectionRangeParams) -> list[types.SelectionRange]:
    """ever larger parts around a place"""
    return [_chain(document, position) for position in params.positions]


def _chain(document: View, position: types.Position) -> types.SelectionRange:
    from qvr_core.ide.outline_and_folding import selections

    outermost, *inner = reversed(selections(document.snapshot, document.cursor(position)))
    found = types.SelectionRange(document.range(outermost))
    for stretch in inner:
        found = types.SelectionRange(document.range(stretch), parent=found)
    return found


@server.feature(types.TEXT_DOCUMENT_LINKED_EDITING_RANGE)
@on_document
def linked_editing(
    ls: QvrLanguageServer, document: Document, params: types.LinkedEditingRangeParams
) -> types.LinkedEditingRanges | None:
    """places that are typed together"""
    from qvr_core.ide.navigation import linked

    found = linked(document.snapshot, document.cursor(params.position))
    if len(found) < 2:
        return None
    return types.LinkedEditingRanges([document.range(stretch) for stretch in found], "[A-Za-z_][A-Za-z0-9_]*")
