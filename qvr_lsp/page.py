"""The server in a web page: one message in, messages out.

WebAssembly has neither threads nor processes.  The event loop that a page has (Pyodide's) does what is meant for a
thread at once.  A page that did not load pydantic has no qvr.toml and no runs.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

from qvr_lsp.features import server
from qvr_lsp.loading import LATER, LIBRARY, load_all, load_first


def prepare() -> None:
    """Load what sessions come to need, for a memory that later visits start from; no session is there yet."""
    # networkx is an archive of its own, which is fetched later
    load_all(name for name in LATER if name != LIBRARY)
    load_first()
    gc.collect()


def connect(send: Callable[[str], None], end: Callable[[], None]) -> Callable[[str], None]:
    """A session: what takes a message of the page.  `send` takes those of the server, `end` ends the conversation.
    Messages are JSON."""
    return server.sibling().connect(send, end)
