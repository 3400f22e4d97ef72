"""Where bytes come from and go to, as pygls's loops read and write them: stdin and stdout, a socket, a WebSocket.

stdin is read by a daemon thread of its own and stdout is written by another: a pipe that is full or empty then never
stops the event loop, on any platform.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import queue
import re
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from pygls.io_ import StdoutWriter, WebSocketWriter

log = logging.getLogger("qvr.transport")

# How long a server that has lost its editor may take to stop its runs, before it is ended.
GRACE_SECONDS = 0.8

MAX_MESSAGE = 100_000_000

# Pages of other sites are refused whatever they know.
LOCAL_ORIGIN = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?|vscode-[a-z]+://.*")


def same_token(given: object, token: str) -> bool:
    """Whether a peer's token is the server's; takes as long whatever is wrong with it."""
    return isinstance(given, str) and hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def token_of(path: str) -> str:
    """The token in the address of a WebSocket, '' where there is none."""
    return parse_qs(urlsplit(path).query).get("token", [""])[0]


# ---------------------------------------------------------------- in


class ByteStream(Protocol):
    """What headers are read from."""

    async def readline(self) -> bytes: ...
    async def readexactly(self, n: int, /) -> bytes: ...


LENGTH = re.compile(rb"content-length:[ \t]*(\d{1,8})\s*$", re.IGNORECASE)
OTHER_HEADER = re.compile(rb"content-type[ \t]*:", re.IGNORECASE)


class HeaderReader:
    """A stream as pygls's loop reads it, which knows one way to write a length, and is deaf for ever after a header
    that it does not understand: no body ends its last line, so the next header stands behind one, and is found there.
    """

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._lost = False
        """Whether what is skipped now was said."""

    def readline(self) -> Awaitable[bytes]:
        return self._header()

    def readexactly(self, n: int) -> Awaitable[bytes]:
        return self._body(n)

    async def _header(self) -> bytes:
        """The next line as pygls would have it; '' at the end."""
        line = await read_line(self._stream)
        if not line or not line.strip():
            return line and b"\r\n"
        found = LENGTH.search(line)
        if found is not None:
            self._lost = False
            return b"Content-Length: %b\r\n" % found[1]
        if OTHER_HEADER.match(line) is None and not self._lost:
            self._lost = True
            log.warning("a header is not understood: what comes is left out up to the next one that is")
        return b"other: header\r\n"

    async def _body(self, size: int) -> bytes:
        try:
            return await self._stream.readexactly(size)
        except asyncio.IncompleteReadError:
            return b""  # pygls ends its loop


async def read_line(stream: ByteStream) -> bytes:
    """The next line; of an endless one as much as has been read."""
    try:
        return await stream.readline()
    except ValueError:
        return b"-"


FIRST_LINE = re.compile(rb"content-(length|type)[ \t]*:", re.IGNORECASE)


class PeekedStream:
    """A stream whose first line has been read.  What does not begin with a header speaks another protocol: a web page
    can send a POST to any port of this machine."""

    def __init__(self, stream: ByteStream, line: bytes) -> None:
        self._stream, self._line = stream, line

    @property
    def is_header(self) -> bool:
        return FIRST_LINE.match(self._line) is not None

    async def readline(self) -> bytes:
        line, self._line = self._line, b""
        return line or await self._stream.readline()

    async def readexactly(self, n: int, /) -> bytes:
        return await self._stream.readexactly(n)


def stdin_stream() -> asyncio.StreamReader:
    """Descriptor 0.  pygls reads it on the pool that works for handlers, a line at a time."""
    stream = asyncio.StreamReader()
    arguments = (asyncio.get_running_loop(), stream)
    threading.Thread(target=read_stdin, args=arguments, name="qvr-stdin", daemon=True).start()
    return stream


GOODBYE = re.compile(rb'"method"\s*:\s*"shutdown".*"method"\s*:\s*"exit"', re.DOTALL)
LAST_BYTES = 4096
"""Of what an editor has sent: room for how it says goodbye."""


def read_stdin(loop: asyncio.AbstractEventLoop, stream: asyncio.StreamReader) -> None:
    """Read descriptor 0 until it ends.  If the loop, which may be at work, does not end the process in time then, this
    thread does: with 0 after `shutdown` and `exit`, as the loop would."""
    last = b""
    while True:
        try:
            data = os.read(0, 1 << 20)
        except OSError:
            data = b""
        try:
            loop.call_soon_threadsafe(stream.feed_data, data) if data else loop.call_soon_threadsafe(stream.feed_eof)
        except RuntimeError:
            return  # the loop is closed: the process is about to end
        if not data:
            break
        last = (last + data)[-LAST_BYTES:]
    threading.Event().wait(GRACE_SECONDS)
    os._exit(0 if GOODBYE.search(last) else 1)


# ---------------------------------------------------------------- out


def redirect_stdout() -> int:
    """The descriptor of the real stdout; from here on `print` goes to stderr, so that it cannot damage the protocol."""
    out = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return out


class QueuedStdoutWriter(StdoutWriter):
    """pygls writes in the event loop, which a full pipe stops."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="qvr-stdout", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        self._queue.put(data)

    def close(self) -> None:
        """Write out what is queued, for at most a tenth of a second."""
        self._queue.put(None)
        self._thread.join(0.1)

    def _run(self) -> None:
        while (data := self._queue.get()) is not None:
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(self._descriptor, view) :]
            except OSError:
                return  # the editor has closed its end; the end of stdin stops the server


class OrderedWebSocketWriter:
    """pygls's writer sends each message in a task of its own, as bytes; here they keep their order, and are text."""

    def __init__(self, writer: WebSocketWriter) -> None:
        self._writer = writer
        self._outgoing = asyncio.Queue[bytes]()
        self._sending = asyncio.ensure_future(self._send())

    def write(self, data: bytes) -> None:
        self._outgoing.put_nowait(data)

    def close(self) -> Awaitable[None]:
        return self._writer.close()

    def stop(self) -> None:
        self._sending.cancel()

    async def _send(self) -> None:
        while True:
            text: Any = (await self._outgoing.get()).decode()
            await self._writer.write(text)


class PageWriter:
    """A web page takes each message as text."""

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send

    def write(self, data: bytes) -> None:
        self._send(data.decode("ascii"))

    def close(self) -> None:
        """A page closes nothing."""
