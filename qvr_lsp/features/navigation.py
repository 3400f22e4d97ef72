"""definition, declaration, typeDefinition, references, documentHighlight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from qvr_lsp.features.resolving import in_thread_if_large, on_document, on_part, run_in_thread
from qvr_lsp.language_server import QvrLanguageServer, server

if TYPE_CHECKING:
    from qvr_core.ide.imports.shared import Shared
    from qvr_core.syntax.source import Range
    from qvr_lsp.documents import Document, View


def locations(document: View, ranges: Sequence[Range]) -> list[types.Location]:
    return [document.place(stretch) for stretch in ranges]


@server.feature(types.TEXT_DOCUMENT_DEFINITION)
@on_part(in_settings="settings_file:definition")
def definition(
    ls: QvrLanguageServer, document: View, params: types.DefinitionParams | types.DeclarationParams
) -> list[types.Location]:
    """where a name is declared, in whichever file"""
    from qvr_core.ide import navigation
    from qvr_core.ide.target import symbol_at
    from qvr_lsp.answers.other_files import location_of
    from qvr_lsp.uris import path_of

    cursor = document.cursor(params.position)
    found = locations(document, navigation.definition(document.snapshot, cursor))
    elsewhere = navigation.definition_elsewhere(document.snapshot, cursor)
    if elsewhere is not None:
        return [location_of(ls, elsewhere)]
    symbol = symbol_at(document.snapshot, cursor)
    path = path_of(document.uri)
    if symbol is None or path is None or symbol.symbol.kind != "data":
        return found
    # A data name is also declared where qvr.toml says which column it is.
    from qvr_lsp.answers.settings_file import column_places

    programs = document.snapshot.model.programs
    return [*found, *column_places(ls, path, programs, symbol.symbol.name)]


@server.feature(types.TEXT_DOCUMENT_DECLARATION)
def declaration(ls: QvrLanguageServer, params: types.DeclarationParams) -> Any:
    """the same"""
    return definition(ls, params)


@server.feature(types.TEXT_DOCUMENT_TYPE_DEFINITION)
@on_part
def type_definition(ls: QvrLanguageServer, document: View, params: types.TypeDefinitionParams) -> list[types.Location]:
    """the objects of its type"""
    from qvr_core.ide import navigation
    from qvr_lsp.answers.other_files import location_of

    snapshot, cursor = document.snapshot, document.cursor(params.position)
    elsewhere = [location_of(ls, place) for place in navigation.type_elsewhere(snapshot, cursor)]
    return [*locations(document, navigation.type_definition(snapshot, cursor)), *elsewhere]


@server.feature(types.TEXT_DOCUMENT_REFERENCES)
@on_document
def references(ls: QvrLanguageServer, document: Document, params: types.ReferenceParams) -> Any:
    """all uses of a name, in files that import it too"""
    from qvr_core.ide.imports.shared import shared_at

    view = document.frozen()
    shared = shared_at(view.snapshot, view.cursor(params.position))
    if shared is None or shared.inside:
        return references_here(ls, document, params)
    return references_everywhere(ls, view, shared, declaration=params.context.include_declaration)


@in_thread_if_large
def references_here(ls: QvrLanguageServer, document: View, params: types.ReferenceParams) -> list[types.Location]:
    from qvr_core.ide.navigation import find_references

    cursor, declaration = document.cursor(params.position), params.context.include_declaration
    return locations(document, find_references(document.snapshot, cursor, declaration=declaration))


async def references_everywhere(
    ls: QvrLanguageServer, view: View, shared: Shared, *, declaration: bool
) -> list[types.Location]:
    """The uses of a declaration in its own file and in those that import it; those of the file that asks come first."""
    from qvr_core.ide.navigation import places
    from qvr_lsp.answers.other_files import file_at, importers

    home = view if shared.location == view.snapshot.location else await file_at(ls, shared.location)
    others = [each for each in (await importers(ls, shared.location)).files if each.uri != view.uri]
    files = {each.uri: each for each in (view, home, *others) if each is not None}

    def found() -> list[types.Location]:
        return [
            place
            for each in files.values()
            for place in locations(each, places(each.snapshot, shared, declaration=declaration))
        ]

    return await run_in_thread(found)


@server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
@on_document
@in_thread_if_large
def highlights(
    ls: QvrLanguageServer, document: View, params: types.DocumentHighlightParams
) -> list[types.DocumentHighlight]:
    """the same, as reads and writes"""
    from qvr_core.ide.navigation import highlights

    read, write = types.DocumentHighlightKind.Read, types.DocumentHighlightKind.Write
    found = highlights(document.snapshot, document.cursor(params.position))
    return [types.DocumentHighlight(document.range(item.range), write if item.write else read) for item in found]
