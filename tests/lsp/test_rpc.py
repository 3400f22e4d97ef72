"""Framing and dispatch, without a process."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from qvr_lsp.rpc import Connection, Framer, RpcError, frame


def body(data: bytes) -> Any:
    return json.loads(data.split(b"\r\n\r\n", 1)[1])


class Wire:
    """A connection whose answers are kept."""

    def __init__(self, handle: Any) -> None:
        self.sent: list[Any] = []
        self.connection = Connection(lambda data: self.sent.append(body(data)), handle)

    def feed(self, *messages: Any) -> None:
        self.connection.feed(b"".join(frame(message) for message in messages))


def call(identity: Any, method: str, params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}


def test_messages_may_arrive_in_any_pieces() -> None:
    data = frame(call(1, "a")) + frame(call(2, "b"))
    for size in (1, 3, 7, len(data)):
        framer = Framer()
        bodies = [found for start in range(0, len(data), size) for found in framer.feed(data[start : start + size])]
        assert [json.loads(found)["id"] for found in bodies] == [1, 2]


def test_garbage_between_messages_is_skipped() -> None:
    framer = Framer()
    found = framer.feed(b"garbage\r\n\r\n" + frame(call(1, "a")) + b"Content-Length: x\r\n\r\n" + frame(call(2, "b")))
    assert [json.loads(data)["id"] for data in found] == [1, 2]


def test_endless_header_does_not_grow_the_buffer() -> None:
    framer = Framer()
    for _ in range(100):
        framer.feed(b"x" * 10_000)
    assert [json.loads(found)["id"] for found in framer.feed(b"\r\n\r\n" + frame(call(1, "a")))] == [1]


def test_numbers_that_json_lacks_travel_as_null() -> None:
    assert body(frame({"loss": float("nan"), "all": [float("inf"), 1.0]})) == {"loss": None, "all": [None, 1.0]}


async def test_errors_have_the_codes_of_the_protocol() -> None:
    def handle(method: str, params: Any) -> Any:
        if method == "known":
            raise RpcError(-32803, "no")
        raise ZeroDivisionError

    wire = Wire(handle)
    wire.connection.feed(b"Content-Length: 3\r\n\r\n{,}")
    wire.feed([1, 2], {"jsonrpc": "2.0", "id": 7}, call(True, "known"), call(1, "known"), call(2, "bug"))
    codes = [(message["id"], message["error"]["code"]) for message in wire.sent]
    assert codes == [(None, -32700), (None, -32600), (7, -32600), (None, -32600), (1, -32803), (2, -32603)]
    assert "ZeroDivisionError" in wire.sent[-1]["error"]["message"]


async def test_request_cancelled_in_the_queue_is_never_begun() -> None:
    begun: list[str] = []

    def handle(method: str, params: Any) -> Any:
        begun.append(method)

    wire = Wire(handle)
    wire.feed(call(1, "slow"), call(2, "next"), {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}})
    assert begun == ["next"]
    assert [(message["id"], message.get("error", {}).get("code")) for message in wire.sent] == [(1, -32800), (2, None)]


async def test_cancelled_request_stops_working_and_is_answered() -> None:
    stopped = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    wire = Wire(lambda method, params: work())
    wire.feed(call("a", "slow"))
    await asyncio.sleep(0.01)
    wire.feed({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "a"}})
    await asyncio.wait_for(stopped.wait(), 1)
    await asyncio.sleep(0)
    assert wire.sent == [{"jsonrpc": "2.0", "id": "a", "error": {"code": -32800, "message": "cancelled"}}]


async def test_request_cancelled_before_its_first_step_is_answered() -> None:
    async def work() -> None:
        await asyncio.sleep(0)

    wire = Wire(lambda method, params: work())
    wire.feed(call(1, "slow"))
    wire.feed({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}})
    await asyncio.sleep(0.01)
    assert [message["error"]["code"] for message in wire.sent] == [-32800]


async def test_own_requests_get_their_answers() -> None:
    wire = Wire(lambda method, params: None)
    asked = asyncio.ensure_future(wire.connection.request("client/ask", {}))
    await asyncio.sleep(0)
    wire.feed({"jsonrpc": "2.0", "id": wire.sent[0]["id"], "result": 5})
    assert await asked == 5


def test_protocol_page_is_what_the_server_says() -> None:
    """`python scripts/protocol.py` brings it up to date."""
    from scripts.protocol import PAGE, page

    assert PAGE.read_text() == page()
