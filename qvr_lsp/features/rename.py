"""textDocument/rename and prepareRename."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from qvr_lsp.features.resolving import edits_in_thread_if_large, on_document
from qvr_lsp.language_server import QvrLanguageServer, server
from qvr_lsp.protocol import RequestFailed

if TYPE_CHECKING:
    from qvr_lsp.documents import Document, View


@server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
@on_document
def prepare(
    ls: QvrLanguageServer, document: Document, params: types.PrepareRenameParams
) -> types.PrepareRenamePlaceholder | None:
    """whether a name may be changed"""
    from qvr_core.ide.answers import Refusal
    from qvr_core.ide.edits.rename import prepare

    answer = prepare(document.snapshot, document.cursor(params.position))
    if isinstance(answer, Refusal):
        return None
    return types.PrepareRenamePlaceholder(document.range(answer[0]), answer[1])


@server.feature(types.TEXT_DOCUMENT_RENAME)
@on_document
def rename(ls: QvrLanguageServer, document: Document, params: types.RenameParams) -> Any:
    """a name everywhere, in qvr.toml too"""
    from qvr_core.ide.answers import Refusal
    from qvr_core.ide.imports.rename import to_rename
    from qvr_lsp.answers.renaming import rename_everywhere

    view = document.frozen()
    shared = to_rename(view.snapshot, view.cursor(params.position))
    if isinstance(shared, Refusal):
        raise RequestFailed(shared.message)
    if shared is None:
        return inside(ls, document, params)
    return rename_everywhere(ls, view, shared, params.new_name)


@edits_in_thread_if_large
def inside(ls: QvrLanguageServer, document: View, params: types.RenameParams) -> types.WorkspaceEdit:
    from qvr_lsp.answers.renaming import rename_here

    return rename_here(ls, document, document.cursor(params.position), params.new_name)
