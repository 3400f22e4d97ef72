"""Answers come in the format that the editor reads."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.editor import EXAMPLES, FULL, Editor, place

URI = (EXAMPLES / "vanilla_rnn_lm.qvr").as_uri()
MARKS = re.compile(r"`|\*\*|^- |  $", re.MULTILINE)


def reading(*formats: str) -> dict[str, Any]:
    """An editor that shows these formats, the first one best."""
    made = copy.deepcopy(FULL)
    document = made["textDocument"]
    document["hover"] = {"contentFormat": [*formats]}
    document["completion"]["completionItem"]["documentationFormat"] = [*formats]
    document["signatureHelp"] = {"signatureInformation": {"documentationFormat": [*formats]}}
    return made


async def contents(editor: Editor, text: str) -> list[dict[str, str]]:
    """Every hover of a text, the documentation of every proposal, and that of every signature."""
    found: list[dict[str, str]] = []
    document = {"uri": URI}
    for word in re.finditer(r"\w+|[>@~<-]+", text):
        line = text.count("\n", 0, word.start())
        at = {"line": line, "character": word.start() - (text.rfind("\n", 0, word.start()) + 1)}
        hover = await editor.request("textDocument/hover", {"textDocument": document, "position": at})
        found += [hover["contents"]] if hover else []
    for needle, kind in (("Categorical", "completion"), ("scan(", "signatureHelp"), ("role=", "completion")):
        line, column = place(text, needle, shift=len(needle) if needle[-1] in "(=" else 0)
        asked = {"textDocument": document, "position": {"line": line, "character": column}}
        answer = await editor.request(f"textDocument/{kind}", asked)
        for item in answer.get("items", ()):
            resolved = await editor.request("completionItem/resolve", item)
            found += [resolved["documentation"]] if "documentation" in resolved else []
        for item in answer.get("signatures", ()):
            found += [item["documentation"], *(one["documentation"] for one in item["parameters"])]
    return found


@pytest.mark.parametrize(
    ("formats", "kind"),
    [
        (("plaintext",), "plaintext"),
        (("plaintext", "markdown"), "plaintext"),
        (("markdown", "plaintext"), "markdown"),
        (("asciidoc", "plaintext"), "plaintext"),
    ],
)
async def test_the_first_format_that_the_editor_names_is_used(formats: tuple[str, ...], kind: str) -> None:
    editor = await Editor.start()
    await editor.initialize(reading(*formats))
    text = Path(EXAMPLES / "vanilla_rnn_lm.qvr").read_text(encoding="utf-8")
    editor.open(URI, text)
    found = await contents(editor, text)
    assert len(found) > 60
    assert {item["kind"] for item in found} == {kind}
    assert all(item["value"].strip() for item in found)
    marked = [item["value"] for item in found if MARKS.search(item["value"])]
    assert bool(marked) == (kind == "markdown"), marked[:1]
    assert await editor.stop() == 0
