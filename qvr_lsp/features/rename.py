"""textDocument/rename and prepareRename, across files.  qvr.toml is kept in step."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qvr_core.ide.answers import Refusal, TextEdit
from qvr_core.ide.edits.rename import prepare as ask_prepare
from qvr_core.ide.edits.rename import rename as ask
from qvr_core.ide.imports.rename import rename_at_home, rename_in_importer, to_rename
from qvr_core.ide.imports.shared import Shared, uses
from qvr_core.ide.symbols import Found
from qvr_core.ide.target import symbol_at
from qvr_core.semantics.modules.paths import shown
from qvr_lsp.documents import Document, View
from qvr_lsp.features.resolving import edits_in_thread_if_large, on_document, require_unchanged, run_in_thread
from qvr_lsp.other_files import ClosedFile, file_at, importers
from qvr_lsp.rpc import CONTENT_MODIFIED, REQUEST_FAILED, Json, RpcError
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot
    from qvr_lsp.session import Session


@on_document
def prepare(session: Session, document: Document, params: Json) -> Json | None:
    answer = ask_prepare(document.snapshot, document.cursor(params["position"]))
    if isinstance(answer, Refusal):
        return None
    return {"range": document.range(answer[0]), "placeholder": answer[1]}


@on_document
def rename(session: Session, document: Document, params: Json) -> Any:
    view = document.frozen()
    shared = to_rename(view.snapshot, view.cursor(params["position"]))
    if isinstance(shared, Refusal):
        raise RpcError(REQUEST_FAILED, shared.message)
    if shared is None:
        return rename_here(session, document, params)
    return rename_everywhere(session, view, shared, params)


@edits_in_thread_if_large
def rename_here(session: Session, document: View, params: Json) -> Json:
    """What other files cannot name."""
    cursor, new = document.cursor(params["position"]), str(params["newName"])
    answer = ask(document.snapshot, cursor, new)
    if isinstance(answer, Refusal):
        raise RpcError(REQUEST_FAILED, answer.message)
    edits = FileEdits(session)
    edits.add(document, answer)
    found, path = symbol_at(document.snapshot, cursor), path_of(document.uri)
    if path is not None and found is not None:
        edits.add_settings(in_settings(session, document.snapshot, path, found, new))
    return edits.answer()


async def rename_everywhere(session: Session, view: View, shared: Shared, params: Json) -> Json:
    """The declaration and all its users, in one edit: every file in which it has a name, open or below the folders."""
    new, edits = str(params["newName"]), FileEdits(session)
    home = view if shared.location == view.snapshot.location else await file_at(session, shared.location)
    if home is None:
        raise RpcError(REQUEST_FAILED, f"{shown(shared.location)} cannot be read.")
    users = await importers(session, shared.location)
    if not users.complete:
        raise RpcError(REQUEST_FAILED, "The folders hold more programs than are looked through for one answer.")

    def collect() -> Json:
        edits.add(home, rename_at_home(home.snapshot, shared, new))
        for each in users.files:
            edits.add(each, rename_in_importer(each.snapshot, shared, new))
        path = path_of(home.uri)
        if path is not None and not shared.member:
            declared = uses(home.snapshot, shared)
            edits.add_settings(in_settings(session, home.snapshot, path, declared[0], new) if declared else {})
        return edits.answer()

    if new == shared.last:
        return edits.answer()
    answer = await run_in_thread(collect)
    edits.require_unchanged()
    return answer


class FileEdits:
    """One workspace edit of several files, with the versions of those that are open."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._changes: dict[str, tuple[int | None, list[Json]]] = {}
        self._open: list[tuple[Document, int]] = []

    def add(self, view: View, edits: Sequence[TextEdit] | Refusal) -> None:
        """Edits of a file.  Raises RpcError where they cannot be, or where it may not be written."""
        if isinstance(edits, Refusal):
            raise RpcError(REQUEST_FAILED, edits.message)
        if not edits:
            return
        if isinstance(view, ClosedFile):
            self._require_writable(view)
        else:
            document = self._session.documents.find(view.uri)
            if document is None or document.version != view.version:
                raise RpcError(CONTENT_MODIFIED, "the text was edited meanwhile")
            self._open.append((document, document.edits))
        changes = [{"range": view.range(edit.range), "newText": edit.text} for edit in edits]
        self._changes[view.uri] = (view.version, changes)

    def _require_writable(self, file: ClosedFile) -> None:
        if not any(file.path.is_relative_to(folder) for folder in self._session.workspace.folders):
            raise RpcError(REQUEST_FAILED, f"{file.path} is outside of the folders that are open: open the file first.")
        if not os.access(file.path, os.W_OK):
            raise RpcError(REQUEST_FAILED, f"{file.path.name} may not be written.")

    def add_settings(self, changes: dict[str, list[Json]]) -> None:
        """Edits of qvr.toml, by URI."""
        for uri, edits in changes.items():
            held = self._session.workspace.settings_document(uri)
            self._changes[uri] = (None if held is None else held.version, edits)

    def require_unchanged(self) -> None:
        """Raises ContentModified where an open file was changed since its edits were made."""
        for document, edits in self._open:
            require_unchanged(document, edits)

    def answer(self) -> Json:
        if not self._session.client.has("workspace.workspaceEdit.documentChanges"):
            return {"changes": {uri: edits for uri, (_, edits) in self._changes.items()}}
        return {
            "documentChanges": [
                {"textDocument": {"uri": uri, "version": version}, "edits": edits}
                for uri, (version, edits) in self._changes.items()
            ]
        }


def in_settings(session: Session, snapshot: Snapshot, path: Path, found: Found, new: str) -> dict[str, list[Json]]:
    """What the renaming changes in qvr.toml: the tables of a program, the columns of a site or data name."""
    from qvr_lsp.features.settings_file import rename_column, rename_table

    name = found.symbol.name
    match found.symbol.kind:
        case "program":
            return rename_table(session, path, name, new)
        case "site":
            owners = [declared.text for declared in found.statement.header.unit.declares]
            return rename_column(session, path, owners, name, new)
        case "data":
            return rename_column(session, path, snapshot.model.programs, name, new)
        case _:
            return {}
