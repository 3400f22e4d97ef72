"""textDocument/codeAction: found and tried in a thread; they only fit the text that they were found in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from qvr_lsp.features.resolving import on_document, require_unchanged
from qvr_lsp.language_server import QvrLanguageServer, server
from qvr_lsp.serialising import Encoded, encoded_in_chunks

if TYPE_CHECKING:
    from qvr_lsp.documents import Document

KINDS = (
    types.CodeActionKind.QuickFix,
    types.CodeActionKind.RefactorExtract,
    types.CodeActionKind.RefactorInline,
    types.CodeActionKind.RefactorRewrite,
    types.CodeActionKind.SourceFixAll,
    "source.organize",
    types.CodeActionKind.SourceOrganizeImports,
)


@server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(KINDS, resolve_provider=False))
@on_document(in_settings="settings_problems:fixes")
async def code_actions(ls: QvrLanguageServer, document: Document, params: types.CodeActionParams) -> Encoded:
    """fixes, refactorings"""
    from qvr_lsp.answers.fixes import answer, data_fixes, fit_fixes

    edits, view = document.edits, document.frozen()
    opened = [(each.location, each.text) for each in ls.documents if each.ready]
    more = [*data_fixes(ls, document, params), *fit_fixes(ls, document, params)]
    found = await document.trials().use(
        lambda attempt: encoded_in_chunks([*answer(ls, view, params, attempt, opened), *more])
    )
    require_unchanged(document, edits)
    return found
