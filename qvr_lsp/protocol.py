"""pygls' JSON-RPC with plain dicts: no message passes through lsprotocol's types, whose conversion costs more than the
answers do.  Imported after `initialize` has been answered."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from inspect import isawaitable
from threading import Event
from typing import Any, cast

from lsprotocol.types import ResponseError, ResponseErrorMessage
from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest
from pygls.io_ import run_async
from pygls.protocol.json_rpc import (
    JsonRPCNotification,
    JsonRPCProtocol,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
)

from qvr_lsp.rpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    Encoded,
    Handler,
    Headers,
    Received,
    RpcError,
    encoded,
    frame,
    framed,
)

log = logging.getLogger("qvr.rpc")

# It logs whole messages, and every error that a client is answered with.
logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)

Message = JsonRPCRequestMessage | JsonRPCNotification | JsonRPCResponseMessage | ResponseErrorMessage


class Protocol(JsonRPCProtocol):
    """Requests are tasks, begun in the order of arrival once everything that has arrived is read: so a request that is
    cancelled while it waits is never begun."""

    def __init__(self, write: Callable[[bytes], None], handle: Handler) -> None:
        super().__init__(cast(Any, self), cast(Any, None))
        self._write = write
        self._handle = handle

    async def converse(self, headers: Headers) -> None:
        await run_async(Event(), cast(Any, headers), self, error_handler=self._unreadable)

    def take(self, body: bytes) -> None:
        """Handle one message as those of `converse` are."""
        try:
            self.handle_message(json.loads(body, object_hook=self.structure_message))
        except Exception as error:
            self._unreadable(error, JsonRpcException)

    async def ask(self, method: str, params: Any) -> Any:
        """The peer's answer.  Raises RpcError where it is an error."""
        try:
            return await self.send_request_async(method, params)
        except JsonRpcException as error:
            raise RpcError(error.code, error.message) from error

    # ------------------------------------------------------------ messages

    def structure_message(self, data: dict[str, Any]) -> Received:
        return Received(data)

    def handle_message(self, message: Any) -> None:
        super().handle_message(cast(Any, self._typed(message)))

    def _typed(self, message: Any) -> Message:
        """The class of a message that pygls tells kinds by.  Raises JsonRpcInvalidRequest for what is none."""
        match message:
            case {"method": str(method), "id": int() | str() as identity} if not isinstance(identity, bool):
                return JsonRPCRequestMessage(identity, method, self.VERSION, message.get("params"))
            case {"method": str(method)} if "id" not in message:
                return JsonRPCNotification(method, self.VERSION, message.get("params"))
            case {"id": identity, "error": {"code": int(code), "message": str(text)}} if "method" not in message:
                return ResponseErrorMessage(id=answered(identity), error=ResponseError(code, text))
            case {"id": identity, "result": result} if "method" not in message:
                return JsonRPCResponseMessage(answered(identity), self.VERSION, result)
            case _:
                raise JsonRpcInvalidRequest

    def _handle_response(self, msg_id: Any, result: Any = None, error: ResponseError | None = None) -> None:
        self._result_types.pop(msg_id, None)
        super()._handle_response(msg_id, result, error)

    def _serialize_message(self, data: Any) -> dict[str, Any]:
        fields = {field.name: getattr(data, field.name) for field in data.__attrs_attrs__}
        return {name: value for name, value in fields.items() if value is not None or name in ("id", "result")}

    def _send_data(self, data: Any) -> None:
        if isinstance(result := getattr(data, "result", None), Encoded):
            self._write(framed(f'{{"jsonrpc":"2.0","id":{encoded(data.id)},"result":{result}}}'))
        else:
            self._write(frame(data, self._serialize_message))

    def _unreadable(self, error: Exception, source: Any) -> None:
        """Answer what is no message."""
        code = PARSE_ERROR if isinstance(error, (ValueError, RecursionError)) else INVALID_REQUEST
        log.warning("a message could not be read (%s)", type(error).__name__)
        self._send_data({"jsonrpc": self.VERSION, "id": None, "error": {"code": code, "message": "not a message"}})

    # ------------------------------------------------------------ handlers

    def _get_handler(self, feature_name: str) -> Any:
        async def handler(params: Any) -> Any:
            try:
                result = self._handle(feature_name, params)
                return await result if isawaitable(result) else result
            except RpcError as error:
                raise JsonRpcException(error.message, error.code) from error
            except Exception as error:
                log.exception("%s failed", feature_name)
                message = f"{feature_name} failed inside the server ({type(error).__name__}); see its log"
                raise JsonRpcException(message, INTERNAL_ERROR) from error

        return handler

    def _handle_notification(self, method_name: str, params: Any) -> None:
        # Not pygls' way: it remembers each notification's task for ever, and wants an object of a cancellation.
        if method_name == "$/cancelRequest":
            if isinstance(params, dict) and isinstance(identity := params.get("id"), (int, str)):
                self._handle_cancel_notification(identity)
            return
        task = asyncio.ensure_future(self._get_handler(method_name)(params))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    def _report_server_error(self, error: Exception, source: Any) -> None:
        """Nothing: it is logged where it happens, and no message box pops up."""


def answered(identity: Any) -> Any:
    """The id of a request of ours that is answered; None for what cannot be one."""
    return identity if isinstance(identity, str) else None
