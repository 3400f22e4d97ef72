"""definition, declaration, typeDefinition, references, documentHighlight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from qvr_core.ide import navigation as ask
from qvr_core.ide.imports.shared import Shared, shared_at
from qvr_core.ide.target import symbol_at
from qvr_core.syntax.source import Range
from qvr_lsp.documents import Document, View
from qvr_lsp.features.resolving import in_thread_if_large, on_document, on_part, run_in_thread
from qvr_lsp.other_files import file_at, importers, location_json
from qvr_lsp.rpc import Json
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from qvr_lsp.session import Session


def locations(document: View, ranges: Sequence[Range]) -> list[Json]:
    return [{"uri": document.uri, "range": document.range(stretch)} for stretch in ranges]


@on_part
def definition(session: Session, document: View, params: Json) -> list[Json]:
    cursor = document.cursor(params["position"])
    found = locations(document, ask.definition(document.snapshot, cursor))
    elsewhere = ask.definition_elsewhere(document.snapshot, cursor)
    if elsewhere is not None:
        return [location_json(session, elsewhere)]
    symbol = symbol_at(document.snapshot, cursor)
    path = path_of(document.uri)
    if symbol is None or path is None or symbol.symbol.kind != "data":
        return found
    # A data name is also declared where qvr.toml says which column it is.
    from qvr_lsp.features.settings_file import column_places

    programs = document.snapshot.model.programs
    return [*found, *column_places(session, path, programs, symbol.symbol.name)]


@on_part
def type_definition(session: Session, document: View, params: Json) -> list[Json]:
    snapshot, cursor = document.snapshot, document.cursor(params["position"])
    elsewhere = [location_json(session, place) for place in ask.type_elsewhere(snapshot, cursor)]
    return [*locations(document, ask.type_definition(snapshot, cursor)), *elsewhere]


@on_document
def references(session: Session, document: Document, params: Json) -> Any:
    view = document.frozen()
    shared = shared_at(view.snapshot, view.cursor(params["position"]))
    if shared is None or shared.inside:
        return references_here(session, document, params)
    return references_everywhere(session, view, shared, declaration=_with_declaration(params))


@in_thread_if_large
def references_here(session: Session, document: View, params: Json) -> list[Json]:
    cursor = document.cursor(params["position"])
    return locations(document, ask.find_references(document.snapshot, cursor, declaration=_with_declaration(params)))


def _with_declaration(params: Json) -> bool:
    return bool((params.get("context") or {}).get("includeDeclaration", True))


async def references_everywhere(session: Session, view: View, shared: Shared, *, declaration: bool) -> list[Json]:
    """The uses of a declaration in its own file and in those that import it; those of the file that asks come first."""
    home = view if shared.location == view.snapshot.location else await file_at(session, shared.location)
    others = [each for each in (await importers(session, shared.location)).files if each.uri != view.uri]
    files = {each.uri: each for each in (view, home, *others) if each is not None}

    def found() -> list[Json]:
        return [
            place
            for each in files.values()
            for place in locations(each, ask.places(each.snapshot, shared, declaration=declaration))
        ]

    return await run_in_thread(found)


@on_document
@in_thread_if_large
def highlights(session: Session, document: View, params: Json) -> list[Json]:
    found = ask.highlights(document.snapshot, document.cursor(params["position"]))
    return [{"range": document.range(item.range), "kind": 3 if item.write else 2} for item in found]
