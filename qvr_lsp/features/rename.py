"""textDocument/rename and prepareRename.  qvr.toml is kept in step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Refusal
from qvr_core.ide.edits.rename import prepare as ask_prepare
from qvr_core.ide.edits.rename import rename as ask
from qvr_core.ide.symbols import GLOBAL_KINDS
from qvr_core.ide.target import symbol_at
from qvr_core.semantics.modules.paths import shown
from qvr_core.syntax.source import Cursor
from qvr_lsp.documents import Document, View
from qvr_lsp.features.resolving import edits_in_thread_if_large, on_document
from qvr_lsp.rpc import REQUEST_FAILED, Json, RpcError
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from qvr_lsp.session import Session


@on_document
def prepare(session: Session, document: Document, params: Json) -> Json | None:
    answer = ask_prepare(document.snapshot, document.cursor(params["position"]))
    if isinstance(answer, Refusal):
        return None
    return {"range": document.range(answer[0]), "placeholder": answer[1]}


@on_document
@edits_in_thread_if_large
def rename(session: Session, document: View, params: Json) -> Json:
    cursor = document.cursor(params["position"])
    if (other := other_file(session, document, cursor)) is not None:
        raise RpcError(REQUEST_FAILED, other)
    answer = ask(document.snapshot, cursor, str(params["newName"]))
    if isinstance(answer, Refusal):
        raise RpcError(REQUEST_FAILED, answer.message)
    changes = {document.uri: [{"range": document.range(edit.range), "newText": edit.text} for edit in answer]}
    path = path_of(document.uri)
    if path is not None:
        changes.update(in_settings(session, document, path, cursor, str(params["newName"])))
    return {"changes": changes}


def other_file(session: Session, document: View, cursor: Cursor) -> str | None:
    """Why a name cannot be given in this file alone: another one declares it, or imports it from here."""
    found = symbol_at(document.snapshot, cursor)
    if found is None or (found.symbol.kind not in GLOBAL_KINDS and found.symbol.target is None):
        return None
    name = found.symbol.name
    if (target := found.symbol.target) is not None:
        return f"`{name}` is declared in {shown(target[0])}: names are not renamed across files yet."
    path = path_of(document.uri)
    user = None if path is None else next(session.workspace.importers(path, name), None)
    return None if user is None else f"{user} imports `{name}`: names are not renamed across files yet."


def in_settings(session: Session, document: View, path: Path, cursor: Cursor, new: str) -> dict[str, list[Json]]:
    """What the renaming changes in qvr.toml: the tables of a program, the columns of a site or data name."""
    from qvr_lsp.features.settings_file import rename_column, rename_table

    found = symbol_at(document.snapshot, cursor)
    if found is None:
        return {}
    name = found.symbol.name
    match found.symbol.kind:
        case "program":
            return rename_table(session, path, name, new)
        case "site":
            owners = [declared.text for declared in found.statement.header.unit.declares]
            return rename_column(session, path, owners, name, new)
        case "data":
            return rename_column(session, path, document.snapshot.model.programs, name, new)
        case _:
            return {}
