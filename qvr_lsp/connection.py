"""One peer that speaks JSON-RPC: its messages in, answers, notifications and requests out."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from inspect import isawaitable
from typing import Any

from qvr_lsp.rpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    REQUEST_CANCELLED,
    Encoded,
    Received,
    RpcError,
    encoded,
)

log = logging.getLogger("qvr.rpc")

Handler = Callable[[str, Any], Any]
Write = Callable[[bytes], None]


class Connection:
    """`handle(method, params)` is called in the order of arrival; what it gives may be awaitable.  `write` takes one
    message.

    Each message is a task, begun once everything that has arrived is read: so a request that is cancelled while it
    waits is never begun.
    """

    def __init__(self, write: Write, handle: Handler) -> None:
        self._write = write
        self._handle = handle
        self._requests: dict[int | str, asyncio.Task[None]] = {}
        self._notifications: set[asyncio.Task[None]] = set()
        self._sent: dict[int, asyncio.Future[Any]] = {}
        self._count = 0

    # ------------------------------------------------------------ out

    def notify(self, method: str, params: Any) -> None:
        self.notify_encoded(method, encoded(params))

    def notify_encoded(self, method: str, params: str) -> None:
        """The same with parameters that are JSON already."""
        self._send(f'"method":{encoded(method)},"params":{params}')

    async def request(self, method: str, params: Any) -> Any:
        """Ask the peer.  Raises RpcError where it answers with an error."""
        self._count += 1
        identity = self._count
        self._sent[identity] = asyncio.get_running_loop().create_future()
        self._send(f'"id":{identity},"method":{encoded(method)},"params":{encoded(params)}')
        try:
            return await self._sent[identity]
        finally:
            del self._sent[identity]

    def _send(self, members: str) -> None:
        self._write(f'{{"jsonrpc":"2.0",{members}}}'.encode("ascii"))

    def stop(self) -> None:
        """The peer is gone: nothing more is said, and what is under way for it is cancelled."""
        self._write = lambda message: None
        for task in (*self._requests.values(), *self._notifications):
            task.cancel()

    # ------------------------------------------------------------ in

    async def converse(self, bodies: AsyncIterator[bytes]) -> None:
        """Answer until there is no message any more."""
        async for body in bodies:
            self.receive_encoded(body)

    def receive_encoded(self, body: bytes | str) -> None:
        """Handle one message that is still JSON."""
        try:
            message = json.loads(body, object_hook=Received)
        except (ValueError, RecursionError) as error:
            self.reply_unreadable(error)
        else:
            self.receive(message)

    def reply_unreadable(self, error: Exception) -> None:
        """Answer what is no JSON."""
        log.warning("a message could not be read (%s)", type(error).__name__)
        self._reply_error(None, PARSE_ERROR, "not a message")

    def receive(self, message: Any) -> None:
        """Handle one message.  Anything may arrive."""
        match message:
            case {"method": str(method), "id": int() | str() as identity} if not isinstance(identity, bool):
                self._start_request(identity, method, message.get("params"))
            case {"method": "$/cancelRequest"} if "id" not in message:
                self._cancel(message.get("params"))
            case {"method": str(method)} if "id" not in message:
                task = asyncio.ensure_future(self._handle_notification(method, message.get("params")))
                self._notifications.add(task)
                task.add_done_callback(self._notifications.discard)
            case {"id": identity, "error": {"code": int(code), "message": str(text)}} if "method" not in message:
                if (asked := self._future_of(identity)) is not None:
                    asked.set_exception(RpcError(code, text))
            case {"id": identity, "result": result} if "method" not in message:
                if (asked := self._future_of(identity)) is not None:
                    asked.set_result(result)
            case _:
                log.warning("a message is neither a request nor an answer")
                self._reply_error(None, INVALID_REQUEST, "not a message")

    def _future_of(self, identity: Any) -> asyncio.Future[Any] | None:
        """The request of ours that is answered; None for one that nobody waits for."""
        asked = self._sent.get(identity) if type(identity) is int else None
        return asked if asked is not None and not asked.done() else None

    def _start_request(self, identity: int | str, method: str, params: Any) -> None:
        task = asyncio.ensure_future(self._answer(identity, method, params))
        self._requests[identity] = task
        task.add_done_callback(lambda done: self._request_done(identity, done))

    def _cancel(self, params: Any) -> None:
        identity = params.get("id") if isinstance(params, dict) else None
        if isinstance(identity, int | str) and (task := self._requests.get(identity)) is not None:
            task.cancel()

    def _request_done(self, identity: int | str, task: asyncio.Task[None]) -> None:
        if self._requests.get(identity) is task:
            del self._requests[identity]
        if task.cancelled():
            self._reply_error(identity, REQUEST_CANCELLED, f'Request with id "{identity}" is canceled')

    async def _answer(self, identity: int | str, method: str, params: Any) -> None:
        try:
            result = await self._call(method, params)
            result = result if isinstance(result, Encoded) else encoded(result)
        except RpcError as error:
            self._reply_error(identity, error.code, error.message)
        except Exception as error:
            log.exception("%s failed", method)
            message = f"{method} failed inside the server ({type(error).__name__}); see its log"
            self._reply_error(identity, INTERNAL_ERROR, message)
        else:
            self._send(f'"id":{encoded(identity)},"result":{result}')

    def _reply_error(self, identity: int | str | None, code: int, message: str) -> None:
        self._send(f'"id":{encoded(identity)},"error":{encoded({"code": code, "message": message})}')

    async def _handle_notification(self, method: str, params: Any) -> None:
        try:
            await self._call(method, params)
        except RpcError as error:
            log.warning("%s is left out: %s", method, error.message)
        except Exception:
            log.exception("%s failed", method)

    async def _call(self, method: str, params: Any) -> Any:
        result = self._handle(method, params)
        return await result if isawaitable(result) else result
