"""qvr/runData: which data a run has by its qvr.toml, so that no front looks for them by a rule of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qvr_lsp.features.resolving import on_document
from qvr_lsp.language_server import QvrLanguageServer, server
from qvr_lsp.messages import RunDataParams
from qvr_lsp.uris import path_of, uri_of

if TYPE_CHECKING:
    from qvr_lsp.documents import Document


@server.feature("qvr/runData")
@on_document
def run_data(ls: QvrLanguageServer, document: Document, params: RunDataParams) -> Any:
    """the data of a program's runs; see there"""
    from qvr_core.runs.record.settings import main_program

    path, model = path_of(document.uri), document.snapshot.model
    program = params.program or main_program(model)
    held = None if path is None else ls.workspace.settings_text(path)
    found = model.programs.get(program) if program is not None else None
    return {
        "program": program,
        "data": None if path is None else ls.workspace.run_table(path, program).get("data"),
        "settings": None if held is None else uri_of(held[0]),
        "declared": found is not None and any(item.declared for item in found.data),
    }
