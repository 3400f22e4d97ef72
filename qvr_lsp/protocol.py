"""pygls's protocol, with what it lacks.  Each override says why it is there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from concurrent.futures import Future
from functools import partial
from inspect import isawaitable, isgenerator
from typing import TYPE_CHECKING, Any, cast

from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
    JsonRpcRequestCancelled,
    JsonRpcServerNotInitialized,
)
from pygls.io_ import WebSocketWriter
from pygls.protocol import LanguageServerProtocol, lsp_method

from qvr_lsp.converter import typed
from qvr_lsp.messages import COMMANDS, PARAMS
from qvr_lsp.progress import FreedProgress
from qvr_lsp.serialising import Encoded, encoded
from qvr_lsp.streams import OrderedWebSocketWriter

if TYPE_CHECKING:
    from cattrs import Converter
    from pygls.lsp.server import LanguageServer
    from pygls.workspace import Workspace

log = logging.getLogger("qvr.rpc")

NO_TYPES = (None, None, None)
BEFORE_INITIALIZE = (types.INITIALIZE, types.EXIT, types.SET_TRACE)


class RequestFailed(JsonRpcException):
    """The request was right, and could not be done; pygls has no class for it."""

    CODE = -32803
    MESSAGE = "Request Failed"


class QvrProtocol(LanguageServerProtocol):
    """Each message is a task, begun once everything that has arrived is read: a request that is cancelled while it
    waits is never begun, and edits that arrive together are published once."""

    def __init__(self, server: LanguageServer, converter: Converter) -> None:
        super().__init__(server, converter)
        self.progress = FreedProgress(self)
        self.client_capabilities = types.ClientCapabilities()
        self._initialized = False
        self._tasks: set[asyncio.Future[Any]] = set()

    @property
    def is_shut_down(self) -> bool:
        """Whether the editor has said that it is about to end the server."""
        return self._shutdown

    # ------------------------------------------------------------ in

    def structure_message(self, data: Any) -> Any:
        """pygls gives up a request whose parameters have a wrong type, without an answer: the types come later."""
        return data

    def handle_message(self, message: Any) -> None:
        """pygls takes what is no message for an error of its own, and reads types where nobody can be answered any
        more.  Anything may arrive."""
        match message:
            case {"method": str(method), "id": int() | str() as identity} if not isinstance(identity, bool):
                self._handle_request(identity, method, message.get("params"))
            case {"method": types.CANCEL_REQUEST, "params": {"id": int() | str() as identity}} if "id" not in message:
                self._handle_cancel_notification(identity)
            case {"method": str(method)} if "id" not in message:
                self._handle_notification(method, message.get("params"))
            case {"id": int() | str() as identity, "error": {"code": int(code), "message": str(text)}} if (
                "method" not in message
            ):
                self._handle_response(identity, None, types.ResponseError(code, text))
            case {"id": int() | str() as identity, "result": result} if "method" not in message:
                self._handle_response(identity, result)
            case _:
                log.warning("a message is neither a request nor an answer")
                self._send_response(None, error=JsonRpcInvalidRequest("not a message").to_response_error())

    def unreadable(self, error: Exception) -> None:
        """Answer what is no JSON."""
        log.warning("a message could not be read (%s)", type(error).__name__)
        self._send_response(None, error=JsonRpcParseError("not a message").to_response_error())

    def _handle_request(self, msg_id: int | str, method_name: str, params: Any) -> None:
        """pygls begins a request before it has read that it is cancelled, and stops no coroutine."""
        task = asyncio.ensure_future(self._answer(msg_id, method_name, params))
        self._request_futures[msg_id] = task  # type: ignore[assignment]
        task.add_done_callback(partial(self._answered, msg_id=msg_id, method=method_name))

    def _handle_notification(self, method_name: str, params: Any) -> None:
        """pygls keeps what it has begun for ever, and writes parameters into its log."""
        task = asyncio.ensure_future(self._answer(None, method_name, params))
        self._tasks.add(task)
        task.add_done_callback(partial(self._noticed, method=method_name))

    def _handle_cancel_notification(self, msg_id: int | str) -> None:
        """pygls lets an editor cancel the server's own requests."""
        if isinstance(self._request_futures.get(msg_id), asyncio.Future):
            super()._handle_cancel_notification(msg_id)

    def _handle_response(self, msg_id: Any, result: Any = None, error: types.ResponseError | None = None) -> None:
        """pygls takes an answer for the editor's own request too, and one of a wrong type for none."""
        if not isinstance(self._request_futures.get(msg_id), Future):
            return
        kind = self._result_types.pop(msg_id, None)
        if error is None and kind is not None:
            try:
                message = {"id": msg_id, "jsonrpc": self.VERSION, "result": result}
                result = self._converter.structure(message, kind).result
            except Exception:
                error = JsonRpcInvalidParams("the answer has not the form that it should").to_response_error()
        super()._handle_response(msg_id, result, error)

    async def _answer(self, msg_id: int | str | None, method: str, params: Any) -> Any:
        self._ctx_msg_id.set(msg_id)
        if self.trace != types.TraceValue.Off and method != types.SET_TRACE:
            self.notify(types.LOG_TRACE, types.LogTraceParams(method))
        handler = self._get_handler(method)
        kind = PARAMS[method] if method in PARAMS else types.METHOD_TO_TYPES.get(method, NO_TYPES)[2]
        return await self._completed(handler, (typed(params, kind, method),))

    async def _completed(self, handler: Callable[..., Any], args: Any, kwargs: Any = None) -> Any:
        """What a handler gives, be it a function, a coroutine, or a generator of pygls that waits for others."""
        result: Any = handler(*args, **(kwargs or {}))
        if isgenerator(result):
            steps = cast("Generator[Any, Any, Any]", result)
            value: Any = None
            try:
                while True:
                    value = await self._completed(*steps.send(value))
            except StopIteration as end:
                return end.value
        return await result if isawaitable(result) else result

    def _get_handler(self, feature_name: str) -> Any:
        """pygls answers what comes before `initialize`, and nothing at all after `shutdown`."""
        if self._shutdown and feature_name != types.EXIT:
            raise JsonRpcInvalidRequest("the server was told to shut down")
        if not self._initialized and feature_name not in BEFORE_INITIALIZE:
            raise JsonRpcServerNotInitialized("`initialize` comes first")
        return super()._get_handler(feature_name)

    # ------------------------------------------------------------ out

    @property
    def registered(self) -> Any:
        """pygls's features and commands, whose types it leaves open."""
        return self.fm

    def _answered(self, future: asyncio.Future[Any], msg_id: int | str, method: str) -> None:
        begun: Any = self._request_futures.get(msg_id)
        if begun is future:
            del self._request_futures[msg_id]
        if future.cancelled():
            error: Exception | None = JsonRpcRequestCancelled(f'Request with id "{msg_id}" is canceled')
        else:
            error = future.exception()  # type: ignore[assignment]
        if error is None:
            self._send_response(msg_id, future.result())
        elif isinstance(error, JsonRpcException):
            self._send_response(msg_id, error=error.to_response_error())
        else:
            # pygls sends the traceback along, in which there may be a text
            log.error("%s failed", method, exc_info=error)
            message = f"{method} failed inside the server ({type(error).__name__}); see its log"
            self._send_response(msg_id, error=JsonRpcInternalError(message).to_response_error())

    def _noticed(self, future: asyncio.Future[Any], method: str) -> None:
        self._tasks.discard(future)
        error = None if future.cancelled() else future.exception()
        if isinstance(error, JsonRpcException):
            log.warning("%s is left out: %s", method, error.message)
        elif error is not None:
            log.error("%s failed", method, exc_info=error)

    def _send_response(self, msg_id: Any, result: Any = None, error: types.ResponseError | None = None) -> None:
        """pygls has the converter copy each answer; what is JSON already goes out as it is."""
        if error is not None:
            part = f'"error":{encoded({"code": error.code, "message": error.message})}'
        else:
            part = f'"result":{result if isinstance(result, Encoded) else encoded(result)}'
        self._write(f'"id":{encoded(msg_id)},{part}')

    def notify(self, method: str, params: Any = None) -> None:
        """The same for notifications."""
        self._write(f'"method":{encoded(method)},"params":{params if isinstance(params, Encoded) else encoded(params)}')

    def _send_data(self, data: Any) -> None:
        """pygls writes whole messages into its log, and shows a message box where one cannot be sent."""
        self._write(encoded(data)[1:-1], version="")

    def _write(self, members: str, version: str = '"jsonrpc":"2.0",') -> None:
        if self.writer is not None:
            body = f"{{{version}{members}}}".encode("ascii")
            header = b"Content-Length: %d\r\n\r\n" % len(body) if self._include_headers else b""
            self.writer.write(header + body)

    def set_writer(self, writer: Any, include_headers: bool = True) -> None:
        """pygls's loop over a WebSocket brings a writer of its own, whose messages may overtake one another."""
        if isinstance(writer, WebSocketWriter):
            writer = OrderedWebSocketWriter(writer)
        super().set_writer(writer, include_headers)

    def stop(self) -> None:
        """The editor is gone: nothing more is said, and what is under way for it is cancelled."""
        if isinstance(self.writer, OrderedWebSocketWriter):
            self.writer.stop()
        self.writer = None
        for future in (*self._request_futures.values(), *self._tasks):
            future.cancel()

    # ------------------------------------------------------------ what pygls does by itself

    def use(self, workspace: Workspace) -> None:
        """pygls has a workspace of its own before it asks: this one keeps our documents."""
        self._workspace = workspace

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """pygls answers it twice, and has neither `experimental` nor what depends on the user's settings."""
        if self._initialized:
            raise JsonRpcInvalidRequest("`initialize` came twice")
        result = yield from super().lsp_initialize(params)
        self._initialized = True
        self._server.announce(result.capabilities)  # type: ignore[attr-defined]
        return result

    @lsp_method(types.EXIT)
    def lsp_exit(self, *args: Any) -> Generator[Any, Any, None]:
        """pygls ends the process, which over a socket serves others too."""
        self._server.end()  # type: ignore[attr-defined]
        yield from ()

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Generator[Any, Any, None]:
        """its edits, applied in order

        pygls hands them over one by one: together they are one version."""
        self.workspace.change_text_document(params.text_document, params.content_changes)  # type: ignore[attr-defined]
        yield self.registered.features[types.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    def lsp_workspace__execute_command(self, params: types.ExecuteCommandParams) -> Generator[Any, Any, Any]:
        """see Runs

        pygls wants an argument where an editor has none to give, and says of a wrong one only that it is."""
        if params.command not in self.registered.commands:
            known = ", ".join(self.registered.commands)
            raise JsonRpcInvalidParams(f"unknown command `{params.command}`: one of {known}")
        given: Any = params.arguments[0] if params.arguments else {}
        given = {"uri": given} if isinstance(given, str) else given
        argument = typed(given, COMMANDS[params.command], params.command)
        return (yield self.registered.commands[params.command], (argument,), None)
