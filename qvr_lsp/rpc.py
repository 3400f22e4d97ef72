"""JSON-RPC 2.0 as LSP frames it, over any stream of bytes.

Messages are plain dicts in both directions.  `Connection` is driven by `feed` from the event loop's thread; it answers
a request that is cancelled while it waits in the queue without doing its work.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any

Json = dict[str, Any]
Handler = Callable[[str, Any], Any]

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
SERVER_NOT_INITIALIZED = -32002
REQUEST_FAILED, CONTENT_MODIFIED, REQUEST_CANCELLED = -32803, -32801, -32800

# A header is some 30 bytes; without a limit, a client that never ends it would grow the buffer for ever.
MAX_HEADER = 8192
MAX_BODY = 256 * 1024 * 1024

log = logging.getLogger("qvr.rpc")


class RpcError(Exception):
    """An error response that the protocol calls for."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Received(dict[str, Any]):
    """An object from the peer: a key that is missing where it is wanted is the peer's error, not ours."""

    def __missing__(self, key: str) -> Any:
        raise RpcError(INVALID_PARAMS, f"`{key}` is missing")


def frame(message: Json) -> bytes:
    """A message with its header.  Escaped to ASCII, so that lone surrogates pass; NaN, unknown to JSON, is null."""
    try:
        body = json.dumps(message, separators=(",", ":"), allow_nan=False)
    except ValueError:
        body = json.dumps(finite(message), separators=(",", ":"))
    data = body.encode("ascii")
    return b"Content-Length: %d\r\n\r\n%b" % (len(data), data)


def finite(value: Any) -> Any:
    """The value with every NaN and infinity replaced by None."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: finite(item) for key, item in value.items()}
        case list() | tuple():
            return [finite(item) for item in value]
        case _:
            return value


class Framer:
    """Cuts a stream of bytes into message bodies.  What is no header is skipped, never fatal."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._need: int | None = None

    def feed(self, data: bytes) -> list[bytes]:
        self._buffer += data
        bodies: list[bytes] = []
        while True:
            if self._need is None:
                end = self._buffer.find(b"\r\n\r\n")
                if end < 0:
                    if len(self._buffer) > MAX_HEADER:
                        log.warning("dropped %d bytes that hold no message header", len(self._buffer) - 3)
                        del self._buffer[:-3]
                    return bodies
                self._need = content_length(bytes(self._buffer[:end]))
                del self._buffer[: end + 4]
                if self._need is None:
                    log.warning("dropped a message header without a valid Content-Length")
                continue
            if len(self._buffer) < self._need:
                return bodies
            bodies.append(bytes(self._buffer[: self._need]))
            del self._buffer[: self._need]
            self._need = None


def content_length(header: bytes) -> int | None:
    """The last Content-Length in a header; None where there is none, or no sane one."""
    length: int | None = None
    for line in header.split(b"\r\n"):
        # What precedes the field's name on its line is the rest of something damaged.
        before, field, value = line.lower().rpartition(b"content-length:")
        del before
        if field and value.strip().isdigit() and len(value) < 16:
            length = int(value)
    return length if length is not None and length <= MAX_BODY else None


class Connection:
    """One peer: reads messages, hands them to `handle` in order, and writes answers through `write`."""

    def __init__(self, write: Callable[[bytes], None], handle: Handler) -> None:
        self._write = write
        self._handle = handle
        self._framer = Framer()
        self._queue: deque[Json] = deque()
        self._busy = False
        self._cancelled: set[int | str] = set()
        self._tasks: dict[int | str, asyncio.Future[Any]] = {}
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._running: set[asyncio.Future[None]] = set()
        self._next_id = 0

    # ------------------------------------------------------------ outgoing

    def send(self, message: Json) -> None:
        self._write(frame(message))

    def notify(self, method: str, params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def request(self, method: str, params: Any) -> Any:
        """Ask the peer.  Raises RpcError where it answers with an error."""
        self._next_id += 1
        identity = self._next_id
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[identity] = future
        self.send({"jsonrpc": "2.0", "id": identity, "method": method, "params": params})
        try:
            return await future
        finally:
            self._pending.pop(identity, None)

    def _respond(self, identity: Any, result: Any) -> None:
        self.send({"jsonrpc": "2.0", "id": identity, "result": result})

    def _fail(self, identity: Any, code: int, message: str) -> None:
        self.send({"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": message}})

    # ------------------------------------------------------------ incoming

    def feed(self, data: bytes) -> None:
        """Take bytes from the peer.  Everything complete is handled before this returns, but for what is awaited."""
        for body in self._framer.feed(data):
            self._receive(body)
        self._drain()

    def _receive(self, body: bytes) -> None:
        try:
            message = json.loads(body, object_hook=Received)
        except (ValueError, RecursionError):
            self._fail(None, PARSE_ERROR, "the message is not valid JSON")
            return
        if not isinstance(message, dict):
            self._fail(None, INVALID_REQUEST, "a message must be a JSON object")
            return
        if message.get("method") == "$/cancelRequest":
            self._cancel(message.get("params"))
            return
        self._queue.append(message)

    def _cancel(self, params: Any) -> None:
        identity = params.get("id") if isinstance(params, dict) else None
        if not isinstance(identity, (int, str)):
            return
        if identity in self._tasks:
            self._tasks[identity].cancel()
        elif any(message.get("id") == identity for message in self._queue):
            self._cancelled.add(identity)

    def _drain(self) -> None:
        if self._busy:
            return
        self._busy = True
        try:
            while self._queue:
                self._dispatch(self._queue.popleft())
        finally:
            self._busy = False

    def _dispatch(self, message: Json) -> None:
        method = message.get("method")
        identity = message.get("id")
        if not isinstance(method, str):
            if "result" in message or "error" in message:
                self._answered(message)
            else:
                self._fail(identity if isinstance(identity, (int, str)) else None, INVALID_REQUEST, "no method")
            return
        if "id" not in message:
            self._run_notification(method, message.get("params"))
        elif not isinstance(identity, (int, str)) or isinstance(identity, bool):
            self._fail(None, INVALID_REQUEST, "the id of a request must be an integer or a string")
        elif identity in self._cancelled:
            self._cancelled.discard(identity)
            self._fail(identity, REQUEST_CANCELLED, "cancelled")
        else:
            self._run_request(identity, method, message.get("params"))

    def _answered(self, message: Json) -> None:
        identity = message.get("id")
        future = self._pending.get(identity) if isinstance(identity, int) else None
        if future is None or future.done():
            return
        error = message.get("error")
        if isinstance(error, dict):
            future.set_exception(RpcError(int(error.get("code", INTERNAL_ERROR)), str(error.get("message", ""))))
        else:
            future.set_result(message.get("result"))

    def _run_notification(self, method: str, params: Any) -> None:
        try:
            result = self._handle(method, params)
            if isawaitable(result):
                task = asyncio.ensure_future(self._finish_notification(method, result))
                self._running.add(task)
                task.add_done_callback(self._running.discard)
        except RpcError as error:
            log.warning("%s: %s", method, error.message)
        except Exception:
            log.exception("%s failed", method)

    async def _finish_notification(self, method: str, result: Awaitable[Any]) -> None:
        try:
            await result
        except Exception:
            log.exception("%s failed", method)

    def _run_request(self, identity: int | str, method: str, params: Any) -> None:
        try:
            result = self._handle(method, params)
        except Exception as error:
            self._report(identity, method, error)
            return
        if isawaitable(result):
            task = asyncio.ensure_future(result)
            self._tasks[identity] = task
            # A callback, not a wrapping coroutine: a task that is cancelled before its first step never runs.
            task.add_done_callback(lambda done: self._finish_request(identity, method, done))
        else:
            self._respond(identity, result)

    def _finish_request(self, identity: int | str, method: str, task: asyncio.Future[Any]) -> None:
        self._tasks.pop(identity, None)
        if task.cancelled():
            self._fail(identity, REQUEST_CANCELLED, "cancelled")
        elif (error := task.exception()) is not None:
            self._report(identity, method, error)
        else:
            self._respond(identity, task.result())

    def _report(self, identity: int | str, method: str, error: BaseException) -> None:
        if isinstance(error, RpcError):
            self._fail(identity, error.code, error.message)
        else:
            log.error("%s failed", method, exc_info=error)
            self._fail(
                identity, INTERNAL_ERROR, f"{method} failed inside the server ({type(error).__name__}); see its log"
            )
