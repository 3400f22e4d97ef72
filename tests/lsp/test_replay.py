"""A fake editor replays random edits: what is published is what a check of the same text from scratch finds."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types

from qvr_core.analysis import Analyzer
from qvr_core.disk import Disk
from qvr_core.syntax.source import Encoding
from qvr_core.workspace import Workspace
from qvr_lsp.diagnostic_conversion import convert
from qvr_lsp.features import server
from qvr_lsp.language_server import QvrLanguageServer
from tests.lsp.editor import EXAMPLES, FULL, ROOT, Editor

FEW, SOME, EDITS = 50, 600, 2000
BURST, WARM = 20, 20
"""Edits that are sent at once, and bursts after which the server holds what it will hold."""
LINE_END = re.compile(r"\r\n|\n|\r")
PIECES = (
    "a", "_", "x1", " ", "  ", "\n", "\r\n", "\r", "    ", "\t", "(", ")", "[", "]", ",", ":", "=", ">>", " @ ",
    "~",
    "->", "<-", "#", "#!",
    '"', "3", "0.5", "_", "é", "🦄", "👩‍🔬", "\u2028", "\x0c", "\x85", "object ", "morphism ", "let ",
    "program ", "export ", "sample ", "observe ", "return ", "Real 3", "FinSet 4", "role=", "scan(", "fan(", "Normal",
    "object A : Real 3\n", "    let z = h\n",
)  # fmt: skip


class Text:
    """The editor's own copy of a text, kept without any code of the server's."""

    def __init__(self, text: str, encoding: str) -> None:
        self.text = text
        self.encoding = encoding

    def position(self, offset: int) -> dict[str, int]:
        line, start = 0, 0
        for match in LINE_END.finditer(self.text):
            if match.end() > offset:
                break
            line, start = line + 1, match.end()
        return {"line": line, "character": units(self.text[start:offset], self.encoding)}

    def places(self) -> list[int]:
        """Offsets that a cursor may have: not between a carriage return and its line feed."""
        inside = {match.start() + 1 for match in re.finditer("\r\n", self.text)}
        return [offset for offset in range(len(self.text) + 1) if offset not in inside]

    def edit(self, start: int, end: int, new: str) -> dict[str, Any]:
        change = {"range": {"start": self.position(start), "end": self.position(end)}, "text": new}
        self.text = self.text[:start] + new + self.text[end:]
        return change


def units(text: str, encoding: str) -> int:
    if encoding == "utf-32":
        return len(text)
    return len(text.encode(encoding if encoding == "utf-8" else "utf-16-le")) // (1 if encoding == "utf-8" else 2)


def random_edit(text: Text, dice: random.Random, undo: list[tuple[int, int, str]]) -> dict[str, Any]:
    places = text.places()
    if undo and dice.random() < 0.45:
        start, end, old = undo.pop()
        if start in places and end in places:
            return text.edit(start, end, old)
        undo.clear()
    index = dice.randrange(len(places))
    start = places[index]
    end = places[min(len(places) - 1, index + (0 if dice.random() < 0.6 else dice.randint(1, 30)))]
    new = "".join(dice.choices(PIECES, k=dice.randint(0 if end > start else 1, 3)))
    if len(undo) < 40:
        undo.append((start, start + len(new), text.text[start:end]))
    else:
        undo.clear()
    return text.edit(start, end, new)


def client(encoding: Encoding) -> QvrLanguageServer:
    """The server of an editor that counts columns so."""
    made = server.sibling()
    made.open_workspace(types.InitializeParams(types.ClientCapabilities()), encoding)
    return made


REQUESTS = (
    ("textDocument/hover", True),
    ("textDocument/completion", True),
    ("textDocument/definition", True),
    ("textDocument/documentHighlight", True),
    ("textDocument/signatureHelp", True),
    ("textDocument/semanticTokens/full", False),
    ("textDocument/documentSymbol", False),
    ("textDocument/codeLens", False),
    ("textDocument/foldingRange", False),
    ("textDocument/formatting", False),
)


ENCODINGS = ("utf-8", "utf-16", "utf-32")
NAMES = sorted(path.stem for path in EXAMPLES.glob("?*.qvr"))
# Each example in one encoding by the hundred in `make test`, the first by more hundreds; in `make slow` all are in all
# encodings by the thousand.
CASES = [
    pytest.param(name, encoding, EDITS, marks=pytest.mark.slow)
    for number, name in enumerate(NAMES)
    for encoding in ENCODINGS[number % 3 :] + ENCODINGS[: number % 3]
] + [(name, ENCODINGS[number % 3], FEW if number else SOME) for number, name in enumerate(NAMES)]


async def begun(encoding: Encoding) -> Editor:
    editor = await Editor.start()
    answer = await editor.initialize({**FULL, "general": {"positionEncodings": [encoding]}})
    assert answer["capabilities"]["positionEncoding"] == encoding
    return editor


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[Callable[[Encoding], Awaitable[Editor]]]:
    """The server of an encoding, for one file after another."""
    editors: dict[Encoding, Editor] = {}

    async def of(encoding: Encoding) -> Editor:
        if encoding not in editors:
            editors[encoding] = await begun(encoding)
        return editors[encoding]

    yield of
    for editor in editors.values():
        assert await editor.stop() == 0


@pytest.mark.parametrize(("name", "encoding", "edits"), CASES)
@pytest.mark.sampled(3)
async def test_random_edits(
    name: str, encoding: Encoding, edits: int, shared: Callable[[Encoding], Awaitable[Editor]]
) -> None:
    editor = await (begun if edits > FEW else shared)(encoding)
    source = (EXAMPLES / f"{name}.qvr").read_text()
    original = "# 🦄 first\r\n" + source.replace("\n", "\r\n", 8) + "# é last"
    dice = random.Random(f"{name} {encoding}")
    text, undo = Text(original, encoding), list[tuple[int, int, str]]()
    uri = f"file:///tmp/replay/{name}.qvr"
    editor.open(uri, original)
    memory = 0
    for burst in range(edits // BURST):
        asked = []
        for _ in range(BURST):
            version = editor.change(uri, random_edit(text, dice, undo))
            if dice.random() < 0.2:
                method, positioned = dice.choice(REQUESTS)
                place = text.position(dice.choice(text.places())) if positioned else None
                params = {"textDocument": {"uri": uri}, **({"position": place} if place else {}), "options": {}}
                asked.append(editor.ask(method, params)[1])
        for future in asked:
            await future  # an error response fails the test
        published = await editor.published(uri, version)
        fresh = Analyzer(text.text, None, f"/tmp/replay/{name}.qvr", Workspace(Disk())).snapshot()
        wanted = convert(client(encoding), uri, fresh)
        assert published == wanted, f"burst {burst}: {text.text!r}"
        if len(text.text) > 3 * len(original):
            version = editor.change(uri, text.edit(0, len(text.text), original))
            undo.clear()
        if burst == WARM:
            memory = editor.memory()
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    if edits > FEW:
        assert editor.memory() < memory + 12_000_000
        assert await editor.stop() == 0


def test_published_diagnostics_are_those_of_qvr_check(tmp_path: Path) -> None:
    text = (EXAMPLES / "broken" / "two_mistakes_and_a_broken_line.qvr").read_text() + "\n# 🦄\nlet é = 🦄\n"
    path = tmp_path / "broken.qvr"
    path.write_text(text)
    command = [sys.executable, "-m", "qvr_core.cli", "check", "--json", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 1, done.stderr
    checked = json.loads(done.stdout)
    published = convert(client("utf-16"), path.as_uri(), Analyzer(text).snapshot())
    assert [(item["code"], item["message"], item["range"]) for item in checked] == [
        (item["code"], item["message"], item["range"]) for item in published if item["severity"] < 4
    ] or [(item["code"], item["message"], item["range"]) for item in checked] == [
        (item["code"], item["message"], item["range"]) for item in published
    ]
