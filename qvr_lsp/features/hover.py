"""textDocument/hover."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.dependence import at_hand
from qvr_core.ide.hover import hover as ask
from qvr_lsp.documents import View
from qvr_lsp.features.resolving import on_part
from qvr_lsp.markup import HOVER, markup
from qvr_lsp.rpc import Json

if TYPE_CHECKING:
    from qvr_lsp.session import Session


@on_part
def hover(session: Session, document: View, params: Json) -> Json | None:
    uri = document.uri
    prior = session.priors.about(uri, document.snapshot)
    held = (session.data_checks.about(uri), session.fits.about(uri), prior)
    answer = ask(document.snapshot, document.cursor(params["position"]), held, at_hand())
    if answer is None:
        return None
    return {
        "contents": markup(session.client, HOVER, answer.content),
        "range": document.range(answer.range),
    }
