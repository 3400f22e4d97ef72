"""textDocument/prepareCallHierarchy and the calls in and out, in whichever files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from qvr_core.disk import location_of_file
from qvr_core.ide.answers import DocumentSymbol
from qvr_core.ide.imports.shared import Shared
from qvr_core.ide.navigation import (
    callable_at,
    callable_elsewhere,
    callees,
    callees_elsewhere,
    callers,
    symbol_named,
)
from qvr_core.syntax.source import Range
from qvr_lsp.documents import Document, View
from qvr_lsp.features.document_symbols import KINDS
from qvr_lsp.features.resolving import on_document
from qvr_lsp.other_files import file_at, importers
from qvr_lsp.rpc import Json
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from qvr_lsp.session import Session


@on_document
def prepare(session: Session, document: Document, params: Json) -> Any:
    cursor = document.cursor(params["position"])
    elsewhere = callable_elsewhere(document.snapshot, cursor)
    if elsewhere is not None:
        return prepare_elsewhere(session, elsewhere)
    symbol = callable_at(document.snapshot, cursor)
    return [item(document, symbol)] if symbol is not None else None


async def prepare_elsewhere(session: Session, shared: Shared) -> list[Json] | None:
    found = await item_of(session, shared)
    return None if found is None else [found]


async def item_of(session: Session, shared: Shared) -> Json | None:
    """A declaration of a file, which need not be open."""
    view = await file_at(session, shared.location)
    symbol = None if view is None else symbol_named(view.snapshot, shared.name)
    return None if view is None or symbol is None else item(view, symbol)


def item(view: View, symbol: DocumentSymbol) -> Json:
    made: Json = {
        "name": symbol.name,
        "kind": KINDS[symbol.kind],
        "uri": view.uri,
        "range": view.range(symbol.range),
        "selectionRange": view.range(symbol.name_range),
    }
    return {**made, "detail": symbol.detail} if symbol.detail else made


async def _file(session: Session, params: Json) -> View | None:
    """The file that an item is of."""
    uri = params["item"]["uri"]
    document = session.documents.find(uri)
    if document is not None:
        await document.wait_ready()
        return document.frozen()
    path = path_of(uri)
    return None if path is None else await file_at(session, location_of_file(path))


async def incoming(session: Session, params: Json) -> list[Json]:
    """Which lets and programs use the arrow, in its file and in those that import it."""
    home = await _file(session, params)
    if home is None:
        return []
    shared = Shared(home.snapshot.location, params["item"]["name"])
    files = [home, *(await importers(session, shared.location)).files]
    return [
        _side("from", item(view, call.symbol), view, call.places)
        for view in files
        for call in callers(view.snapshot, shared)
    ]


async def outgoing(session: Session, params: Json) -> list[Json]:
    """What the arrow uses, of its own file and of others."""
    view = await _file(session, params)
    if view is None:
        return []
    name = params["item"]["name"]
    found = [_side("to", item(view, call.symbol), view, call.places) for call in callees(view.snapshot, name)]
    for shared, places in callees_elsewhere(view.snapshot, name).items():
        made = await item_of(session, shared)
        found += [] if made is None else [_side("to", made, view, places)]
    return found


def _side(key: str, made: Json, view: View, places: Sequence[Range]) -> Json:
    """One side of a call; its places stand in the file that calls."""
    return {key: made, "fromRanges": [view.range(place) for place in places]}
