"""The entry point of `qvr-lsp`: the server with its features, on the transport that is asked for."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import secrets
import sys
from typing import TYPE_CHECKING

from qvr_core import __version__
from qvr_lsp.lifecycle import watch_process

if TYPE_CHECKING:
    from qvr_lsp.language_server import QvrLanguageServer


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


def loaded() -> QvrLanguageServer:
    """The server with its features.  Looking for garbage while they are imported would take a fifth of the start:
    `load_first` does, once `initialize` is answered."""
    gc.disable()
    from qvr_lsp import logs
    from qvr_lsp.features import server

    logs.to_file()
    return server


async def serve(server: QvrLanguageServer, options: argparse.Namespace) -> int:
    if options.clientProcessId:
        watch_process(options.clientProcessId, lambda: os._exit(1))

    if options.play is not None:
        from qvr_lsp.play.serving import serve_page

        return await serve_page(server, options.play, options.port, opened=not options.no_open)
    if options.tcp is None and options.ws is None:
        return await server.serve_stdio()
    token = options.token or secrets.token_urlsafe(24)

    def ready(port: int) -> None:
        shown = "" if options.token else f", token {token}"
        print(f"listening on {options.host}:{port}{shown}", file=sys.stderr, flush=True)

    if options.tcp is not None:
        return await server.serve_tcp(options.host, options.tcp, token, ready)
    return await server.serve_websocket(options.host, options.ws, token, ready)


def main(argv: list[str] | None = None) -> None:
    """Entry point of `qvr-lsp`."""
    options = arguments(argv)
    code = 1
    try:
        # Not `asyncio.run`: that would wait for threads, and a first analysis can take seconds.
        code = asyncio.new_event_loop().run_until_complete(serve(loaded(), options))
    except KeyboardInterrupt:
        pass
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
