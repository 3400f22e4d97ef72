"""Settings and watched files."""

from __future__ import annotations

import logging
from typing import Any

from lsprotocol import types

from qvr_lsp import logs
from qvr_lsp.json_values import Json, is_object
from qvr_lsp.language_server import QvrLanguageServer, server, unless_refused
from qvr_lsp.settings import BEFORE, Settings, asks_as_before
from qvr_lsp.uris import path_of

log = logging.getLogger("qvr.settings")


async def read_settings(ls: QvrLanguageServer) -> None:
    wanted = types.ConfigurationParams([types.ConfigurationItem(section="qvr")])
    answer: Any = await unless_refused(ls.workspace_configuration_async(wanted))
    if answer and isinstance(answer[0], dict):
        apply(ls, answer[0])


def apply(ls: QvrLanguageServer, given: Json) -> None:
    """Take new settings, and show what they change."""
    note_older(given)
    before, ls.settings = ls.settings, Settings.read(given, ls.settings)
    if ls.settings == before:
        return
    logs.to_editor(ls, ls.settings.log_level)
    if any(getattr(ls.settings, name) != getattr(before, name) for name in ("live", "live_budget", "python")):
        ls.live.settings_changed()
    for document in ls.documents:
        ls.documents.republish(document.uri)
    ls.refresh("inlay_hint", "code_lens")


def note_older(given: Json) -> None:
    """A setting that has another name now."""
    if asks_as_before(given):
        log.warning('the setting qvr.%s is qvr.live = "prior" now; the next release reads it no more', BEFORE)


@server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
async def did_change(ls: QvrLanguageServer, params: types.DidChangeConfigurationParams) -> None:
    """new settings

    They come along, or have to be asked for."""
    given: Any = params.settings
    given = given.get("qvr", given) if is_object(given) else None
    if is_object(given) and given:
        apply(ls, given)
    elif ls.has("workspace.configuration"):
        await read_settings(ls)


@server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
def did_change_files(ls: QvrLanguageServer, params: types.DidChangeWatchedFilesParams) -> None:
    """qvr.toml is read again, lenses are asked for again

    Files changed outside the editor: settings and data may fit now, or no longer."""
    changed = [path_of(change.uri) for change in params.changes]
    if any(path is not None and path.name == "qvr.toml" for path in changed):
        ls.workspace.settings_changed()
    of_runs = [path is not None and ".qvr" in path.parts for path in changed]
    if any(of_runs):
        ls.fits.ask_all()
    if all(of_runs):
        return
    for path in changed:
        if path is not None and path.suffix == ".qvr":
            ls.documents.imports.on_disk(path)
    ls.data_checks.ask_all()
    ls.live.again_all()
    ls.refresh("code_lens", "diagnostics")
