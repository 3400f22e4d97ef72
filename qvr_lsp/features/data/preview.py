"""qvr/dataPreview: a table beside the program that is to read it, before anything runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from qvr_lsp.documents import Document
from qvr_lsp.features.resolving import on_document, run_in_thread
from qvr_lsp.rpc import INVALID_PARAMS, REQUEST_FAILED, Json, RpcError
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from qvr_lsp.session import Session


@on_document
def data_preview(session: Session, document: Document, params: Json) -> Any:
    from qvr_core.runs.record.config import TABLES
    from qvr_core.runs.record.data_preview import preview
    from qvr_core.runs.record.settings import UsageProblem, main_program, resolve

    path, snapshot = path_of(document.uri), document.snapshot
    if path is None:
        raise RpcError(REQUEST_FAILED, "a program that is no file has no folder that data paths start from")
    program = params.get("program") or main_program(snapshot.model)
    if program is None or program not in snapshot.model.programs:
        raise RpcError(INVALID_PARAMS, f"there is no program `{program}` here" if program else "there is no program")
    held = session.workspace.settings_text(path)
    flags = {} if params.get("data") is None else {"data": params["data"]}
    try:
        config = resolve(program, "" if held is None else held[1], flags).config
    except UsageProblem as problem:
        raise RpcError(INVALID_PARAMS, str(problem)) from problem
    if config.source not in TABLES and not config.tables:
        raise RpcError(INVALID_PARAMS, f"`{config.data}` is no table")
    base = session.workspace.root_of(path) if held is None else held[0].parent
    work = partial(preview, snapshot, program, config, base, session.data_checks.reader().read)
    return run_in_thread(lambda: work().as_json())
