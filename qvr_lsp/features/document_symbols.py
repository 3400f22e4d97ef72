"""textDocument/documentSymbol and workspace/symbol."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from qvr_core.ide.answers import DocumentSymbol
from qvr_core.ide.outline import outline
from qvr_lsp.documents import Document
from qvr_lsp.features.resolving import on_document
from qvr_lsp.positions import to_range
from qvr_lsp.rpc import Json
from qvr_lsp.uris import uri_of

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot
    from qvr_lsp.server import Server

KINDS = {
    "object": 23,
    "morphism": 12,
    "let": 12,
    "program": 6,
    "composition": 3,
    "deduction": 3,
    "site": 13,
    "binding": 14,
    "rule": 12,
    "operation": 25,
}
MAX_SYMBOLS = 500


@on_document
def document_symbols(server: Server, document: Document, params: Json) -> list[Json]:
    found = outline(document.snapshot)
    if server.client.has("textDocument.documentSymbol.hierarchicalDocumentSymbolSupport"):
        return [tree(document, symbol) for symbol in found]
    return [
        {
            "name": symbol.name,
            "kind": KINDS[symbol.kind],
            "location": {"uri": document.uri, "range": document.range(symbol.range)},
            **({"containerName": container} if container else {}),
        }
        for symbol, container in flat(found)
    ]


def tree(document: Document, symbol: DocumentSymbol) -> Json:
    made: Json = {
        "name": symbol.name,
        "kind": KINDS[symbol.kind],
        "range": document.range(symbol.range),
        "selectionRange": document.range(symbol.name_range),
        "children": [tree(document, child) for child in symbol.children],
    }
    return {**made, "detail": symbol.detail} if symbol.detail else made


def flat(symbols: tuple[DocumentSymbol, ...], container: str = "") -> Iterator[tuple[DocumentSymbol, str]]:
    for symbol in symbols:
        yield symbol, container
        yield from flat(symbol.children, symbol.name)


async def workspace_symbols(server: Server, params: Json) -> list[Json]:
    """Names of all files that hold the query's letters in their order."""
    query = str(params.get("query", "")).lower()
    found: list[Json] = []
    for document in list(server.documents):
        await document.wait_ready()
        found += _matching(server, document.uri, document.snapshot, query)
    for path in list(server.workspace.closed_files()):
        await asyncio.sleep(0)
        snapshot = server.workspace.closed_snapshot(path)
        if snapshot is not None:
            found += _matching(server, uri_of(path), snapshot, query)
        if len(found) > MAX_SYMBOLS:
            break
    return found[:MAX_SYMBOLS]


def _matching(server: Server, uri: str, snapshot: Snapshot, query: str) -> list[Json]:
    return [
        {
            "name": symbol.name,
            "kind": KINDS[symbol.kind],
            "location": {"uri": uri, "range": to_range(snapshot.lines, symbol.name_range, server.encoding)},
            **({"containerName": container} if container else {}),
        }
        for symbol, container in flat(outline(snapshot))
        if subsequence(query, symbol.name.lower())
    ]


def subsequence(query: str, name: str) -> bool:
    letters = iter(name)
    return all(letter in letters for letter in query)
