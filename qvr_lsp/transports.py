"""Where bytes come from and go to: stdin and stdout, a TCP socket, a WebSocket.

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
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

from qvr_lsp.connection import Connection, Write
from qvr_lsp.rpc import Received

log = logging.getLogger("qvr.transport")

# How long a server that has lost its editor may take to stop its runs, before it is ended.
GRACE_SECONDS = 0.8

MAX_MESSAGE = 100_000_000

# Pages of other sites are refused whatever they know.
LOCAL_ORIGIN = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?|vscode-[a-z]+://.*")


Talk = Coroutine[Any, Any, None]
Ready = Callable[[int], None]
"""Called with the port once connections are taken."""


class ByteStream(Protocol):
    """Where a conversation comes from."""

    async def readline(self) -> bytes: ...
    async def readexactly(self, n: int, /) -> bytes: ...


class Endpoint(Protocol):
    """What a transport drives."""

    @property
    def connection(self) -> Connection: ...

    async def close(self) -> int:
        """The editor is gone: stop everything; the exit code."""
        ...


Opener = Callable[[Write, Callable[[], None]], Endpoint]
"""Makes a session from a function that writes one message and one that ends the connection."""


class TokenOpener(Protocol):
    """Makes a session that, unless `token` is None, talks only to an editor that knows it."""

    def __call__(
        self, write: Callable[[bytes], None], end: Callable[[], None], *, token: str | None = None
    ) -> Endpoint: ...


def same_token(given: object, token: str) -> bool:
    """Whether a peer's token is the server's; takes as long whatever is wrong with it."""
    return isinstance(given, str) and hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def token_of(path: str) -> str:
    """The token in the address of a WebSocket, '' where there is none."""
    return parse_qs(urlsplit(path).query).get("token", [""])[0]


async def run_session(
    open_session: Opener, write: Callable[[bytes], None], converse: Callable[[Connection], Talk]
) -> int:
    """One session, until its conversation ends or it says so; the exit code."""
    ended = asyncio.Event()
    session = open_session(write, ended.set)
    talk = asyncio.ensure_future(converse(session.connection))
    talk.add_done_callback(lambda done: ended.set())
    await ended.wait()
    if not talk.cancel() and (error := talk.exception()) is not None and not isinstance(error, ConnectionError):
        log.error("the conversation broke off", exc_info=error)
    return await session.close()


# ---------------------------------------------------------------- messages in a stream

LENGTH = re.compile(rb"content-length:[ \t]*(\d{1,8})\s*$", re.IGNORECASE)


def framed(body: bytes) -> bytes:
    """A message with its header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


async def bodies(stream: ByteStream) -> AsyncIterator[bytes]:
    """The messages of a stream until it ends, be it inside one.  What is no header is a line that is skipped."""
    length = 0
    while line := await read_line(stream):
        if not length:
            found = LENGTH.match(line)
            length = int(found[1]) if found is not None else 0
        elif not line.strip():
            try:
                yield await stream.readexactly(length)
            except asyncio.IncompleteReadError:
                return
            length = 0


async def read_line(stream: ByteStream) -> bytes:
    """The next line; of an endless one as much as has been read."""
    try:
        return await stream.readline()
    except ValueError:
        return b"-"


async def run_on_stream(open_session: Opener, stream: ByteStream, write: Callable[[bytes], None]) -> int:
    """One session over a stream; the exit code."""
    return await run_session(
        open_session, lambda body: write(framed(body)), lambda connection: connection.converse(bodies(stream))
    )


# ---------------------------------------------------------------- stdio


def redirect_stdout() -> int:
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


def read_stdin(loop: asyncio.AbstractEventLoop, stream: asyncio.StreamReader) -> None:
    """Read descriptor 0 until it ends.  If the loop does not end the process in time then, this thread does."""
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
    threading.Event().wait(GRACE_SECONDS)
    os._exit(1)


async def serve_stdio(open_session: Opener) -> int:
    """One session over stdin and stdout; the exit code."""
    writer, stream = StdoutWriter(redirect_stdout()), asyncio.StreamReader()
    arguments = (asyncio.get_running_loop(), stream)
    threading.Thread(target=read_stdin, args=arguments, name="qvr-stdin", daemon=True).start()
    code = await run_on_stream(open_session, stream, writer.write)
    writer.close(0.1)
    return code


# ---------------------------------------------------------------- TCP and WebSocket


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


async def serve_tcp(open_session: TokenOpener, host: str, port: int, token: str, ready: Ready) -> int:
    """Sessions over TCP, one per connection, until the process is told to end.  `initialize` must bring the token."""

    async def connected(stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            peeked = PeekedStream(stream, await stream.readline())
            if peeked.is_header:
                await run_on_stream(partial(open_session, token=token), peeked, writer.write)
            else:
                log.warning("a connection is refused: its first line is no header of the protocol")
        except (ValueError, ConnectionError):
            log.warning("a connection is refused: its first line has no end")
        finally:
            writer.close()

    server = await asyncio.start_server(connected, host, port)
    ready(server.sockets[0].getsockname()[1])
    await server.serve_forever()
    return 0


class Frames:
    """A connection as pygls' loop over a WebSocket sees it: one message a frame, without LSP's headers."""

    def __init__(self, connection: Connection) -> None:
        self.handle_message = connection.receive
        self.structure_message = Received

    def set_writer(self, writer: object, include_headers: bool) -> None:
        """Messages go out through a queue of ours, in order."""


async def talk_over_websocket(open_session: Opener, websocket: ServerConnection) -> int:
    """One session over a WebSocket, read by pygls, until it is closed; the exit code."""
    from pygls.io_ import run_websocket

    # It logs whole messages.
    logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)
    outgoing = asyncio.Queue[bytes]()

    async def send() -> None:
        while True:
            await websocket.send((await outgoing.get()).decode())

    def talk(connection: Connection) -> Talk:
        def reply_unreadable(error: Exception, source: type[Exception]) -> None:
            connection.reply_unreadable(error)

        frames = cast(Any, Frames(connection))
        return run_websocket(websocket, threading.Event(), frames, error_handler=reply_unreadable)

    sending = asyncio.ensure_future(send())
    try:
        return await run_session(open_session, outgoing.put_nowait, talk)
    finally:
        sending.cancel()


async def serve_websocket(
    open_session: TokenOpener, host: str, port: int, token: str, ready: Callable[[int], None]
) -> int:
    """Sessions over WebSockets.  The address must bring the token (`ws://…/?token=…`), or `initialize` does."""
    from websockets.asyncio.server import serve

    async def connected(websocket: ServerConnection) -> None:
        known = websocket.request is not None and same_token(token_of(websocket.request.path), token)
        await talk_over_websocket(partial(open_session, token=None if known else token), websocket)

    origins = [None, LOCAL_ORIGIN]
    async with serve(connected, host, port, origins=origins, max_size=MAX_MESSAGE, compression=None) as server:
        ready(next(iter(server.sockets)).getsockname()[1])
        await server.serve_forever()
    return 0
