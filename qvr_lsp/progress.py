"""Work-done progress: tokens that are freed when their work ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from qvr_lsp.rpc import Json, RpcError

if TYPE_CHECKING:
    from qvr_lsp.client import Client


class Progress:
    """One bar in the editor.  Where the editor shows none, every call is silently nothing."""

    def __init__(self, tokens: ProgressTokens, token: str | int | None) -> None:
        self._tokens = tokens
        self._token = token

    def begin(self, title: str, *, message: str = "", cancellable: bool = False) -> None:
        value: Json = {"kind": "begin", "title": title, "cancellable": cancellable, "percentage": 0}
        self._send({**value, "message": message} if message else value)

    def report(self, message: str, percentage: int | None = None) -> None:
        value: Json = {"kind": "report", "message": message}
        self._send(value if percentage is None else {**value, "percentage": max(0, min(100, percentage))})

    def end(self, message: str) -> None:
        self._send({"kind": "end", "message": message})
        self._tokens.free(self._token)
        self._token = None

    def _send(self, value: Json) -> None:
        if self._token is not None:
            self._tokens.client.notify("$/progress", {"token": self._token, "value": value})


class ProgressTokens:
    """The tokens in use, and what cancelling each of them stops."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._stops: dict[str | int, Callable[[], Any]] = {}
        self._count = 0

    async def create(self, stop: Callable[[], Any]) -> Progress:
        """A new bar, asked of the editor; `stop` is called when the user cancels it."""
        if not self.client.has("window.workDoneProgress"):
            return Progress(self, None)
        self._count += 1
        token = f"qvr-{self._count}"
        try:
            await self.client.request("window/workDoneProgress/create", {"token": token})
        except RpcError:
            return Progress(self, None)
        self._stops[token] = stop
        return Progress(self, token)

    def free(self, token: str | int | None) -> None:
        if token is not None:
            self._stops.pop(token, None)

    def cancel(self, token: str | int) -> None:
        """The user pressed cancel; an unknown token has ended in the meantime."""
        stop = self._stops.get(token)
        if stop is not None:
            stop()

    @property
    def active(self) -> int:
        return len(self._stops)
