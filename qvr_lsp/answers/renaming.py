"""A name changed across files.  qvr.toml is kept in step."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcContentModified

from qvr_core.ide.answers import Refusal, TextEdit
from qvr_core.ide.edits.rename import rename as ask
from qvr_core.ide.imports.rename import rename_at_home, rename_in_importer
from qvr_core.ide.imports.shared import Shared, uses
from qvr_core.ide.symbols import Found
from qvr_core.ide.target import symbol_at
from qvr_core.semantics.modules.paths import shown
from qvr_core.syntax.source import Cursor
from qvr_lsp.answers.other_files import ClosedFile, file_at, importers
from qvr_lsp.documents import Document, View
from qvr_lsp.features.formatting import text_edits
from qvr_lsp.features.resolving import require_unchanged, run_in_thread
from qvr_lsp.protocol import RequestFailed
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot
    from qvr_lsp.language_server import QvrLanguageServer


def rename_here(ls: QvrLanguageServer, document: View, cursor: Cursor, new: str) -> types.WorkspaceEdit:
    """What other files cannot name."""
    answer = ask(document.snapshot, cursor, new)
    if isinstance(answer, Refusal):
        raise RequestFailed(answer.message)
    edits = FileEdits(ls)
    edits.add(document, answer)
    found, path = symbol_at(document.snapshot, cursor), path_of(document.uri)
    if path is not None and found is not None:
        edits.add_settings(in_settings(ls, document.snapshot, path, found, new))
    return edits.answer()


async def rename_everywhere(ls: QvrLanguageServer, view: View, shared: Shared, new: str) -> types.WorkspaceEdit:
    """The declaration and all its users, in one edit: every file in which it has a name, open or below the folders."""
    edits = FileEdits(ls)
    home = view if shared.location == view.snapshot.location else await file_at(ls, shared.location)
    if home is None:
        raise RequestFailed(f"{shown(shared.location)} cannot be read.")
    users = await importers(ls, shared.location)
    if not users.complete:
        raise RequestFailed("The folders hold more programs than are looked through for one answer.")

    def collect() -> types.WorkspaceEdit:
        edits.add(home, rename_at_home(home.snapshot, shared, new))
        for each in users.files:
            edits.add(each, rename_in_importer(each.snapshot, shared, new))
        path = path_of(home.uri)
        if path is not None and not shared.member:
            declared = uses(home.snapshot, shared)
            edits.add_settings(in_settings(ls, home.snapshot, path, declared[0], new) if declared else {})
        return edits.answer()

    if new == shared.last:
        return edits.answer()
    answer = await run_in_thread(collect)
    edits.require_unchanged()
    return answer


class FileEdits:
    """One workspace edit of several files, with the versions of those that are open."""

    def __init__(self, ls: QvrLanguageServer) -> None:
        self._ls = ls
        self._changes: dict[str, tuple[int | None, list[types.TextEdit]]] = {}
        self._open: list[tuple[Document, int]] = []

    def add(self, view: View, edits: Sequence[TextEdit] | Refusal) -> None:
        """Edits of a file.  Raises `RequestFailed` where they cannot be, or where it may not be written."""
        if isinstance(edits, Refusal):
            raise RequestFailed(edits.message)
        if not edits:
            return
        if isinstance(view, ClosedFile):
            self._require_writable(view)
        else:
            document = self._ls.documents.find(view.uri)
            if document is None or document.version != view.version:
                raise JsonRpcContentModified("the text was edited meanwhile")
            self._open.append((document, document.edits))
        self._changes[view.uri] = (view.version, text_edits(view, edits))

    def _require_writable(self, file: ClosedFile) -> None:
        if not any(file.path.is_relative_to(folder) for folder in self._ls.workspace.paths):
            raise RequestFailed(f"{file.path} is outside of the folders that are open: open the file first.")
        if not os.access(file.path, os.W_OK):
            raise RequestFailed(f"{file.path.name} may not be written.")

    def add_settings(self, changes: dict[str, list[types.TextEdit]]) -> None:
        """Edits of qvr.toml, by URI."""
        for uri, edits in changes.items():
            held = self._ls.workspace.settings_document(uri)
            self._changes[uri] = (None if held is None else held.version, edits)

    def require_unchanged(self) -> None:
        """Raises ContentModified where an open file was changed since its edits were made."""
        for document, edits in self._open:
            require_unchanged(document, edits)

    def answer(self) -> types.WorkspaceEdit:
        if not self._ls.has("workspace.workspace_edit.document_changes"):
            return types.WorkspaceEdit(changes={uri: edits for uri, (_, edits) in self._changes.items()})
        return types.WorkspaceEdit(
            document_changes=[
                types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri, version), edits)
                for uri, (version, edits) in self._changes.items()
            ]
        )


def in_settings(
    ls: QvrLanguageServer, snapshot: Snapshot, path: Path, found: Found, new: str
) -> dict[str, list[types.TextEdit]]:
    """What the renaming changes in qvr.toml: the tables of a program, the columns of a site or data name."""
    from qvr_lsp.answers.settings_file import rename_column, rename_table

    name = found.symbol.name
    match found.symbol.kind:
        case "program":
            return rename_table(ls, path, name, new)
        case "site":
            owners = [declared.text for declared in found.statement.header.unit.declares]
            return rename_column(ls, path, owners, name, new)
        case "data":
            return rename_column(ls, path, snapshot.model.programs, name, new)
        case _:
            return {}
