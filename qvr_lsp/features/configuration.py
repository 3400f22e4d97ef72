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
    from qvr_lsp.session import Session

WATCHED = ("**/*.qvr", "**/qvr.toml", "**/*.{csv,parquet,ndjson,npz,json}")


async def register_watchers(session: Session) -> None:
    """After `initialized`: read the settings, and ask to be told of files that change."""
    if session.client.has("workspace.configuration"):
        await read_settings(session)
    if session.client.has("workspace.didChangeWatchedFiles.dynamicRegistration"):
        watchers = [{"globPattern": pattern} for pattern in WATCHED]
        registration = {
            "id": "qvr-files",
            "method": "workspace/didChangeWatchedFiles",
            "registerOptions": {"watchers": watchers},
        }
        await ask(session, "client/registerCapability", {"registrations": [registration]})
    if session.client.has("workspace.didChangeConfiguration.dynamicRegistration"):
        registration = {
            "id": "qvr-settings",
            "method": "workspace/didChangeConfiguration",
            "registerOptions": {"section": "qvr"},
        }
        await ask(session, "client/registerCapability", {"registrations": [registration]})
    session.client.notify("qvr/status", status(session, None))


async def ask(session: Session, method: str, params: Any) -> Any:
    """A request to the editor; None where it refuses."""
    try:
        return await session.client.request(method, params)
    except RpcError:
        return None


async def read_settings(session: Session) -> None:
    answer = await ask(session, "workspace/configuration", {"items": [{"section": "qvr"}]})
    if isinstance(answer, list) and answer and isinstance(answer[0], dict):
        apply(session, answer[0])


def apply(session: Session, given: Json) -> None:
    """Take new settings, and show what they change."""
    before, session.client.settings = session.client.settings, Settings.read(given, session.client.settings)
    if session.client.settings == before:
        return
    logs.to_editor(session.client, session.client.settings.log_level)
    for document in session.documents:
        session.documents.republish(document.uri)
    for feature in ("inlayHint", "codeLens"):
        if session.client.has(f"workspace.{feature}.refreshSupport"):
            session.client.spawn(ask(session, f"workspace/{feature}/refresh", None))


async def did_change(session: Session, params: Json) -> None:
    """workspace/didChangeConfiguration: the new settings come along, or have to be asked for."""
    given = params.get("settings")
    given = given.get("qvr", given) if isinstance(given, dict) else None
    if isinstance(given, dict) and given:
        apply(session, given)
    elif session.client.has("workspace.configuration"):
        await read_settings(session)


def did_change_files(session: Session, params: Json) -> None:
    """Files changed outside the editor: settings and data may fit now, or no longer."""
    changed = [path_of(change["uri"]) for change in params["changes"]]
    if any(path is not None and path.name == "qvr.toml" for path in changed):
        session.workspace.settings_changed()
    of_runs = [path is not None and ".qvr" in path.parts for path in changed]
    if any(of_runs):
        session.fits.ask_all()
    if all(of_runs):
        return
    for path in changed:
        if path is not None and path.suffix == ".qvr":
            session.documents.imports.on_disk(path)
    session.data_checks.ask_all()
    for feature in ("codeLens", "diagnostics"):
        if session.client.has(f"workspace.{feature}.refreshSupport"):
            session.client.spawn(
                ask(session, f"workspace/{'diagnostic' if feature == 'diagnostics' else feature}/refresh", None)
            )


def did_change_folders(session: Session, params: Json) -> None:
    event = params["event"]
    session.workspace.close_folders([folder["uri"] for folder in event["removed"]])
    session.workspace.open_folders([folder["uri"] for folder in event["added"]])


def status(session: Session, params: Json | None) -> Json:
    """qvr/status: how the server is, for a status item."""
    return {
        "health": "ok",
        "version": __version__,
        "pid": os.getpid(),
        "python": sys.executable,
        "runPython": session.client.settings.python or sys.executable,
        "positionEncoding": session.client.encoding,
        "openDocuments": sum(1 for _ in session.documents),
        "activeRuns": session.active_runs,
        "logFile": str(logs.log_file()),
    }
