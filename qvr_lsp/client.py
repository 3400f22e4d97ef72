"""The editor of a session: what it can do, what its user has set, and messages to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from qvr_core.syntax.source import Encoding
from qvr_lsp.capabilities import ClientCapabilities, choose_encoding
from qvr_lsp.connection import Connection
from qvr_lsp.rpc import RpcError
from qvr_lsp.settings import Settings

log = logging.getLogger("qvr.client")


class Client:
    """One editor.  Before `initialize` it can do nothing."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.capabilities = ClientCapabilities({})
        self.encoding: Encoding = "utf-16"
        self.settings = Settings()
        self.trusted = True
        """Whether the editor's user trusts the folders: links that imports lead over are followed only then."""
        self._background: set[asyncio.Task[Any]] = set()

    def initialize(self, capabilities: Any, options: Any) -> None:
        """What `initialize` says of the editor; what is no object says nothing."""
        self.capabilities = ClientCapabilities(capabilities if isinstance(capabilities, dict) else {})
        self.encoding = choose_encoding(self.capabilities)
        given = options if isinstance(options, dict) else {}
        self.settings = Settings.read(given)
        self.trusted = given.get("trusted") is not False

    def get(self, path: str, default: Any = None) -> Any:
        """The capability at `a.b.c`, or `default`."""
        return self.capabilities.get(path, default)

    def has(self, path: str) -> bool:
        """Whether the editor has a capability: an object counts, empty or not."""
        return self.capabilities.has(path)

    # ------------------------------------------------------------ messages

    def notify(self, method: str, params: Any) -> None:
        self._connection.notify(method, params)

    def notify_encoded(self, method: str, params: str) -> None:
        """The same with parameters that are JSON already."""
        self._connection.notify_encoded(method, params)

    async def request(self, method: str, params: Any) -> Any:
        """Ask the editor.  Raises RpcError where it answers with an error."""
        return await self._connection.request(method, params)

    async def ask(self, method: str, params: Any) -> Any:
        """Ask the editor; None where it refuses."""
        try:
            return await self.request(method, params)
        except RpcError:
            return None

    # ------------------------------------------------------------ background work

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine to its end, in the background; a failure is logged."""
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background work failed", exc_info=error)

    def stop(self) -> None:
        """The editor is gone: what runs in the background is for nobody."""
        for task in list(self._background):
            task.cancel()
