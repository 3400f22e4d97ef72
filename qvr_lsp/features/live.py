"""qvr/prior and qvr/live: draws from the program under the cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygls.exceptions import JsonRpcInvalidParams

from qvr_lsp.features.resolving import on_document
from qvr_lsp.language_server import QvrLanguageServer, server
from qvr_lsp.messages import LiveParams, PriorParams
from qvr_lsp.protocol import RequestFailed
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from qvr_lsp.documents import Document
    from qvr_lsp.json_values import Json

DRAWS = 200


@server.feature("qvr/prior")
@on_document
def prior(ls: QvrLanguageServer, document: Document, params: PriorParams) -> Awaitable[Json]:
    """draws from a program's prior; see there"""
    from qvr_core.runs.record.live import MOST_DRAWS
    from qvr_core.semantics.types.diagnostics import Severity
    from qvr_lsp.runs.live import program_at

    path = path_of(document.uri)
    if path is None:
        raise RequestFailed("a program that is no file has no folder that data paths start from")
    name = params.program or program_at(document, params.position)
    if name is None or name not in document.snapshot.model.programs:
        raise JsonRpcInvalidParams(f"there is no program `{name}` here" if name else "there is no program")
    if any(one.severity is Severity.ERROR for one in document.snapshot.diagnostics()):
        raise RequestFailed("the program has errors: it is drawn from once they are mended")
    draws = DRAWS if params.draws is None else params.draws
    return ls.live.draw(document, path, name, max(2, min(draws, MOST_DRAWS)))


@server.feature("qvr/live")
@on_document
def live(ls: QvrLanguageServer, document: Document, params: LiveParams) -> Json | None:
    """what is drawn as one types is the program there; see there"""
    return ls.live.look_at(document, params.position)
