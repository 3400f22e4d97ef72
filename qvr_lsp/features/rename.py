"""textDocument/rename and prepareRename.  A program's table in qvr.toml is renamed with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.ide.answers import Refusal
from qvr_core.ide.rename import prepare as ask_prepare
from qvr_core.ide.rename import rename as ask
from qvr_core.ide.symbols import symbol_at
from qvr_lsp.documents import Document
from qvr_lsp.features.resolving import on_document
from qvr_lsp.rpc import REQUEST_FAILED, Json, RpcError
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from qvr_lsp.server import Server


@on_document
def prepare(server: Server, document: Document, params: Json) -> Json | None:
    answer = ask_prepare(document.snapshot, document.cursor(params["position"]))
    if isinstance(answer, Refusal):
        return None
    return {"range": document.range(answer[0]), "placeholder": answer[1]}


@on_document
def rename(server: Server, document: Document, params: Json) -> Json:
    cursor = document.cursor(params["position"])
    answer = ask(document.snapshot, cursor, str(params["newName"]))
    if isinstance(answer, Refusal):
        raise RpcError(REQUEST_FAILED, answer.message)
    changes = {document.uri: [{"range": document.range(edit.range), "newText": edit.text} for edit in answer]}
    found = symbol_at(document.snapshot, cursor)
    path = path_of(document.uri)
    if found is not None and found.symbol.kind == "program" and path is not None:
        from qvr_lsp.features.settings_file import rename_table

        changes.update(rename_table(server, path, found.symbol.name, str(params["newName"])))
    return {"changes": changes}
