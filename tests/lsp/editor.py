"""A fake editor: drives the real server process over stdio, without any library for the protocol."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

Json = dict[str, Any]


class ResponseError(Exception):
    """The server answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Editor:
    """One server process and what it has said."""

    def __init__(self, process: asyncio.subprocess.Process, read: Callable[[bytes], Any] = json.loads) -> None:
        self.process = process
        self._decode = read
        self.notifications: deque[Json] = deque(maxlen=10_000)
        self.diagnostics: dict[str, Json] = {}
        self.arrived: deque[Any] = deque(maxlen=10_000)
        """The ids of answers, and the file and version of published diagnostics, in the order of their arrival."""
        self.requests: list[str] = []
        self.answers: dict[str, Any] = {"workspace/configuration": [{}]}
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._id = 0
        self._arrived = asyncio.Event()
        self._reader = asyncio.create_task(self._read())
        self._version: dict[str, int] = {}

    @classmethod
    async def start(
        cls,
        *arguments: str,
        env: dict[str, str] | None = None,
        cwd: Path = ROOT,
        read: Callable[[bytes], Any] = json.loads,
    ) -> Editor:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "qvr_lsp.server",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=1 << 26,
            cwd=cwd,
            env={
                **os.environ,
                "QVR_LOG_FILE": os.environ.get("QVR_TEST_LOG", os.devnull),
                "PYTHONPATH": str(ROOT),
                **(env or {}),
            },
        )
        return cls(process, read)

    @property
    def pid(self) -> int:
        return self.process.pid

    # ------------------------------------------------------------ raw

    def raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    @contextlib.contextmanager
    def in_one_write(self) -> Iterator[None]:
        """What is sent meanwhile reaches the server at once."""
        raw, sent = self.raw, list[bytes]()
        self.raw = sent.append
        try:
            yield
        finally:
            self.raw = raw
            raw(b"".join(sent))

    def send(self, message: Any) -> None:
        body = json.dumps(message).encode()
        self.raw(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    async def _read(self) -> None:
        stdout = self.process.stdout
        assert stdout is not None
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                header = await stdout.readuntil(b"\r\n\r\n")
                length = int(header.split(b":")[1])
                self._take(self._decode(await stdout.readexactly(length)))
        for future in self._pending.values():
            if not future.done():
                future.set_exception(ConnectionError("the server has ended"))
        self._arrived.set()

    def _take(self, message: Json) -> None:
        if "method" in message and "id" in message:
            self.requests.append(message["method"])
            answer = self.answers.get(message["method"])
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": answer})
        elif "method" in message:
            self.notifications.append(message)
            if message["method"] == "textDocument/publishDiagnostics":
                self.diagnostics[message["params"]["uri"]] = message["params"]
                self.arrived.append((message["params"]["uri"], message["params"].get("version")))
        elif message.get("id") in self._pending:
            future = self._pending.pop(message["id"])
            self.arrived.append(message["id"])
            if future.done():
                pass
            elif "error" in message:
                future.set_exception(ResponseError(message["error"]["code"], message["error"]["message"]))
            else:
                future.set_result(message.get("result"))
        else:
            self.notifications.append(message)
        self._arrived.set()

    # ------------------------------------------------------------ protocol

    def notify(self, method: str, params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, params: Any) -> tuple[int, asyncio.Future[Any]]:
        self._id += 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[self._id] = future
        self.send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        return self._id, future

    async def request(self, method: str, params: Any, timeout: float = HANG) -> Any:
        return await asyncio.wait_for(self.ask(method, params)[1], timeout)

    async def initialize(
        self, capabilities: Json | None = None, *, options: Json | None = None, folder: Path | None = None, **more: Any
    ) -> Json:
        folders = [{"uri": folder.as_uri(), "name": folder.name}] if folder is not None else None
        params: Json = {
            "processId": os.getpid(),
            "rootUri": folder.as_uri() if folder is not None else None,
            "capabilities": capabilities if capabilities is not None else FULL,
            "workspaceFolders": folders,
            **({"initializationOptions": options} if options else {}),
            **more,
        }
        answer = await self.request("initialize", params)
        self.notify("initialized", {})
        return answer

    async def until(self, condition: Any, timeout: float = HANG) -> Any:
        """Wait until `condition()` gives something; that."""
        try:
            async with asyncio.timeout(timeout):
                while not (found := condition()):
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError as error:
            raise TimeoutError("the server did not send what was expected") from error
        return found

    async def notification(self, method: str, condition: Any = lambda params: True, timeout: float = HANG) -> Any:
        """The parameters of a notification, past or to come."""

        def find() -> Any:
            for message in self.notifications:
                if message.get("method") == method and condition(message["params"]):
                    return message["params"]
            return None

        return await self.until(find, timeout)

    # ------------------------------------------------------------ documents

    def open(self, uri: str, text: str) -> None:
        self._version[uri] = 1
        document = {"uri": uri, "languageId": "qvr", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def change(self, uri: str, *changes: Json) -> int:
        self._version[uri] += 1
        identity = {"uri": uri, "version": self._version[uri]}
        self.notify("textDocument/didChange", {"textDocument": identity, "contentChanges": list(changes)})
        return self._version[uri]

    async def published(self, uri: str, version: int = 1, timeout: float = HANG) -> list[Json]:
        """The diagnostics of a version of a document."""

        def find() -> Any:
            held = self.diagnostics.get(uri)
            return held if held is not None and held.get("version", 0) >= version else None

        return (await self.until(find, timeout))["diagnostics"]

    async def hover(self, uri: str, line: int, character: int) -> Any:
        return await self.request("textDocument/hover", at(uri, line, character))

    # ------------------------------------------------------------ ending

    async def stop(self) -> int:
        """Shut down as an editor should; the exit code."""
        if self.process.returncode is None:
            with contextlib.suppress(ConnectionError, TimeoutError, asyncio.TimeoutError):
                await self.request("shutdown", None, timeout=HANG)
                self.notify("exit", None)
                await asyncio.wait_for(self.process.wait(), HANG)
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        self._reader.cancel()
        return self.process.returncode or 0

    def memory(self) -> int:
        """Resident bytes of the server."""
        with open(f"/proc/{self.pid}/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))

    def maps(self, word: str) -> int:
        """How many of the server's memory maps name a word."""
        with open(f"/proc/{self.pid}/maps") as file:
            return sum(word in line for line in file)


def edits_of(edit: Json) -> dict[str, list[Json]]:
    """The edits of a workspace edit, by file."""
    return {each["textDocument"]["uri"]: each["edits"] for each in edit["documentChanges"]}


def at(uri: str, line: int, character: int) -> Json:
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}


def place(text: str, needle: str, shift: int = 0, occurrence: int = 0) -> tuple[int, int]:
    """Line and column of the n-th occurrence of a word in an ASCII text, below the comment that it begins with."""
    offset = re.match(r"(#.*\n|\n)*", text).end() - 1
    for _ in range(occurrence + 1):
        offset = text.index(needle, offset + 1)
    offset += shift
    line = text.count("\n", 0, offset)
    return line, offset - (text.rfind("\n", 0, offset) + 1)


FULL: Json = {
    "general": {"positionEncodings": ["utf-16"]},
    "window": {"workDoneProgress": True},
    "workspace": {
        "configuration": True,
        "workspaceFolders": True,
        "workspaceEdit": {"documentChanges": True},
        "codeLens": {"refreshSupport": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True},
    },
    "textDocument": {
        "publishDiagnostics": {"relatedInformation": True, "versionSupport": True, "tagSupport": {"valueSet": [1, 2]}},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "completion": {"completionItem": {"snippetSupport": True}},
        "rename": {"prepareSupport": True},
    },
}
