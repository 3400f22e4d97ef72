"""Who uses an arrow and what it uses, in whichever files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

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
from qvr_core.syntax.source import Cursor
from qvr_lsp.answers.other_files import file_at, importers
from qvr_lsp.documents import View
from qvr_lsp.features.document_symbols import KINDS
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from qvr_lsp.language_server import QvrLanguageServer


async def arrow_at(ls: QvrLanguageServer, view: View, cursor: Cursor) -> list[types.CallHierarchyItem] | None:
    """The arrow at a place; that of another file stands there."""
    elsewhere = callable_elsewhere(view.snapshot, cursor)
    if elsewhere is not None:
        found = await item_of(ls, elsewhere)
        return None if found is None else [found]
    symbol = callable_at(view.snapshot, cursor)
    return [item(view, symbol)] if symbol is not None else None


async def item_of(ls: QvrLanguageServer, shared: Shared) -> types.CallHierarchyItem | None:
    """A declaration of a file, which need not be open."""
    view = await file_at(ls, shared.location)
    symbol = None if view is None else symbol_named(view.snapshot, shared.name)
    return None if view is None or symbol is None else item(view, symbol)


def item(view: View, symbol: DocumentSymbol) -> types.CallHierarchyItem:
    kind, whole, name = types.SymbolKind(KINDS[symbol.kind]), view.range(symbol.range), view.range(symbol.name_range)
    return types.CallHierarchyItem(symbol.name, kind, view.uri, whole, name, detail=symbol.detail or None)


async def _file(ls: QvrLanguageServer, uri: str) -> View | None:
    """The file that an item is of."""
    document = ls.documents.find(uri)
    if document is not None:
        await document.wait_ready()
        return document.frozen()
    path = path_of(uri)
    return None if path is None else await file_at(ls, location_of_file(path))


async def calls_in(ls: QvrLanguageServer, of: types.CallHierarchyItem) -> list[types.CallHierarchyIncomingCall]:
    """Which lets and programs use the arrow, in its file and in those that import it."""
    home = await _file(ls, of.uri)
    if home is None:
        return []
    shared = Shared(home.snapshot.location, of.name)
    files = [home, *(await importers(ls, shared.location)).files]
    return [
        types.CallHierarchyIncomingCall(item(view, call.symbol), [view.range(place) for place in call.places])
        for view in files
        for call in callers(view.snapshot, shared)
    ]


async def calls_out(ls: QvrLanguageServer, of: types.CallHierarchyItem) -> list[types.CallHierarchyOutgoingCall]:
    """What the arrow uses, of its own file and of others; the places stand in the file that calls."""
    view = await _file(ls, of.uri)
    if view is None:
        return []
    found = [
        types.CallHierarchyOutgoingCall(item(view, call.symbol), [view.range(place) for place in call.places])
        for call in callees(view.snapshot, of.name)
    ]
    for shared, places in callees_elsewhere(view.snapshot, of.name).items():
        made = await item_of(ls, shared)
        if made is not None:
            found.append(types.CallHierarchyOutgoingCall(made, [view.range(place) for place in places]))
    return found
