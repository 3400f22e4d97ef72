"""The server in a web page: one message in, messages out.

WebAssembly has neither threads nor processes.  The event loop that a page has (Pyodide's) does what is meant for a
thread at once.  A page that did not load pydantic has no qvr.toml and no runs.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping

from lsprotocol import types

from qvr_lsp.converter import typed
from qvr_lsp.features import server
from qvr_lsp.json_values import Json
from qvr_lsp.loading import LATER, LIBRARY, load_all, load_first

PLACE = {"textDocument": {"uri": ""}, "position": {"line": 0, "character": 0}}
ABLE: Json = {
    "textDocument": {"hover": {}, "completion": {"completionItem": {}}, "publishDiagnostics": {}, "rename": {}}
}
CHANGES = [{"range": {"start": PLACE["position"], "end": PLACE["position"]}, "text": ""}]
MET: Mapping[str, Json] = {
    types.INITIALIZE: {"capabilities": {"workspace": {}, "window": {}, "general": {}, **ABLE}},
    types.TEXT_DOCUMENT_DID_OPEN: {"textDocument": {"uri": "", "text": ""}},
    types.TEXT_DOCUMENT_DID_CHANGE: {"textDocument": {"uri": "", "version": 1}, "contentChanges": CHANGES},
    types.TEXT_DOCUMENT_HOVER: PLACE,
    types.TEXT_DOCUMENT_COMPLETION: PLACE,
}
"""What a page says first."""


def prepare() -> None:
    """Load what sessions come to need, for a memory that later visits start from; no session is there yet."""
    # networkx is an archive of its own, which is fetched later
    load_all(name for name in LATER if name != LIBRARY)
    load_first()
    # lsprotocol's converter makes a function for each type that it meets
    for method, params in MET.items():
        typed(params, types.METHOD_TO_TYPES[method][2], method)
    gc.collect()


def connect(send: Callable[[str], None], end: Callable[[], None]) -> Callable[[str], None]:
    """A session: what takes a message of the page.  `send` takes those of the server, `end` ends the conversation.
    Messages are JSON."""
    return server.sibling().connect(send, end)
