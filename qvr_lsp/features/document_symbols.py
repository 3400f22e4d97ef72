"""textDocument/documentSymbol and workspace/symbol.  Answers are prepared: a large file has thousands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from lsprotocol import types

from qvr_lsp.features.resolving import in_thread_if_large, on_document, run_in_thread
from qvr_lsp.json_values import Json
from qvr_lsp.language_server import QvrLanguageServer, server

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot
    from qvr_core.ide.answers import DocumentSymbol
    from qvr_core.syntax.source import Range
    from qvr_lsp.documents import View

KINDS = {
    "object": 23,
    "morphism": 12,
    "let": 12,
    "program": 6,
    "composition": 3,
    "deduction": 3,
    "function": 12,
    "distribution": 5,
    "transformation": 12,
    "data type": 10,
    "encoder": 12,
    "decoder": 12,
    "constructor": 22,
    "data": 8,
    "site": 13,
    "binding": 14,
    "rule": 12,
    "operation": 25,
}
MAX_SYMBOLS = 500


@server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, types.DocumentSymbolOptions(label="QVR"))
@on_document
@in_thread_if_large
def document_symbols(ls: QvrLanguageServer, document: View, params: types.DocumentSymbolParams) -> list[Json]:
    """the outline"""
    from qvr_core.ide.outline_and_folding import outline

    found, where = outline(document.snapshot), document.range_json
    if ls.has("text_document.document_symbol.hierarchical_document_symbol_support"):
        return [tree(where, symbol) for symbol in found]
    return [
        {
            "name": symbol.name,
            "kind": KINDS[symbol.kind],
            "location": {"uri": document.uri, "range": where(symbol.range)},
            **({"containerName": container} if container else {}),
        }
        for symbol, container in flat(tuple(found))
    ]


def tree(where: Callable[[Range], Json], symbol: DocumentSymbol) -> Json:
    made: Json = {
        "name": symbol.name,
        "kind": KINDS[symbol.kind],
        "range": where(symbol.range),
        "selectionRange": where(symbol.name_range),
        "children": [tree(where, child) for child in symbol.children],
    }
    return {**made, "detail": symbol.detail} if symbol.detail else made


def flat(symbols: tuple[DocumentSymbol, ...], container: str = "") -> Iterator[tuple[DocumentSymbol, str]]:
    for symbol in symbols:
        yield symbol, container
        yield from flat(symbol.children, symbol.name)


@server.feature(types.WORKSPACE_SYMBOL)
async def workspace_symbols(ls: QvrLanguageServer, params: types.WorkspaceSymbolParams) -> list[Json]:
    """names of every file of the folders

    Those that hold the query's letters in their order."""
    from qvr_lsp.uris import uri_of

    query = params.query.lower()
    found: list[Json] = []
    for document in list(ls.documents):
        await document.wait_ready()
        found += await run_in_thread(partial(_matching, ls, document.uri, document.snapshot, query))
    for path in list(ls.workspace.closed_files()):
        snapshot = await run_in_thread(partial(ls.workspace.closed_snapshot, path))
        if snapshot is not None:
            found += await run_in_thread(partial(_matching, ls, uri_of(path), snapshot, query))
        if len(found) > MAX_SYMBOLS:
            break
    return found[:MAX_SYMBOLS]


def _matching(ls: QvrLanguageServer, uri: str, snapshot: Snapshot, query: str) -> list[Json]:
    from qvr_core.ide.outline_and_folding import outline

    return [
        {
            "name": symbol.name,
            "kind": KINDS[symbol.kind],
            "location": {"uri": uri, "range": ls.codec.range_json(snapshot.lines, symbol.name_range)},
            **({"containerName": container} if container else {}),
        }
        for symbol, container in flat(outline(snapshot))
        if subsequence(query, symbol.name.lower())
    ]


def subsequence(query: str, name: str) -> bool:
    letters = iter(name)
    return all(letter in letters for letter in query)
