"""qvr/prior: draws from the prior of the program under the cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygls.exceptions import JsonRpcInvalidParams

from qvr_lsp.features.resolving import on_document
from qvr_lsp.language_server import QvrLanguageServer, server
from qvr_lsp.messages import PriorParams
from qvr_lsp.protocol import RequestFailed
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from qvr_lsp.documents import Document
    from qvr_lsp.serialising import Json

DRAWS = 200


@server.feature("qvr/prior")
@on_document
def prior(ls: QvrLanguageServer, document: Document, params: PriorParams) -> Awaitable[Json]:
    """draws from a program's prior; see there"""
    from qvr_core.runs.record.prior import MOST_DRAWS
    from qvr_core.semantics.types.diagnostics import Severity

    path = path_of(document.uri)
    if path is None:
        raise RequestFailed("a program that is no file has no folder that data paths start from")
    name = params.program or _at(document, params)
    if name is None or name not in document.snapshot.model.programs:
        raise JsonRpcInvalidParams(f"there is no program `{name}` here" if name else "there is no program")
    if any(one.severity is Severity.ERROR for one in document.snapshot.diagnostics()):
        raise RequestFailed("the program has errors: it is drawn from once they are mended")
    draws = DRAWS if params.draws is None else params.draws
    return ls.priors.draw(document, path, name, max(2, min(draws, MOST_DRAWS)))


def _at(document: Document, params: PriorParams) -> str | None:
    """The program around a place, else the main one."""
    from qvr_core.runs.record.settings import main_program

    snapshot = document.snapshot
    if params.position is not None:
        statement = snapshot.statement_at(document.cursor(params.position))
        uid = None if statement is None else statement.uid
        found = next((name for name in snapshot.model.programs if snapshot.owners.get(name) == uid), None)
        if found is not None:
            return found
    return main_program(snapshot.model)
