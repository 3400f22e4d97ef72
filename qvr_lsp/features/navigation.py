"""definition, declaration, typeDefinition, references, documentHighlight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qvr_core.ide import navigation as ask
from qvr_core.ide.target import symbol_at
from qvr_core.syntax.source import Range
from qvr_lsp.documents import View
from qvr_lsp.features.resolving import in_thread_if_large, on_document, on_part
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
    return locations(document, ask.type_definition(document.snapshot, document.cursor(params["position"])))


@on_document
@in_thread_if_large
def references(session: Session, document: View, params: Json) -> list[Json]:
    declaration = bool((params.get("context") or {}).get("includeDeclaration", True))
    cursor = document.cursor(params["position"])
    return locations(document, ask.find_references(document.snapshot, cursor, declaration=declaration))


@on_document
@in_thread_if_large
def highlights(session: Session, document: View, params: Json) -> list[Json]:
    found = ask.highlights(document.snapshot, document.cursor(params["position"]))
    return [{"range": document.range(item.range), "kind": 3 if item.write else 2} for item in found]
