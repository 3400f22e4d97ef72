"""initialize and initialized; the server's status."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidRequest

from qvr_core import __version__
from qvr_lsp import logs
from qvr_lsp.features.configuration import read_settings
from qvr_lsp.json_values import Json, is_object
from qvr_lsp.language_server import QvrLanguageServer, server, unless_refused
from qvr_lsp.lifecycle import watch_process
from qvr_lsp.loading import AFTER_ANSWER, AFTER_START, Loading, load_first
from qvr_lsp.messages import Nothing
from qvr_lsp.settings import Settings
from qvr_lsp.streams import same_token

WATCHED = ("**/*.qvr", "**/qvr.toml", "**/*.{csv,parquet,ndjson,npz,json}")


@server.feature(types.INITIALIZE)
def initialize(ls: QvrLanguageServer, params: types.InitializeParams) -> None:
    """Take what is said of the editor; the analyser is loaded once the answer is written."""
    given: Any = params.initialization_options
    options: Json = given if is_object(given) else {}
    if ls.token is not None and not same_token(options.get("token"), ls.token):
        ls.refuse()
        raise JsonRpcInvalidRequest("`initializationOptions.token` is not the token that the server was started with")
    ls.settings = Settings.read(options)
    ls.trusted = options.get("trusted") is not False
    ls.protocol.trace = params.trace or types.TraceValue.Off
    ls.open_workspace(params, ls.workspace.position_encoding)
    logs.to_editor(ls, ls.settings.log_level)
    if params.process_id is not None:
        watch_process(params.process_id, ls.end)
    asyncio.get_running_loop().call_later(AFTER_ANSWER, load, ls)


def load(ls: QvrLanguageServer) -> None:
    load_first()
    Loading.soon(ls, AFTER_START)


@server.feature(types.INITIALIZED)
async def initialized(ls: QvrLanguageServer, params: types.InitializedParams) -> None:
    """Read the settings, and ask to be told of files that change."""
    if ls.has("workspace.configuration"):
        await read_settings(ls)
    if ls.has("workspace.did_change_watched_files.dynamic_registration"):
        watchers = [types.FileSystemWatcher(pattern) for pattern in WATCHED]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        await register(ls, "qvr-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
    if ls.has("workspace.did_change_configuration.dynamic_registration"):
        section = types.DidChangeConfigurationRegistrationOptions("qvr")
        await register(ls, "qvr-settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, section)
    ls.protocol.notify("qvr/status", status(ls, None))


async def register(ls: QvrLanguageServer, identity: str, method: str, options: Any) -> None:
    params = types.RegistrationParams([types.Registration(identity, method, options)])
    await unless_refused(ls.client_register_capability_async(params))


@server.feature("qvr/status")
def status(ls: QvrLanguageServer, params: Nothing | None) -> Json:
    """how the server is"""
    return {
        "health": "ok",
        "version": __version__,
        "pid": os.getpid(),
        "python": sys.executable,
        "runPython": ls.settings.python or sys.executable,
        "positionEncoding": ls.codec.units,
        "openDocuments": ls.open_documents,
        "activeRuns": ls.active_runs,
        "logFile": str(logs.log_file()),
    }
