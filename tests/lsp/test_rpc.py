"""Messages and dispatch, without a process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio
from pygls.exceptions import JsonRpcException

from qvr_lsp import streams
from qvr_lsp.language_server import QvrLanguageServer
from qvr_lsp.protocol import RequestFailed
from qvr_lsp.streams import HeaderReader
from tests.patience import HANG

METHODS = ("a", "b", "c", "d", "ask", "losses", "known", "bug", "slow", "next", "question", "notice", "edit")


def frame(message: Any) -> bytes:
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class Kept:
    """Keeps what is written."""

    def __init__(self, sent: list[Any]) -> None:
        self._sent = sent

    def write(self, data: bytes) -> None:
        head, _, body = data.partition(b"\r\n\r\n")
        assert int(head.partition(b":")[2]) == len(body)
        message = json.loads(body)
        if message.get("id") != "hello":
            self._sent.append(message)

    def close(self) -> None:
        pass


class Wire:
    """A conversation whose answers are kept, with a server that knows `METHODS`."""

    def __init__(self, handle: Any) -> None:
        self.sent: list[Any] = []
        self.stream = asyncio.StreamReader()
        self.server = QvrLanguageServer()
        for name in (*METHODS, *(f"edit {number}" for number in range(3))):
            self.server.feature(name)(partial(handle, name))
        self.connection = self.server.protocol
        kept = Kept(self.sent)
        self.connection.set_writer(kept)
        talk = self.server.converse_over_stream(HeaderReader(self.stream), kept)
        self.talk = asyncio.ensure_future(talk)
        self.feed(call("hello", "initialize", {"processId": None, "capabilities": {}}))

    def feed(self, *messages: Any) -> None:
        self.stream.feed_data(b"".join(frame(message) for message in messages))

    async def until(self, count: int) -> list[Any]:
        """The messages sent, once there are that many."""
        async with asyncio.timeout(HANG):
            while len(self.sent) < count:
                await asyncio.sleep(0.001)
        return self.sent


def answer(method: str, params: Any) -> Any:
    return params


@pytest_asyncio.fixture(loop_scope="module")
async def wire() -> AsyncIterator[Callable[[Any], Wire]]:
    """Makes conversations that end with the test."""
    made: list[Wire] = []

    def start(handle: Any = answer) -> Wire:
        made.append(Wire(handle))
        return made[-1]

    yield start
    for each in made:
        each.talk.cancel()


def call(identity: Any, method: str, params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}


async def test_messages_may_arrive_in_any_pieces(wire: Any) -> None:
    data = frame(call(0, "known")) + frame(call(1, "a")) + frame(call(2, "b"))
    for size in (1, 3, 7, len(data)):
        peer = wire()
        for start in range(0, len(data), size):
            peer.stream.feed_data(data[start : start + size])
            await asyncio.sleep(0)
        assert [message["id"] for message in await peer.until(3)] == [0, 1, 2]


async def test_garbage_between_messages_is_skipped(wire: Any) -> None:
    peer = wire()
    peer.stream.feed_data(b"garbage\r\n\r\n" + frame(call(0, "known")))
    peer.stream.feed_data(b"garbage\r\n\r\n" + frame(call(1, "a")) + b"Content-Length: x\r\n\r\n")
    peer.stream.feed_data(frame(call(2, "b")) + b"Content-Length: 99999999999\r\n\r\n" + frame(call(3, "c")))
    peer.stream.feed_data(frame(call(4, "d")).replace(b"Content-Length: ", b"content-length:"))
    assert [message["id"] for message in await peer.until(5)] == [0, 1, 2, 3, 4]


async def test_c5_a_header_that_is_not_understood_costs_its_message_and_no_other(wire: Any) -> None:
    """Its body does not end in a line of its own: the next header stands behind it."""
    peer = wire()
    for wrong in (
        b"Content-Length 10\r\n\r\n",
        b"Content-Length: 1e3\r\n\r\n",
        b"Length: 10\r\n\r\n",
        b"\x00\xff\r\n\r\n",
    ):
        peer.stream.feed_data(wrong + json.dumps(call(1, "a")).encode())
    peer.feed(call(2, "b"), call(3, "c"))
    assert [message["id"] for message in await peer.until(2)] == [2, 3]


async def test_endless_header_does_not_grow_the_buffer(wire: Any) -> None:
    peer = wire()
    for _ in range(100):
        peer.stream.feed_data(b"x" * 10_000)
        await asyncio.sleep(0)
    assert len(peer.stream._buffer) < 200_000
    peer.stream.feed_data(b"\r\n\r\n" + frame(call(1, "a")))
    assert (await peer.until(1))[-1]["id"] == 1


async def test_numbers_that_json_lacks_travel_as_null(wire: Any) -> None:
    numbers = {"loss": float("nan"), "all": [float("inf"), 1.0]}
    peer = wire(lambda method, params: numbers)
    peer.feed(call(1, "losses"))
    assert [message["result"] for message in await peer.until(1)] == [{"loss": None, "all": [None, 1.0]}]


async def test_errors_have_the_codes_of_the_protocol(wire: Any) -> None:
    def handle(method: str, params: Any) -> Any:
        if method == "known":
            raise RequestFailed("no")
        raise ZeroDivisionError

    peer = wire(handle)
    peer.stream.feed_data(b"Content-Length: 3\r\n\r\n{,}")
    peer.feed([1, 2], {"jsonrpc": "2.0", "id": 7}, call(True, "known"), call(1, "known"), call(2, "bug"))
    sent = await peer.until(6)
    codes = [(message["id"], message["error"]["code"]) for message in sent]
    assert codes == [(None, -32700), (None, -32600), (None, -32600), (None, -32600), (1, -32803), (2, -32603)]
    assert "ZeroDivisionError" in sent[-1]["error"]["message"]


async def test_request_cancelled_in_the_queue_is_never_begun(wire: Any) -> None:
    begun: list[str] = []

    def handle(method: str, params: Any) -> None:
        begun.append(method)

    peer = wire(handle)
    peer.feed(call(1, "slow"), call(2, "next"), {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}})
    sent = await peer.until(2)
    assert begun == ["next"]
    assert {message["id"]: message.get("error", {}).get("code") for message in sent} == {1: -32800, 2: None}


async def test_messages_are_handled_in_their_order(wire: Any) -> None:
    """A question before an edit is about the text before it."""
    order: list[str] = []
    peer = wire(lambda method, params: order.append(method))
    notices = [{"jsonrpc": "2.0", "method": f"edit {number}"} for number in range(3)]
    peer.feed(call(1, "a"), notices[0], call(2, "b"), notices[1], notices[2], call(3, "c"))
    await peer.until(3)
    assert order == ["a", "edit 0", "b", "edit 1", "edit 2", "c"]


async def test_cancelled_request_stops_working_and_is_answered(wire: Any) -> None:
    stopped, begun = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(600)
        finally:
            stopped.set()

    peer = wire(lambda method, params: work())
    peer.feed(call("a", "slow"))
    await asyncio.wait_for(begun.wait(), HANG)
    peer.feed({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "a"}})
    await asyncio.wait_for(stopped.wait(), HANG)
    sent = await peer.until(1)
    assert (sent[0]["id"], sent[0]["error"]["code"]) == ("a", -32800)


async def test_what_is_under_way_ends_with_the_conversation(wire: Any) -> None:
    begun, ended = list[str](), list[str]()

    async def work(method: str) -> None:
        begun.append(method)
        try:
            await asyncio.sleep(600)
        finally:
            ended.append(method)

    peer = wire(lambda method, params: work(method))
    peer.feed(call(1, "question"), {"jsonrpc": "2.0", "method": "notice"})
    async with asyncio.timeout(HANG):
        while len(begun) < 2:
            await asyncio.sleep(0)
        peer.server.shutdown()
        while len(ended) < 2:
            await asyncio.sleep(0)
    assert peer.sent == []


async def test_own_requests_get_their_answers(wire: Any) -> None:
    peer = wire()
    good, bad = (asyncio.ensure_future(peer.connection.send_request_async("client/ask", {})) for _ in range(2))
    asked = await peer.until(2)
    peer.feed({"jsonrpc": "2.0", "id": asked[0]["id"], "result": 5})
    peer.feed({"jsonrpc": "2.0", "id": asked[1]["id"], "error": {"code": -32601, "message": "not here"}})
    assert await asyncio.wait_for(good, HANG) == 5
    with pytest.raises(JsonRpcException) as error:
        await asyncio.wait_for(bad, HANG)
    assert (error.value.code, error.value.message) == (-32601, "not here")


async def test_nothing_is_kept_of_messages_that_are_done(wire: Any) -> None:
    peer = wire()
    answers = []
    for number in range(50):
        peer.feed({"jsonrpc": "2.0", "method": "edit"}, call(number, "ask"))
        answers.append(asyncio.ensure_future(peer.connection.send_request_async("client/ask", {})))
    for message in [message for message in await peer.until(100) if "method" in message]:
        peer.feed({"jsonrpc": "2.0", "id": message["id"], "result": None})
    await asyncio.wait_for(asyncio.gather(*answers), HANG)
    connection = peer.connection
    assert not any((connection._request_futures, connection._result_types, connection._tasks))


def test_protocol_page_is_what_the_server_says() -> None:
    """`python scripts/protocol.py` brings it up to date."""
    from scripts.protocol import PAGE, page

    assert PAGE.read_text() == page()


SHUTDOWN, EXIT = {"jsonrpc": "2.0", "id": 3, "method": "shutdown"}, {"jsonrpc": "2.0", "method": "exit"}
QUOTED = {"method": "textDocument/didOpen", "params": {"text": json.dumps(SHUTDOWN) + json.dumps(EXIT)}}


@pytest.mark.parametrize(
    ("said", "code"),
    [([SHUTDOWN, EXIT], 0), ([EXIT], 1), ([SHUTDOWN], 1), ([], 1), ([EXIT, SHUTDOWN], 1), ([QUOTED], 1)],
)
@pytest.mark.parametrize("cut", [1 << 20, 7])
def test_a_loop_at_work_takes_no_goodbye_for_a_crash(
    said: list[Any], code: int, cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is at work for longer than its editor's end allows for is ended with the code that it would have."""
    sent = b"".join(frame(message) for message in [{"method": "a" * 9000}, *said])
    parts = iter([*(sent[at : at + cut] for at in range(0, len(sent), cut)), b""])
    ended: list[int] = []
    monkeypatch.setattr(streams, "os", SimpleNamespace(read=lambda file, most: next(parts), _exit=ended.append))
    monkeypatch.setattr(streams, "GRACE_SECONDS", 0.0)
    loop = asyncio.new_event_loop()
    streams.read_stdin(loop, asyncio.StreamReader(loop=loop))
    loop.close()
    assert ended == [code]
