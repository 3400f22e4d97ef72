"""The server in a web page: one message in, messages out.

WebAssembly has neither threads nor processes.  The event loop that a page has (Pyodide's) does what is meant for a
thread at once; this module goes around the rest.  A page that did not load pydantic has no qvr.toml and no runs.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterable
from importlib import import_module

from qvr_lsp.methods import METHODS
from qvr_lsp.server import Server, load_first


class PageServer(Server):
    """A session whose editor shares the process with nobody: nothing watches it, nothing is started for it."""

    def _load_rest(self) -> None:
        """Load what later questions need, between two messages each: a thread cannot."""
        if not self._loaded:
            self._loaded = True
            self.session.client.spawn(load_in_turns(features()))


def features() -> list[str]:
    """The modules that answer."""
    names = dict.fromkeys(method.handler.partition(":")[0] for method in METHODS.values())
    return [*(f"qvr_lsp.features.{name}" for name in names if name), "qvr_core.dependence.library"]


async def load_in_turns(names: Iterable[str]) -> None:
    for name in names:
        load(name)
        await asyncio.sleep(0)


def load(name: str) -> None:
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in ("pydantic", "pydantic_core"):
            raise


def prepare() -> None:
    """Load what sessions come to need, for a memory that later visits start from; no session is there yet."""
    for name in features():
        if not name.endswith(".library"):  # an archive of its own
            load(name)
    load_first()
    gc.collect()


def connect(send: Callable[[str], None], end: Callable[[], None]) -> Callable[[str], None]:
    """A session: what takes a message of the page.  `send` takes those of the server, `end` ends the conversation.
    Messages are JSON."""
    server = PageServer(lambda body: send(body.decode("ascii")), end)
    return server.connection.receive_encoded
