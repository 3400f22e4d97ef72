"""Where bytes come from and go to: stdin and stdout, a TCP socket, a WebSocket.

stdin is read by a daemon thread of its own and stdout is written by another: a pipe that is full or empty then never
stops the event loop, on any platform.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import os
import queue
import struct
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Protocol

log = logging.getLogger("qvr.transport")

# How long a server that has lost its editor may take to stop its runs, before it is ended.
GRACE_SECONDS = 0.8

WEBSOCKET_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MAX_FRAME = 256 * 1024 * 1024


class Session(Protocol):
    """What a transport drives."""

    def feed(self, data: bytes) -> None:
        """Take bytes from the editor."""
        ...

    async def close(self) -> int:
        """The editor is gone: stop everything; the exit code."""
        ...


Opener = Callable[[Callable[[bytes], None], Callable[[], None]], Session]
"""Makes a session from a function that writes bytes and one that ends the connection."""


# ---------------------------------------------------------------- stdio


def take_stdout() -> int:
    """The descriptor of the real stdout; from here on `print` goes to stderr, so that it cannot damage the protocol."""
    out = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return out


class StdoutWriter:
    """Writes chunks in order from a thread of its own."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="qvr-stdout", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        self._queue.put(data)

    def close(self, timeout: float) -> None:
        """Write out what is queued, for at most `timeout` seconds."""
        self._queue.put(None)
        self._thread.join(timeout)

    def _run(self) -> None:
        while (data := self._queue.get()) is not None:
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(self._descriptor, view) :]
            except OSError:
                return  # the editor has closed its end; the end of stdin stops the server


def read_stdin(loop: asyncio.AbstractEventLoop, feed: Callable[[bytes], None], ended: Callable[[], None]) -> None:
    """Read descriptor 0 until it ends.  If the loop does not end the process in time then, this thread does."""
    while True:
        try:
            data = os.read(0, 1 << 20)
        except OSError:
            data = b""
        try:
            loop.call_soon_threadsafe(feed, data) if data else loop.call_soon_threadsafe(ended)
        except RuntimeError:
            return  # the loop is closed: the process is about to end
        if not data:
            break
    threading.Event().wait(GRACE_SECONDS)
    os._exit(1)


async def serve_stdio(open_session: Opener) -> int:
    """One session over stdin and stdout; the exit code."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    writer = StdoutWriter(take_stdout())
    session = open_session(writer.write, ended.set)
    threading.Thread(target=read_stdin, args=(loop, session.feed, ended.set), name="qvr-stdin", daemon=True).start()
    await ended.wait()
    code = await session.close()
    writer.close(0.1)
    return code


# ---------------------------------------------------------------- TCP and WebSocket


async def serve_tcp(open_session: Opener, host: str, port: int, ready: Callable[[int], None]) -> int:
    """Sessions over TCP, one per connection, until the process is told to end."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = open_session(writer.write, reader.feed_eof)
        try:
            while data := await reader.read(1 << 16):
                session.feed(data)
        except ConnectionError:
            pass
        finally:
            await session.close()
            writer.close()

    return await _listen(connected, host, port, ready)


async def serve_websocket(open_session: Opener, host: str, port: int, ready: Callable[[int], None]) -> int:
    """Sessions over WebSockets (RFC 6455), one message per frame, without LSP's headers."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if not await _handshake(reader, writer):
                return
            session = open_session(lambda data: writer.write(_frame(1, data.split(b"\r\n\r\n", 1)[1])), reader.feed_eof)
            try:
                while (message := await _next_message(reader, writer)) is not None:
                    session.feed(b"Content-Length: %d\r\n\r\n%b" % (len(message), message))
            finally:
                await session.close()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    return await _listen(connected, host, port, ready)


async def _listen(
    connected: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    host: str,
    port: int,
    ready: Callable[[int], None],
) -> int:
    server = await asyncio.start_server(connected, host, port)
    ready(server.sockets[0].getsockname()[1])
    async with server:
        await server.serve_forever()
    return 0


async def _handshake(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    request = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), timeout=10)
    fields: dict[bytes, bytes] = {}
    for line in request.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        fields[key.strip().lower()] = value.strip()
    key = fields.get(b"sec-websocket-key")
    # A page of any site could otherwise talk to a server on this machine.
    origin = fields.get(b"origin", b"http://localhost").partition(b"//")[2].rpartition(b":")
    local = (origin[0] or origin[2]) in (b"localhost", b"127.0.0.1", b"[::1]") or b"vscode" in origin[2]
    if key is None or b"websocket" not in fields.get(b"upgrade", b"").lower() or not local:
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        return False
    accept = base64.b64encode(hashlib.sha1(key + WEBSOCKET_GUID).digest())
    writer.write(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: %b\r\n\r\n" % accept
    )
    return True


def _frame(opcode: int, payload: bytes) -> bytes:
    """An unmasked, final frame."""
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", 0x80 | opcode, size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", 0x80 | opcode, 126, size)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, 127, size)
    return head + payload


async def _next_message(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes | None:
    """The next whole message; answers pings; None where the peer closes."""
    message = bytearray()
    while True:
        first, second = await reader.readexactly(2)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack("!H", await reader.readexactly(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", await reader.readexactly(8))
        if size + len(message) > MAX_FRAME or not second & 0x80:
            return None  # too large, or not masked as the protocol wants of a client
        mask = await reader.readexactly(4)
        payload = _unmask(await reader.readexactly(size), mask)
        match first & 0x0F:
            case 8:
                writer.write(_frame(8, b""))
                return None
            case 9:
                writer.write(_frame(10, payload))
                continue
            case 10:
                continue
            case _:
                message += payload
        if first & 0x80:
            return bytes(message)


def _unmask(payload: bytes, mask: bytes) -> bytes:
    size = len(payload)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")
