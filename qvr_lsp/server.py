"""The language server: wiring only.

`initialize` is answered before the analyser is imported; everything else is loaded while the editor reads the answer.
Each method's handler is a function `(session, params)` in `qvr_lsp/features`, found by `METHODS`.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import secrets
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from qvr_core import __version__
from qvr_lsp import logs
from qvr_lsp.capabilities import server_capabilities
from qvr_lsp.client import Client
from qvr_lsp.connection import Connection
from qvr_lsp.lifecycle import watch_process
from qvr_lsp.methods import METHODS
from qvr_lsp.rpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    SERVER_NOT_INITIALIZED,
    Json,
    RpcError,
)
from qvr_lsp.session import Session
from qvr_lsp.shapes import require
from qvr_lsp.transports import same_token, serve_stdio, serve_tcp, serve_websocket

if TYPE_CHECKING:
    from qvr_lsp.documents import Document
    from qvr_lsp.workspace import SettingsDocument

log = logging.getLogger("qvr.server")

# Seconds after the first file's diagnostics, and after the start, when what later questions need is loaded.
LOAD_AFTER_FILE, LOAD_AFTER_START = 0.02, 3.0

# Before a connection without the token is closed: its answer is on the way.
REFUSAL_SECONDS = 0.1

# Analysed before the first file is: the grammar's tables are read, and what is imported late is there.
FIRST_TEXT = """\
object A : FinSet 2
object B : Real 2
morphism f : A -> B [role=embed]
morphism g : B -> A ~ Categorical
let h = f >> identity(B)
program p : A -> A
    sample x : B <- Normal(0.0, 1.0)
    let z = tanh(x) * 2.0
    observe y <- g(h)
    return y
export p
"""

Answer = Callable[[Session, Any], Any]
"""What answers a method."""


class Server:
    """One editor's session."""

    def __init__(
        self,
        write: Callable[[bytes], None],
        end: Callable[[], None],
        *,
        token: str | None = None,
        more: Mapping[str, Answer] | None = None,
    ) -> None:
        """`token`: what `initializationOptions.token` must be; None asks for none.  `more`: methods beside those of the
        table."""
        self.connection = Connection(write, self.handle)
        self.session = Session(Client(self.connection), self._publish, self._publish_settings)
        self.trace = "off"
        self._end = end
        self._token = token
        self._more = more or {}
        self._state = "new"
        self._handlers: dict[str, Answer] = {}
        self._loaded = False

    def _publish(self, document: Document) -> None:
        from qvr_lsp.features.diagnostics import publish

        publish(self.session, document)
        self._load_soon(LOAD_AFTER_FILE)

    def _publish_settings(self, document: SettingsDocument) -> None:
        from qvr_lsp.features.settings_problems import publish

        publish(self.session, document)
        self.session.data_checks.ask_all()

    # ------------------------------------------------------------ dispatch

    def handle(self, method: str, params: Any) -> Any:
        """Answer a request or take a notification."""
        if self.trace != "off" and method != "$/setTrace":
            self.session.client.notify("$/logTrace", {"message": method})
        match method:
            case "initialize":
                return self._initialize(params)
            case "exit":
                return self._end()
            case "$/setTrace":
                self.trace = params.get("value", "off") if isinstance(params, dict) else "off"
                return None
            case _ if self._state == "new":
                raise RpcError(SERVER_NOT_INITIALIZED, "`initialize` comes first")
            case _ if self._state == "shutdown":
                raise RpcError(INVALID_REQUEST, "the server was told to shut down")
            case "initialized":
                return self._initialized()
            case "shutdown":
                self._state = "shutdown"
                return None
            case _:
                return self._feature(method, params)

    def _feature(self, method: str, params: Any) -> Any:
        if method in self._more:
            return self._more[method](self.session, params)
        known = METHODS.get(method)
        if known is None:
            raise RpcError(METHOD_NOT_FOUND, f"unknown method `{method}`")
        require(method, known.shape, params)
        name = known.in_settings if names_settings(params) else known.handler
        return self._handler(name)(self.session, params) if name else None

    def _handler(self, name: str) -> Answer:
        if name not in self._handlers:
            module, _, function = name.partition(":")
            self._handlers[name] = getattr(import_module(f"qvr_lsp.features.{module}"), function)
        return self._handlers[name]

    # ------------------------------------------------------------ lifecycle

    def _initialize(self, params: Any) -> Json:
        if self._state != "new":
            raise RpcError(INVALID_REQUEST, "`initialize` came twice")
        if not isinstance(params, dict):
            raise RpcError(INVALID_PARAMS, "`initialize` wants an object")
        options = params.get("initializationOptions")
        if self._token is not None and not same_token(
            options.get("token") if isinstance(options, dict) else None, self._token
        ):
            asyncio.get_running_loop().call_later(REFUSAL_SECONDS, self._end)
            raise RpcError(
                INVALID_REQUEST, "`initializationOptions.token` is not the token that the server was started with"
            )
        client = self.session.client
        client.initialize(params.get("capabilities"), options)
        self.trace = params.get("trace") or "off"
        self._folders = [folder["uri"] for folder in params.get("workspaceFolders") or () if "uri" in folder]
        if not self._folders and isinstance(params.get("rootUri"), str):
            self._folders = [params["rootUri"]]
        self._state = "running"
        logs.to_editor(client, client.settings.log_level)
        if isinstance(params.get("processId"), int):
            watch_process(params["processId"], self._end)
        asyncio.get_running_loop().call_soon(self._warm)
        return {
            "capabilities": server_capabilities(client.capabilities, client.encoding, client.settings),
            "serverInfo": {"name": "qvr-lsp", "version": __version__},
        }

    def _warm(self) -> None:
        load_first()
        self._load_soon(LOAD_AFTER_START)

    def _load_soon(self, seconds: float) -> None:
        """Load what later questions need, once, in a thread."""
        if not self._loaded:
            asyncio.get_running_loop().call_later(seconds, self._load_rest)

    def _load_rest(self) -> None:
        if not self._loaded:
            self._loaded = True
            names = sorted({f"qvr_lsp.features.{method.handler.partition(':')[0]}" for method in METHODS.values()})
            asyncio.get_running_loop().run_in_executor(
                None, load_modules, [*names, "qvr_lsp.runs.processes", "qvr_core.dependence.library"]
            )

    def _initialized(self) -> Any:
        from qvr_lsp.features.configuration import register_watchers

        self.session.workspace.open_folders(self._folders)
        return register_watchers(self.session)

    @property
    def exit_code(self) -> int:
        return 0 if self._state == "shutdown" else 1

    async def close(self) -> int:
        """Stop everything this session started."""
        self.connection.stop()
        self.session.stop()
        return self.exit_code


@cache
def load_first() -> None:
    """Load what the first file needs, once a process, while the editor is still busy."""
    from qvr_lsp.updates import analyzer_of, with_diagnostics

    import_module("qvr_lsp.documents")
    with_diagnostics(analyzer_of(FIRST_TEXT))


def load_modules(names: list[str]) -> None:
    for name in names:
        import_module(name)


def names_settings(params: Any) -> bool:
    """True where a request is about a qvr.toml."""
    document = params.get("textDocument") if isinstance(params, dict) else None
    return isinstance(document, dict) and str(document.get("uri", "")).endswith("/qvr.toml")


# ---------------------------------------------------------------- command line


def arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="qvr-lsp", description="Language server for QVR, over stdin and stdout.")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--stdio", action="store_true", help="speak over stdin and stdout (the default)")
    group.add_argument("--tcp", type=int, metavar="PORT", help="listen on a TCP port; 0 takes a free one")
    group.add_argument("--ws", type=int, metavar="PORT", help="listen for WebSockets; 0 takes a free one")
    group.add_argument("--play", metavar="FOLDER", help="serve the playground's page, and this folder (see `qvr play`)")
    parser.add_argument(
        "--token",
        default=os.environ.get("QVR_LSP_TOKEN"),
        help="what a client of --tcp and --ws must know (default: $QVR_LSP_TOKEN, else a new one that is printed)",
    )
    parser.add_argument("--port", type=int, default=0, help="of --play; 0 takes a free one")
    parser.add_argument("--no-open", action="store_true", help="of --play: open no browser")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--clientProcessId", type=int, default=None, help="end when this process does")
    parser.add_argument("--version", action="version", version=f"qvr-lsp {__version__}")
    return parser.parse_args(argv)


async def serve(options: argparse.Namespace) -> int:
    if options.clientProcessId:
        watch_process(options.clientProcessId, lambda: os._exit(1))

    if options.play is not None:
        from qvr_lsp.play.serving import serve_page

        return await serve_page(Server, options.play, options.port, opened=not options.no_open)
    if options.tcp is None and options.ws is None:
        return await serve_stdio(Server)
    token = options.token or secrets.token_urlsafe(24)

    def ready(port: int) -> None:
        shown = "" if options.token else f", token {token}"
        print(f"listening on {options.host}:{port}{shown}", file=sys.stderr, flush=True)

    if options.tcp is not None:
        return await serve_tcp(Server, options.host, options.tcp, token, ready)
    return await serve_websocket(Server, options.host, options.ws, token, ready)


def main(argv: list[str] | None = None) -> None:
    """Entry point of `qvr-lsp`."""
    options = arguments(argv)
    logs.to_file()
    code = 1
    try:
        # Not `asyncio.run`: that would wait for threads, and a first analysis can take seconds.
        code = asyncio.new_event_loop().run_until_complete(serve(options))
    except KeyboardInterrupt:
        pass
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
