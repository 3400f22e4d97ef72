"""Over TCP and WebSockets: whoever connects must know the token, and pages of the web are kept out."""

from __future__ import annotations

import asyncio
import json
import os
import sys

import pytest
from websockets.asyncio.client import connect

from tests.lsp.editor import ROOT
from tests.patience import HANG


async def listening(*flags: str, **env: str) -> tuple[asyncio.subprocess.Process, int, str]:
    """A server that listens, its port, and the token that it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "qvr_lsp.server", *flags, stderr=asyncio.subprocess.PIPE, cwd=ROOT,
        env={**os.environ, "QVR_LOG_FILE": os.devnull, **env},
    )  # fmt: skip
    assert process.stderr is not None
    line = (await asyncio.wait_for(process.stderr.readline(), HANG)).decode()
    place, _, token = line.strip().partition(", token ")
    return process, int(place.rpartition(":")[2]), token


def greeting(token: str | None) -> bytes:
    options = {} if token is None else {"initializationOptions": {"token": token}}
    params = {"processId": None, "capabilities": {}, **options}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode()


def posted(body: bytes, head: bytes = b"") -> bytes:
    return head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


async def said_over_tcp(port: int, data: bytes) -> bytes:
    """Everything that the server says until it has answered once or closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    said = b""
    while b'"id":1' not in said and (more := await asyncio.wait_for(reader.read(65536), HANG)):
        said += more
    writer.close()
    return said


async def said_over_websocket(port: int, path: str, body: bytes, origin: bytes = b"") -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"GET %b HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n%b"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==\r\n\r\n" % (path.encode(), origin)
    )
    assert b"101" in await reader.readuntil(b"\r\n\r\n")
    mask = b"\x01\x02\x03\x04"
    masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(body))
    writer.write(b"\x81\xfe" + len(body).to_bytes(2, "big") + mask + masked)
    said = b""
    while b'"id":1' not in said and (more := await asyncio.wait_for(reader.read(65536), HANG)):
        said += more
    writer.close()
    return said


async def test_tcp_wants_its_token() -> None:
    process, port, token = await listening("--tcp", "0")
    assert b"qvr-lsp" in await said_over_tcp(port, posted(greeting(token)))
    for wrong in (None, "", token[:-1], token + "x"):
        said = await said_over_tcp(port, posted(greeting(wrong)))
        assert b"-32600" in said
        assert b"capabilities" not in said
    process.kill()
    await process.wait()


async def test_a_token_may_be_given() -> None:
    process, port, printed = await listening("--tcp", "0", QVR_LSP_TOKEN="known to the editor")
    assert printed == ""
    assert b"qvr-lsp" in await said_over_tcp(port, posted(greeting("known to the editor")))
    process.kill()
    await process.wait()


@pytest.mark.parametrize(
    "head",
    [
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        b"POST / HTTP/1.1\r\nReferer: http://evil.example/?Content-Length: 5\r\n",
        b"Referer: http://evil.example/?",
    ],
)
async def test_a_post_of_a_web_page_is_not_taken(head: bytes) -> None:
    process, port, token = await listening("--tcp", "0")
    assert await said_over_tcp(port, posted(greeting(token), head)) == b""
    process.kill()
    await process.wait()


async def test_websockets_want_the_token_in_the_address_or_in_the_first_message() -> None:
    process, port, token = await listening("--ws", "0")
    local = b"Origin: http://localhost:3000\r\n"
    assert b"qvr-lsp" in await said_over_websocket(port, f"/?token={token}", greeting(None), local)
    assert b"qvr-lsp" in await said_over_websocket(port, "/", greeting(token))
    for path in ("/", "/?token=wrong"):
        said = await said_over_websocket(port, path, greeting(None), local)
        assert b"-32600" in said
        assert b"capabilities" not in said
    process.kill()
    await process.wait()


async def test_a_frame_that_is_no_message_is_answered_and_the_next_is_read() -> None:
    process, port, token = await listening("--ws", "0")
    async with connect(f"ws://127.0.0.1:{port}/?token={token}") as socket:
        for frame in (b"{", b"[]", greeting(None), b'{"jsonrpc":"2.0","id":2,"method":"shutdown"}'):
            await socket.send(frame)
        said = [json.loads(await socket.recv()) for _ in range(4)]
    codes = [(message["id"], message.get("error", {}).get("code")) for message in said]
    assert codes == [(None, -32700), (None, -32600), (1, None), (2, None)]
    process.kill()
    await process.wait()


async def test_web_pages_of_other_sites_may_not_connect() -> None:
    process, port, token = await listening("--ws", "0")
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"GET /?token="
        + token.encode()
        + b" HTTP/1.1\r\nHost: x\r\nOrigin: https://evil.example\r\nUpgrade: websocket\r\n"
        b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==\r\n\r\n"
    )
    assert b"403" in await reader.readuntil(b"\r\n\r\n")
    process.kill()
    await process.wait()
