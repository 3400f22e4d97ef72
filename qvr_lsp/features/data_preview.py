"""qvr/dataPreview: a table beside the program that is to read it, before anything runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pygls.exceptions import JsonRpcInvalidParams

from qvr_lsp.features.resolving import on_document, run_in_thread
from qvr_lsp.language_server import QvrLanguageServer, server
from qvr_lsp.messages import DataPreviewParams
from qvr_lsp.protocol import RequestFailed
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from qvr_lsp.documents import Document


@server.feature("qvr/dataPreview")
@on_document
def data_preview(ls: QvrLanguageServer, document: Document, params: DataPreviewParams) -> Any:
    """a table beside the program that reads it; see there"""
    from qvr_core.runs.record.config import TABLES
    from qvr_core.runs.record.data_preview import preview
    from qvr_core.runs.record.settings import UsageProblem, main_program, resolve

    path, snapshot = path_of(document.uri), document.snapshot
    if path is None:
        raise RequestFailed("a program that is no file has no folder that data paths start from")
    program = params.program or main_program(snapshot.model)
    if program is None or program not in snapshot.model.programs:
        raise JsonRpcInvalidParams(f"there is no program `{program}` here" if program else "there is no program")
    held = ls.workspace.settings_text(path)
    flags = {} if params.data is None else {"data": params.data}
    try:
        config = resolve(program, "" if held is None else held[1], flags).config
    except UsageProblem as problem:
        raise JsonRpcInvalidParams(str(problem)) from problem
    if config.source not in TABLES and not config.tables:
        raise JsonRpcInvalidParams(f"`{config.data}` is no table")
    base = ls.workspace.root_of(path) if held is None else held[0].parent
    work = partial(preview, snapshot, program, config, base, ls.data_checks.reader().read)
    return run_in_thread(lambda: work().as_json())
