"""The language server: pygls's, with the parts of a session, and what pygls's transports lack.

Features register themselves with `server`; importing this module loads none of them, and nothing of the analyser.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine
from functools import cached_property, partial
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import JsonRpcException
from pygls.io_ import run_async, run_websocket
from pygls.lsp.server import LanguageServer

from qvr_core import __version__
from qvr_lsp.capabilities import announce_more
from qvr_lsp.converter import converter
from qvr_lsp.protocol import QvrProtocol
from qvr_lsp.settings import Settings
from qvr_lsp.streams import (
    LOCAL_ORIGIN,
    MAX_MESSAGE,
    HeaderReader,
    PageWriter,
    PeekedStream,
    QueuedStdoutWriter,
    redirect_stdout,
    same_token,
    stdin_stream,
    token_of,
)

if TYPE_CHECKING:
    from pygls.io_ import AsyncReader
    from websockets.asyncio.server import ServerConnection

    from qvr_lsp.data_checks import DataChecks
    from qvr_lsp.documents import Documents
    from qvr_lsp.positions import LineCodec
    from qvr_lsp.runs.fits import Fits
    from qvr_lsp.runs.live import Live
    from qvr_lsp.runs.processes import Runs
    from qvr_lsp.workspace import QvrWorkspace

log = logging.getLogger("qvr.server")

# pygls writes whole messages into its log.
logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)

# Before a connection without the token is closed: its answer is on the way.
REFUSAL_SECONDS = 0.1

Ready = Callable[[int], None]
"""Called with the port once connections are taken."""

F = TypeVar("F", bound=Callable[..., Any])


class QvrLanguageServer(LanguageServer):
    """One editor's session.  Each part is made on its first use: its imports take longer than a start."""

    protocol: QvrProtocol  # type: ignore[assignment]

    def __init__(self, token: str | None = None) -> None:
        """`token`: what `initializationOptions.token` must be; None asks for none."""
        cast(Any, super()).__init__("qvr-lsp", __version__, protocol_cls=QvrProtocol, converter_factory=converter)
        self.token = token
        self.settings = Settings()
        self.trusted = True
        """Whether the editor's user trusts the folders: links that imports lead over are followed only then."""
        self._background: set[asyncio.Future[Any]] = set()
        self.pauses_runs = False
        """Whether runs keep a checkpoint when the editor goes away."""
        self._shows: dict[str, Callable[..., None]] = {}
        self._end: Callable[[], None] = lambda: None

    def sibling(self, token: str | None = None) -> QvrLanguageServer:
        """A server with the same features for another connection: pygls has one connection a server."""
        made, features = QvrLanguageServer(token), self.protocol.registered
        for name, handler in features.features.items():
            made.feature(name, features.feature_options.get(name))(handler.func)
        for name, handler in features.commands.items():
            made.command(name)(handler.func)
        made._shows = self._shows
        return made

    # ------------------------------------------------------------ the parts of a session

    @property
    def workspace(self) -> QvrWorkspace:
        return self.protocol.workspace  # type: ignore[return-value]

    @property
    def codec(self) -> LineCodec:
        """Positions as this editor counts them."""
        return self.workspace.position_codec

    @cached_property
    def documents(self) -> Documents:
        from qvr_lsp.documents import Documents

        return Documents(self, partial(self._shows["document"], self))

    @cached_property
    def data_checks(self) -> DataChecks:
        from qvr_lsp.data_checks import DataChecks

        return DataChecks(self, self.documents, self.workspace)

    @cached_property
    def fits(self) -> Fits:
        from qvr_lsp.runs.fits import Fits

        return Fits(self, self.documents, self.workspace)

    @cached_property
    def runs(self) -> Runs:
        from qvr_lsp.runs.processes import Runs

        return Runs(self, self.documents, self.workspace, self.fits)

    @cached_property
    def live(self) -> Live:
        from qvr_lsp.runs.live import Live

        return Live(self, self.documents, self.workspace)

    def made(self, name: str) -> Any:
        """A part of the session where it was used; else None."""
        return self.__dict__.get(name)

    @property
    def open_documents(self) -> int:
        return sum(1 for _ in self.made("documents") or ())

    @property
    def active_runs(self) -> int:
        """How many runs are under way."""
        return self.runs.active if self.made("runs") is not None else 0

    def text_changed(self, uri: str, position: types.Position | None = None) -> None:
        """What is under way for the text before, which was edited at `position`."""
        if self.made("live") is not None:
            self.live.edited(uri, position)

    def open_workspace(self, params: types.InitializeParams, encoding: types.PositionEncodingKind | str | None) -> None:
        """pygls keeps texts in lines that are not LSP's; this workspace keeps our documents."""
        from qvr_lsp.workspace import QvrWorkspace

        folders = list(params.workspace_folders or ())
        if not folders and params.root_uri is not None:
            folders = [types.WorkspaceFolder(params.root_uri, params.root_uri)]
        show = partial(self._shows["settings"], self)
        self.protocol.use(QvrWorkspace(lambda: self.documents, show, params.root_uri, folders, encoding))

    def shows(self, kind: str) -> Callable[[F], F]:
        """Decorator: what shows the problems of a text that has changed, a `document` or its `settings`."""

        def registered(show: F) -> F:
            self._shows[kind] = show
            return show

        return registered

    # ------------------------------------------------------------ the editor

    def get(self, path: str) -> Any:
        """The editor's capability at `a.b.c`; None where it has none."""
        return get_capability(self.client_capabilities, path)  # type: ignore[call-overload]

    def has(self, path: str) -> bool:
        """Whether the editor has a capability: an object counts, empty or not."""
        return self.get(path) not in (None, False)

    def refresh(self, *features: str) -> None:
        """Let the editor ask again for `inlay_hint`, `code_lens`, `diagnostics`, where it can be told to."""
        asked = {
            "inlay_hint": self.workspace_inlay_hint_refresh_async,
            "code_lens": self.workspace_code_lens_refresh_async,
            "diagnostics": self.workspace_diagnostic_refresh_async,
        }
        for feature in features:
            if self.has(f"workspace.{feature}.refresh_support"):
                self.spawn(unless_refused(asked[feature](None)))

    def announce(self, capabilities: types.ServerCapabilities) -> None:
        """Add to the answer to `initialize` what pygls does not know."""
        announce_more(capabilities, self)

    def report_server_error(self, error: Exception, source: type[Exception]) -> None:
        """pygls shows a message box for each message that it cannot read."""
        if source is JsonRpcException:
            self.protocol.unreadable(error)
        else:
            log.error("the server failed (%s)", type(error).__name__)

    # ------------------------------------------------------------ background work

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine to its end, in the background; a failure is logged."""
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Future[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background work failed", exc_info=error)

    # ------------------------------------------------------------ the end

    def end(self) -> None:
        """The conversation is over."""
        self._end()

    def refuse(self) -> None:
        """The same, once the answer that says why is on its way."""
        asyncio.get_running_loop().call_later(REFUSAL_SECONDS, self.end)

    def shutdown(self) -> None:
        """The editor is gone: end what was started for it.  pygls waits for threads, and closes the socket that others
        use."""
        self.protocol.stop()
        for part in ("runs", "live", "data_checks", "documents"):
            if (made := self.made(part)) is not None:
                made.stop()
        for task in list(self._background):
            task.cancel()

    @property
    def exit_code(self) -> int:
        return 0 if self.protocol.is_shut_down else 1

    # ------------------------------------------------------------ transports

    def connect(self, send: Callable[[str], None], end: Callable[[], None]) -> Callable[[str], None]:
        """A page: what takes its messages, as JSON; `send` takes the server's."""
        self._end = end
        self.protocol.set_writer(PageWriter(send), include_headers=False)
        return self.receive

    def receive(self, message: str) -> None:
        try:
            self.protocol.handle_message(json.loads(message))
        except (ValueError, RecursionError) as error:
            self.report_server_error(error, JsonRpcException)

    async def converse(self, talk: Coroutine[Any, Any, None]) -> None:
        """One of pygls's loops, until it has read everything or one side ends it; then nothing goes on for it."""
        ended = asyncio.Event()
        self._end = ended.set
        talking = asyncio.ensure_future(talk)
        talking.add_done_callback(lambda done: ended.set())
        try:
            await ended.wait()
        finally:
            stopped = talking.cancel()
        error = None if stopped else talking.exception()
        if error is not None and not isinstance(error, ConnectionError):
            log.error("the conversation broke off", exc_info=error)
        if self.pauses_runs and self.made("runs") is not None:
            await self.runs.pause_all()
        self.shutdown()

    async def converse_over_stream(self, reader: AsyncReader, writer: Any) -> None:
        self.protocol.set_writer(writer)
        await self.converse(run_async(Event(), reader, self.protocol, error_handler=self.report_server_error))

    async def converse_over_websocket(self, websocket: ServerConnection) -> None:
        talk = run_websocket(websocket, Event(), self.protocol, error_handler=self.report_server_error)
        await self.converse(talk)

    async def serve_stdio(self) -> int:
        """pygls's `start_io` with a reader and a writer that leave the event loop alone; the exit code."""
        writer = QueuedStdoutWriter(redirect_stdout())
        await self.converse_over_stream(HeaderReader(stdin_stream()), writer)
        writer.close()
        return self.exit_code

    async def serve_tcp(self, host: str, port: int, token: str, ready: Ready) -> int:
        """pygls's `start_tcp` for more than one connection, until the process is told to end.  `initialize` must bring
        the token."""

        async def connected(stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                peeked = PeekedStream(stream, await stream.readline())
                if peeked.is_header:
                    await self.sibling(token).converse_over_stream(HeaderReader(peeked), writer)
                else:
                    log.warning("a connection is refused: its first line is no header of the protocol")
            except (ValueError, ConnectionError):
                log.warning("a connection is refused: its first line has no end")
            finally:
                writer.close()

        listening = await asyncio.start_server(connected, host, port)
        ready(listening.sockets[0].getsockname()[1])
        await listening.serve_forever()
        return 0

    async def serve_websocket(self, host: str, port: int, token: str, ready: Ready) -> int:
        """pygls's `start_ws` likewise.  The address must bring the token (`ws://…/?token=…`), or `initialize` does."""
        from websockets.asyncio.server import serve

        async def connected(websocket: ServerConnection) -> None:
            known = websocket.request is not None and same_token(token_of(websocket.request.path), token)
            await self.sibling(None if known else token).converse_over_websocket(websocket)

        origins = [None, LOCAL_ORIGIN]
        async with serve(connected, host, port, origins=origins, max_size=MAX_MESSAGE, compression=None) as listening:
            ready(next(iter(listening.sockets)).getsockname()[1])
            await listening.serve_forever()
        return 0


async def unless_refused(asked: Coroutine[Any, Any, Any]) -> Any:
    """What the editor answers; None where it refuses."""
    try:
        return await asked
    except JsonRpcException:
        return None


server = QvrLanguageServer()
"""What features register themselves with; it serves stdin, and other connections by its siblings."""
