"""textDocument/hover."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from qvr_lsp.features.resolving import on_part
from qvr_lsp.language_server import QvrLanguageServer, server

if TYPE_CHECKING:
    from qvr_lsp.documents import View


@server.feature(types.TEXT_DOCUMENT_HOVER)
@on_part(in_settings="settings_file:hover")
def hover(ls: QvrLanguageServer, document: View, params: types.HoverParams) -> types.Hover | None:
    """what a name means and its type"""
    from qvr_core.dependence import at_hand
    from qvr_core.ide.hover import hover
    from qvr_lsp.answers.markup import HOVER, markup

    uri = document.uri
    live = ls.live.about(uri, document.snapshot)
    held = (ls.data_checks.about(uri), ls.fits.about(uri), live)
    answer = hover(document.snapshot, document.cursor(params.position), held, at_hand())
    if answer is None:
        return None
    return types.Hover(markup(ls, HOVER, answer.content), document.range(answer.range))
