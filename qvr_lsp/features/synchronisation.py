"""didOpen, didChange, didClose, didSave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_lsp.rpc import Json

if TYPE_CHECKING:
    from qvr_lsp.server import Server


def did_open(server: Server, params: Json) -> None:
    document = params["textDocument"]
    if is_settings(document["uri"]):
        server.workspace.open_settings(document["uri"], document["text"], document.get("version"))
    else:
        server.documents.open(document["uri"], document.get("version"), document["text"])


def did_change(server: Server, params: Json) -> None:
    document, changes = params["textDocument"], params["contentChanges"]
    if is_settings(document["uri"]):
        server.workspace.change_settings(document["uri"], changes, document.get("version"))
    else:
        server.documents.change(document["uri"], document.get("version"), changes)


def did_close(server: Server, params: Json) -> None:
    uri = params["textDocument"]["uri"]
    known = server.workspace.close_settings(uri) if is_settings(uri) else server.documents.drop(uri)
    if known:
        server.connection.notify("textDocument/publishDiagnostics", {"uri": uri, "diagnostics": []})


def did_save(server: Server, params: Json) -> None:
    """Nothing to do: what counts is the text in the editor."""


def is_settings(uri: str) -> bool:
    return uri.endswith("/qvr.toml")
