"""HTTP and WebSockets of `qvr play` on one port of this machine: the page's files for GET, `/lsp` for the server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import signal
import sys
import webbrowser
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

from pygls.exceptions import JsonRpcException

from qvr_lsp.json_values import Json
from qvr_lsp.language_server import QvrLanguageServer
from qvr_lsp.messages import ReadParams
from qvr_lsp.play.access import Guard
from qvr_lsp.play.folder import Folder
from qvr_lsp.play.page_files import NoPage, files_of, find_page, index_with, type_of
from qvr_lsp.play.requests import register
from qvr_lsp.streams import MAX_MESSAGE, same_token, token_of

HOST, SOCKET = "127.0.0.1", "/lsp"
TOKEN_WANTED = "This page wants its token: open the address that `qvr play` has printed."

HEADERS = {
    "Cache-Control": "no-cache",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    # the pages say the rest themselves: this alone is not heard from them
    "Content-Security-Policy": "frame-ancestors 'self'",
}


async def serve_page(server: QvrLanguageServer, folder: str, port: int, *, opened: bool) -> int:
    """Serve the page and a folder until Ctrl-C; the exit code."""
    from websockets.asyncio.server import serve

    place = Path(folder)
    if not place.is_dir():
        return refused(f"there is no folder {folder}", 2)
    try:
        page = find_page()
        index_with(page, {})
    except NoPage as error:
        return refused(str(error), 1)
    token, ended = secrets.token_urlsafe(24), asyncio.Event()
    worked_in = Folder(place)
    register(server, worked_in)
    site: Site | None = None

    async def connected(websocket: ServerConnection) -> None:
        session = server.sibling()
        session.pauses_runs = True
        await session.converse_over_websocket(websocket)

    async def answered(websocket: ServerConnection, request: Request) -> Response | None:
        return await site.answer(request) if site is not None else websocket.respond(503, "Not yet.")

    quiet = logging.getLogger("qvr.play")
    quiet.setLevel(logging.WARNING)
    try:
        listening = serve(
            connected, HOST, port, process_request=answered, max_size=MAX_MESSAGE, compression=None, logger=quiet,
            server_header=None,
        )  # fmt: skip
        async with listening as running:
            taken = next(iter(running.sockets)).getsockname()[1]
            site = Site(page, worked_in, Guard(taken), token)
            address = f"http://{HOST}:{taken}/?token={token}"
            print(f"QVR works in {place.resolve()}\n{address}\nCtrl-C ends it, and its runs.", flush=True)
            if opened:
                asyncio.get_running_loop().run_in_executor(None, partial(webbrowser.open, address))
            end_on_signals(ended.set)
            await ended.wait()
    except OSError as error:
        return refused(f"port {port} of {HOST} cannot be had: {error.strerror}", 1)
    return 0


def refused(message: str, status: int) -> int:
    print(f"qvr: {message}", file=sys.stderr, flush=True)
    return status


def end_on_signals(end: Callable[[], None]) -> None:
    """Ctrl-C ends it in order, a second one at once.  Where the loop cannot do that, Python's own way stays."""
    loop = asyncio.get_running_loop()

    def first(number: int) -> None:
        loop.remove_signal_handler(number)
        end()

    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, first, number)


class Site:
    """What is answered to each request."""

    def __init__(self, page: Path, folder: Folder, guard: Guard, token: str) -> None:
        self._page = page
        self._files = files_of(page)
        self._folder = folder
        self._guard = guard
        self._token = token

    async def answer(self, request: Request) -> Response | None:
        """The answer; None where a WebSocket may be opened."""
        headers = request.headers
        refusal = self._guard.refusal(headers.get_all("Host"), headers.get_all("Origin"))
        if refusal is not None:
            return said(HTTPStatus.FORBIDDEN, refusal)
        if getattr(request, "method", "GET") != "GET":  # older versions of the library parse nothing else
            return said(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET is answered.")
        known = same_token(token_of(request.path), self._token)
        address = unquote(urlsplit(request.path).path)
        if address == SOCKET:
            return None if known else said(HTTPStatus.FORBIDDEN, TOKEN_WANTED)
        path = self._files.get(address)
        if path is None:
            return said(HTTPStatus.NOT_FOUND, "The page has no such file.")
        if path == self._files["/"]:
            return await self._index(request) if known else said(HTTPStatus.FORBIDDEN, TOKEN_WANTED)
        try:
            return response(HTTPStatus.OK, type_of(path), await asyncio.to_thread(path.read_bytes))
        except OSError:
            return said(HTTPStatus.NOT_FOUND, "The file of the page is gone.")

    async def _index(self, request: Request) -> Response:
        """The page of the program that the address names (`file=`), else of the first of the folder."""
        asked = parse_qs(urlsplit(request.path).query)
        told: Json = {"socket": f"ws://{request.headers['Host']}{SOCKET}?token={self._token}"}
        try:
            name = asked.get("file", [""])[0] or await asyncio.to_thread(self._folder.first)
            told |= await asyncio.to_thread(self._folder.read, ReadParams(path=name))
            body = await asyncio.to_thread(index_with, self._page, told)
        except JsonRpcException as error:
            return said(HTTPStatus.NOT_FOUND, error.message)
        except (OSError, NoPage):
            return said(HTTPStatus.NOT_FOUND, "The file of the page is gone.")
        return response(HTTPStatus.OK, type_of(self._files["/"]), body)


def said(status: HTTPStatus, text: str) -> Response:
    return response(status, "text/plain; charset=utf-8", f"{text}\n".encode())


def response(status: HTTPStatus, kind: str, body: bytes) -> Response:
    from websockets.datastructures import Headers
    from websockets.http11 import Response

    headers = Headers({**HEADERS, "Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close"})
    return Response(status.value, status.phrase, headers, body)
