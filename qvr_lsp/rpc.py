"""JSON-RPC as features see it: plain dicts, errors with the protocol's codes, notifications and requests.

pygls carries the messages (`qvr_lsp.protocol`).  Importing it takes longer than starting the server, so the very first
message, the editor's `initialize`, is answered here, before.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any
from typing import Protocol as TypingProtocol

if TYPE_CHECKING:
    from qvr_lsp.protocol import Protocol

Json = dict[str, Any]
Handler = Callable[[str, Any], Any]

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
SERVER_NOT_INITIALIZED = -32002
REQUEST_FAILED, CONTENT_MODIFIED = -32803, -32801

LENGTH = re.compile(rb"content-length:[ \t]*(\d{1,8})\s*$", re.IGNORECASE)
NO_HEADER = b"-\r\n"


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


class Encoded(str):
    """An answer that is JSON already."""


def frame(message: Any, default: Callable[[Any], Any] | None = None) -> bytes:
    """A message with its header."""
    return framed(encoded(message, default))


def framed(body: str) -> bytes:
    data = body.encode("ascii")
    return b"Content-Length: %d\r\n\r\n%b" % (len(data), data)


def encoded(message: Any, default: Callable[[Any], Any] | None = None) -> str:
    """JSON, escaped to ASCII, so that lone surrogates pass; NaN, unknown to JSON, is null."""
    try:
        return json.dumps(message, separators=(",", ":"), allow_nan=False, default=default)
    except ValueError:
        return json.dumps(finite(message, default), separators=(",", ":"))


def finite(value: Any, default: Callable[[Any], Any] | None) -> Any:
    """The value with every NaN and infinity replaced by None."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: finite(item, default) for key, item in value.items()}
        case list() | tuple():
            return [finite(item, default) for item in value]
        case str() | int() | None:
            return value
        case _:
            return finite(default(value), default) if default is not None else value


# Numbers or words of a list that are encoded at once, and the depth below which everything is.
AT_ONCE, DEEP = 2000, 12


def in_pieces(value: Any, depth: int = 0) -> Encoded:
    """The same as `encoded`, for a thread: encoding one large value would hold the interpreter all the while."""
    if depth < DEEP:
        match value:
            case dict() if any(isinstance(item, dict | list | tuple) for item in value.values()):
                inner = (f"{encoded(str(key))}:{in_pieces(item, depth + 1)}" for key, item in value.items())
                return Encoded(f"{{{','.join(inner)}}}")
            case [dict() | list() | tuple(), *_]:
                return Encoded(f"[{','.join(in_pieces(item, depth + 1) for item in value)}]")
            case list() if len(value) > AT_ONCE:
                parts = (value[start : start + AT_ONCE] for start in range(0, len(value), AT_ONCE))
                return Encoded(f"[{','.join(encoded(part)[1:-1] for part in parts)}]")
            case _:
                pass
    return Encoded(encoded(value))


class Bytes(TypingProtocol):
    """Where a conversation comes from."""

    async def readline(self) -> bytes: ...
    async def readexactly(self, n: int, /) -> bytes: ...


class Headers:
    """A stream for pygls' reading loop, which ends at what it does not expect: an endless line, an end inside a
    message.  What is no header is a line that it skips."""

    def __init__(self, stream: Bytes) -> None:
        self._stream = stream

    async def readline(self) -> bytes:
        try:
            line = await self._stream.readline()
        except ValueError:
            return NO_HEADER
        found = LENGTH.match(line)
        if found is not None:
            return b"Content-Length: %d\r\n" % int(found[1])
        return NO_HEADER if line.strip() else line

    async def readexactly(self, n: int) -> bytes:
        try:
            return await self._stream.readexactly(n)
        except asyncio.IncompleteReadError:
            return b""


class Connection:
    """One peer.  `handle(method, params)` is called in the order of arrival; what it gives may be awaitable."""

    def __init__(self, write: Callable[[bytes], None], handle: Handler) -> None:
        self._write = write
        self._handle = handle

    @cached_property
    def _protocol(self) -> Protocol:
        from qvr_lsp.protocol import Protocol

        return Protocol(self._write, self._handle)

    def notify(self, method: str, params: Any) -> None:
        self._protocol.notify(method, params)

    def notify_encoded(self, method: str, params: str) -> None:
        """The same with parameters that are JSON already."""
        self._write(framed(f'{{"jsonrpc":"2.0","method":{encoded(method)},"params":{params}}}'))

    async def request(self, method: str, params: Any) -> Any:
        """Ask the peer.  Raises RpcError where it answers with an error."""
        return await self._protocol.ask(method, params)

    async def converse(self, stream: Bytes) -> None:
        """Answer until the stream ends."""
        headers = Headers(stream)
        body = await first_body(headers)
        if not self._greeted(body):
            self._protocol.take(body)
        await self._protocol.converse(headers)

    def _greeted(self, body: bytes) -> bool:
        """Whether a body was an `initialize` as it should be, and is answered."""
        try:
            message = json.loads(body, object_hook=Received)
            if message["method"] != "initialize":
                return False
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": self._handle("initialize", message["params"])}
        except (ValueError, RecursionError, TypeError, RpcError):
            return False  # pygls finds the same, and answers it
        self._write(frame(answer))
        return True


async def first_body(headers: Headers) -> bytes:
    """The body of the first message; empty where there is none."""
    length = 0
    while line := await headers.readline():
        if line.startswith(b"Content-Length"):
            length = int(line.split()[1])
        elif length and not line.strip():
            return await headers.readexactly(length)
    return b""
