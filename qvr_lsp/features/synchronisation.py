"""didOpen, didChange, didClose, didSave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_lsp.rpc import Json

if TYPE_CHECKING:
    from qvr_lsp.session import Session


def did_open(session: Session, params: Json) -> None:
    document = params["textDocument"]
    if is_settings(document["uri"]):
        session.workspace.open_settings(document["uri"], document["text"], document.get("version"))
    else:
        session.documents.open(document["uri"], document.get("version"), document["text"])


def did_change(session: Session, params: Json) -> None:
    document, changes = params["textDocument"], params["contentChanges"]
    if is_settings(document["uri"]):
        session.workspace.change_settings(document["uri"], changes, document.get("version"))
    else:
        session.documents.change(document["uri"], document.get("version"), changes)
        session.text_changed(document["uri"])


def did_close(session: Session, params: Json) -> None:
    uri = params["textDocument"]["uri"]
    session.text_changed(uri)
    known = session.workspace.close_settings(uri) if is_settings(uri) else session.documents.drop(uri)
    if known:
        session.client.notify("textDocument/publishDiagnostics", {"uri": uri, "diagnostics": []})


def did_save(session: Session, params: Json) -> None:
    """Nothing to do: what counts is the text in the editor."""


def is_settings(uri: str) -> bool:
    return uri.endswith("/qvr.toml")
