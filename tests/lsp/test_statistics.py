"""A session of one server with the programs of examples/statistics: opened, broken, mended, asked about."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.lsp.editor import EXAMPLES, Editor, at

STATISTICS = EXAMPLES / "statistics"
PROGRAMS = sorted(STATISTICS.glob("?*.qvr"))
ERROR = 1
FAMILY = re.compile(r"<-\s*([A-Z]\w+)\(")
GATHER = re.compile(r"<-.*?\b\w+\[([A-Za-z_]\w*)[\],]")


class Word(NamedTuple):
    """A word of a text, and where it stands."""

    text: str
    line: int
    character: int

    @property
    def range(self) -> dict[str, Any]:
        return self.ranging(self.text)

    def ranging(self, text: str) -> dict[str, Any]:
        """The place of a text that stands there instead."""
        end = {"line": self.line, "character": self.character + len(text)}
        return {"start": {"line": self.line, "character": self.character}, "end": end}


def first(pattern: re.Pattern[str], text: str, group: int = 1) -> Word | None:
    for number, line in enumerate(text.splitlines()):
        found = pattern.search(line.partition("#")[0])
        if found is not None:
            return Word(found[group], number, found.start(group))
    return None


def sure(word: Word | None) -> Word:
    assert word is not None
    return word


def test_all_programs_are_there() -> None:
    assert len(PROGRAMS) == 30


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
async def test_a_program_in_an_editor(editor: Editor, path: Path) -> None:
    uri, text = path.as_uri(), path.read_text(encoding="utf-8")
    document = {"textDocument": {"uri": uri}}
    editor.open(uri, text)
    assert [each["message"] for each in await editor.published(uri)] == []

    family = sure(first(FAMILY, text))
    wrong = family.text[:-2] + family.text[-1]
    version = editor.change(uri, {"range": family.range, "text": wrong})
    [problem] = [each for each in await editor.published(uri, version) if each["severity"] == ERROR]
    assert (problem["code"], problem["range"]) == ("unknown-name", family.ranging(wrong))
    version = editor.change(uri, {"range": family.ranging(wrong), "text": family.text})
    assert await editor.published(uri, version) == []

    name = sure(first(re.compile(r"^program (\w+)"), text))
    observed = sure(first(re.compile(r"^ +(?:observe|score) (\w+)"), text))
    for word in (name, observed, family):
        said = await editor.hover(uri, word.line, word.character)
        assert word.text in said["contents"]["value"]

    index = first(GATHER, text)
    if index is not None:
        found = await editor.request("textDocument/completion", at(uri, index.line, index.character))
        assert index.text in [item["label"] for item in found["items"]]

    whole = {"start": {"line": 0, "character": 0}, "end": {"line": text.count("\n"), "character": 0}}
    hints = await editor.request("textDocument/inlayHint", {**document, "range": whole})
    lines = text.splitlines()
    places = [(int(hint["position"]["line"]), int(hint["position"]["character"])) for hint in hints]
    assert all(character <= len(lines[line]) for line, character in places)

    drawn: dict[str, Any] = await editor.request("qvr/diagram", {**document, "name": name.text})
    assert not drawn["stale"]
    assert any(observed.text in re.findall(r"\w+", str(node)) for node in drawn["nodes"])
    editor.notify("textDocument/didClose", document)


def test_most_programs_have_a_place_for_an_index() -> None:
    assert sum(first(GATHER, path.read_text(encoding="utf-8")) is not None for path in PROGRAMS) >= 20
