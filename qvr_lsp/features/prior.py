"""qvr/prior: draws from the prior of the program under the cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.runs.record.prior import MOST_DRAWS
from qvr_core.runs.record.settings import main_program
from qvr_core.semantics.types.diagnostics import Severity
from qvr_lsp.documents import Document
from qvr_lsp.features.resolving import on_document
from qvr_lsp.rpc import INVALID_PARAMS, REQUEST_FAILED, Json, RpcError
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from qvr_lsp.session import Session

DRAWS = 200


@on_document
def prior(session: Session, document: Document, params: Json) -> Awaitable[Json]:
    path = path_of(document.uri)
    if path is None:
        raise RpcError(REQUEST_FAILED, "a program that is no file has no folder that data paths start from")
    name = params.get("program") or _at(document, params)
    if name is None or name not in document.snapshot.model.programs:
        raise RpcError(INVALID_PARAMS, f"there is no program `{name}` here" if name else "there is no program")
    if any(one.severity is Severity.ERROR for one in document.snapshot.diagnostics()):
        raise RpcError(REQUEST_FAILED, "the program has errors: it is drawn from once they are mended")
    draws = params.get("draws")
    return session.priors.draw(document, path, name, max(2, min(DRAWS if draws is None else draws, MOST_DRAWS)))


def _at(document: Document, params: Json) -> str | None:
    """The program around a place, else the main one."""
    snapshot = document.snapshot
    if params.get("position") is not None:
        statement = snapshot.statement_at(document.cursor(params["position"]))
        uid = None if statement is None else statement.uid
        found = next((name for name in snapshot.model.programs if snapshot.owners.get(name) == uid), None)
        if found is not None:
            return found
    return main_program(snapshot.model)
