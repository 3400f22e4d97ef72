"""Settings, folders, watched files, and the server's status."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from qvr_core import __version__
from qvr_lsp import logs
from qvr_lsp.rpc import Json, RpcError
from qvr_lsp.settings import Settings
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from qvr_lsp.server import Server

WATCHED = ("**/*.qvr", "**/qvr.toml", "**/*.{csv,parquet,ndjson,npz}")


async def register_watchers(server: Server) -> None:
    """After `initialized`: read the settings, and ask to be told of files that change."""
    if server.client.has("workspace.configuration"):
        await read_settings(server)
    if server.client.has("workspace.didChangeWatchedFiles.dynamicRegistration"):
        watchers = [{"globPattern": pattern} for pattern in WATCHED]
        registration = {
            "id": "qvr-files",
            "method": "workspace/didChangeWatchedFiles",
            "registerOptions": {"watchers": watchers},
        }
        await ask(server, "client/registerCapability", {"registrations": [registration]})
    if server.client.has("workspace.didChangeConfiguration.dynamicRegistration"):
        registration = {
            "id": "qvr-settings",
            "method": "workspace/didChangeConfiguration",
            "registerOptions": {"section": "qvr"},
        }
        await ask(server, "client/registerCapability", {"registrations": [registration]})
    server.connection.notify("qvr/status", status(server, None))


async def ask(server: Server, method: str, params: Any) -> Any:
    """A request to the editor; None where it refuses."""
    try:
        return await server.connection.request(method, params)
    except RpcError:
        return None


async def read_settings(server: Server) -> None:
    answer = await ask(server, "workspace/configuration", {"items": [{"section": "qvr"}]})
    if isinstance(answer, list) and answer and isinstance(answer[0], dict):
        apply(server, answer[0])


def apply(server: Server, given: Json) -> None:
    """Take new settings, and show what they change."""
    before, server.settings = server.settings, Settings.read(given, server.settings)
    if server.settings == before:
        return
    logs.to_editor(server.connection, server.settings.log_level)
    for document in server.documents:
        server.documents.republish(document.uri)
    for feature in ("inlayHint", "codeLens"):
        if server.client.has(f"workspace.{feature}.refreshSupport"):
            server.spawn(ask(server, f"workspace/{feature}/refresh", None))


async def did_change(server: Server, params: Json) -> None:
    """workspace/didChangeConfiguration: the new settings come along, or have to be asked for."""
    given = params.get("settings")
    given = given.get("qvr", given) if isinstance(given, dict) else None
    if isinstance(given, dict) and given:
        apply(server, given)
    elif server.client.has("workspace.configuration"):
        await read_settings(server)


def did_change_files(server: Server, params: Json) -> None:
    """Files changed outside the editor: settings and data may fit now, or no longer."""
    changed = [path_of(change["uri"]) for change in params["changes"]]
    if any(path is not None and path.name == "qvr.toml" for path in changed):
        server.workspace.settings_changed()
    for feature in ("codeLens", "diagnostics"):
        if server.client.has(f"workspace.{feature}.refreshSupport"):
            server.spawn(
                ask(server, f"workspace/{'diagnostic' if feature == 'diagnostics' else feature}/refresh", None)
            )


def did_change_folders(server: Server, params: Json) -> None:
    event = params["event"]
    server.workspace.close_folders([folder["uri"] for folder in event["removed"]])
    server.workspace.open_folders([folder["uri"] for folder in event["added"]])


def status(server: Server, params: Json | None) -> Json:
    """qvr/status: how the server is, for a status item."""
    return {
        "health": "ok",
        "version": __version__,
        "pid": os.getpid(),
        "python": sys.executable,
        "runPython": server.settings.python or sys.executable,
        "positionEncoding": server.encoding,
        "openDocuments": sum(1 for _ in server.documents),
        "activeRuns": server.runs.active,
        "logFile": str(logs.log_file()),
    }
