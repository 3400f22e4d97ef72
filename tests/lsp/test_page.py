"""The server as a web page has it: JSON in, JSON out, and neither pydantic nor processes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from qvr_lsp.page import connect

URI = "playground:/program.qvr"
TEXT = """\
import "std/priors.qvr"
object A : FinSet 2
object B : Real 3
object C : Real 4
morphism f : A -> B [role=embed]
morphism g : C -> A ~ Categorical
let h = f >> g
"""


class Page:
    """The other end of a session."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self._came = asyncio.Event()
        self.messages: list[dict[str, Any]] = []
        self.receive = connect(self._take, self._end)
        self._count = 0

    def _take(self, message: str) -> None:
        self.messages.append(json.loads(message))
        self._came.set()

    def _end(self) -> None:
        self.ended.set()

    def tell(self, method: str, params: Any) -> None:
        self.receive(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    async def ask(self, method: str, params: Any) -> Any:
        self._count += 1
        self.receive(json.dumps({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}))
        return await self.first(lambda message: message.get("id") == self._count and "method" not in message)

    async def first(self, wanted: Any) -> dict[str, Any]:
        while (found := next((message for message in self.messages if wanted(message)), None)) is None:
            self._came.clear()
            await self._came.wait()
        return found


async def opened(text: str) -> tuple[Page, dict[str, Any]]:
    page = Page()
    await page.ask("initialize", {"capabilities": {}, "initializationOptions": {"codeLens": {"enable": False}}})
    page.tell("initialized", {})
    page.tell("textDocument/didOpen", {"textDocument": {"uri": URI, "languageId": "qvr", "version": 1, "text": text}})
    found = await page.first(lambda message: message.get("method") == "textDocument/publishDiagnostics")
    return page, found["params"]


async def test_a_text_is_checked_and_answered_about() -> None:
    page, found = await opened(TEXT)
    assert [(one["code"], one["range"]["start"]) for one in found["diagnostics"] if one["severity"] == 1] == [
        ("compose-mismatch", {"line": 6, "character": 10})
    ]
    about = {"textDocument": {"uri": URI}}
    hover = await page.ask("textDocument/hover", {**about, "position": {"line": 6, "character": 8}})
    assert "f : A => B" in hover["result"]["contents"]["value"]
    assert (await page.ask("textDocument/codeLens", about))["result"] == []
    assert (await page.ask("nothing/known", {}))["error"]["code"] == -32601


async def test_what_is_no_json_is_answered_and_the_end_is_told() -> None:
    page, _ = await opened(TEXT)
    page.receive("{")
    assert page.messages[-1]["error"]["code"] == -32700
    await page.ask("shutdown", None)
    page.tell("exit", None)
    await page.ended.wait()


def test_nothing_fails_without_pydantic() -> None:
    """In a process of its own: what is loaded stays loaded."""
    from tests.patience import HANG

    done = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.stdout.splitlines()[-1:] == ["all answered"], done.stdout + done.stderr


WITHOUT = """\
import asyncio, sys
sys.modules["pydantic"] = sys.modules["pydantic_core"] = None
from tests.lsp.test_page import TEXT, URI, opened
ANYWHERE = {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 7, "character": 0}}}
PARAMS = {"textDocument": {"uri": URI}, "position": {"line": 6, "character": 8}, **ANYWHERE,
          "context": {"diagnostics": []}, "options": {"tabSize": 4, "insertSpaces": True}, "newName": "e"}
async def main():
    page, _ = await opened(TEXT)
    for name in "hover completion signatureHelp inlayHint documentSymbol formatting codeAction codeLens rename".split():
        found = await page.ask(f"textDocument/{name}", PARAMS)
        failures = [message for message in page.messages if message.get("method") == "window/logMessage"]
        assert "result" in found and not failures, (name, found, failures)
    print("all answered")
asyncio.run(main())
"""
