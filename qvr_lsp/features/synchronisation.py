"""didChange, didClose, didSave, beside what the workspace does."""

from __future__ import annotations

from lsprotocol import types

from qvr_lsp.language_server import QvrLanguageServer, server


@server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
def did_change(ls: QvrLanguageServer, params: types.DidChangeTextDocumentParams) -> None:
    """its edits, applied in order"""
    last = params.content_changes[-1] if params.content_changes else None
    place = last.range.start if isinstance(last, types.TextDocumentContentChangePartial) else None
    ls.text_changed(params.text_document.uri, place)


@server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
def did_close(ls: QvrLanguageServer, params: types.DidCloseTextDocumentParams) -> None:
    """its diagnostics go away"""
    uri = params.text_document.uri
    ls.text_changed(uri)
    ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))


@server.feature(types.TEXT_DOCUMENT_DID_SAVE, types.SaveOptions(include_text=False))
def did_save(ls: QvrLanguageServer, params: types.DidSaveTextDocumentParams) -> None:
    """nothing: the text in the editor counts"""
