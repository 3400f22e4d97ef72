"""textDocument/documentSymbol and workspace/symbol."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from qvr_core.ide.answers import DocumentSymbol
from qvr_core.ide.outline import outline
from qvr_core.syntax.source import Range
from qvr_lsp.documents import View
from qvr_lsp.features.resolving import in_thread_if_large, on_document, run_in_thread
from qvr_lsp.positions import to_range
from qvr_lsp.rpc import Json
from qvr_lsp.uris import uri_of

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot
    from qvr_lsp.session import Session

KINDS = {
    "object": 23,
    "morphism": 12,
    "let": 12,
    "program": 6,
    "composition": 3,
    "deduction": 3,
    "function": 12,
    "distribution": 5,
    "data": 8,
    "site": 13,
    "binding": 14,
    "rule": 12,
    "operation": 25,
}
MAX_SYMBOLS = 500


@on_document
@in_thread_if_large
def document_symbols(session: Session, document: View, params: Json) -> list[Json]:
    found, where = outline(document.snapshot), document.range
    if session.client.has("textDocument.documentSymbol.hierarchicalDocumentSymbolSupport"):
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


async def workspace_symbols(session: Session, params: Json) -> list[Json]:
    """Names of all files that hold the query's letters in their order."""
    query = str(params.get("query", "")).lower()
    found: list[Json] = []
    for document in list(session.documents):
        await document.wait_ready()
        found += await run_in_thread(partial(_matching, session, document.uri, document.snapshot, query))
    for path in list(session.workspace.closed_files()):
        snapshot = await run_in_thread(partial(session.workspace.closed_snapshot, path))
        if snapshot is not None:
            found += await run_in_thread(partial(_matching, session, uri_of(path), snapshot, query))
        if len(found) > MAX_SYMBOLS:
            break
    return found[:MAX_SYMBOLS]


def _matching(session: Session, uri: str, snapshot: Snapshot, query: str) -> list[Json]:
    return [
        {
            "name": symbol.name,
            "kind": KINDS[symbol.kind],
            "location": {"uri": uri, "range": to_range(snapshot.lines, symbol.name_range, session.client.encoding)},
            **({"containerName": container} if container else {}),
        }
        for symbol, container in flat(outline(snapshot))
        if subsequence(query, symbol.name.lower())
    ]


def subsequence(query: str, name: str) -> bool:
    letters = iter(name)
    return all(letter in letters for letter in query)
