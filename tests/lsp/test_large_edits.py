"""While an edit or an answer is much work, others are answered; what comes out is that of the text as it is then."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types

from qvr_core.analysis import Analyzer, Snapshot
from qvr_lsp.converter import typed
from qvr_lsp.features import server
from qvr_lsp.serialising import encoded, encoded_in_chunks
from tests.lsp.editor import Editor, ResponseError, at

OTHER = "file:///tmp/large_edits/other.qvr"
COUNT = 800
HEAD = "object X : Real 4\nmorphism x0 : X -> X [role=linear]\n"
PROGRAM = "program p : X -> X\n    sample y <- Normal(0.0, 1.0)\n"


def lines(line: str, count: int = COUNT) -> str:
    return "".join(line.format(n=n, before=n - 1) + "\n" for n in range(1, count + 1))


CHAIN = HEAD + lines("let x{n} = x{before} >> x0")
LONG_CHAIN = HEAD + lines("let x{n} = x{before} >> x0", 2000)
EXPRESSION = HEAD + "let y = " + " >> ".join(["x0"] * 4 * COUNT) + "\n"
UNKNOWN = HEAD + lines("let known{n} = unknown{n} >> x0", 2 * COUNT)
STEPS = HEAD + PROGRAM + lines("    let known{n}x = y + data{n}y", 2 * COUNT) + "    return y\n"
BRACKETS = HEAD + "let y = " + "(" * 10_000 + "\n"

MORE_BRACKETS = HEAD + "let y = " + "(" * 20_000 + "\n"


def replaced(line: int, start: int, end: int, text: str) -> dict[str, Any]:
    places = [{"line": line, "character": column} for column in (start, end)]
    return {"range": {"start": places[0], "end": places[1]}, "text": text}


def whole(first: int, last: int) -> dict[str, Any]:
    """The lines from one to another."""
    return {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 99}}


EDITS = {
    "the head of a chain": (CHAIN, replaced(0, 16, 17, "5")),
    "one of many stages": (EXPRESSION, replaced(2, 8, 10, "x0 >> x0")),
    "above many mistakes": (UNKNOWN, replaced(0, 0, 0, "\n")),
    "one of many steps": (STEPS, replaced(20, 8, 8, "q")),
    "among open brackets": (BRACKETS, replaced(2, 9, 9, "(" * 5000)),
    "the whole text": (HEAD, {"text": LONG_CHAIN}),
    "a long insertion": (HEAD, replaced(2, 0, 0, CHAIN[len(HEAD) :])),
}


@pytest_asyncio.fixture(loop_scope="module", scope="module", autouse=True)
async def other(editor: Editor) -> AsyncIterator[None]:
    editor.open(OTHER, "object A : Real 3\nmorphism f : A -> A [role=linear]\n")
    await editor.published(OTHER)
    yield


async def opened(editor: Editor, name: str, text: str) -> str:
    uri = f"file:///tmp/large_edits/{name.replace(' ', '_')}.qvr"
    editor.open(uri, text)
    await editor.published(uri)
    return uri


def found_in(text: str) -> list[tuple[int, str]]:
    found = Analyzer(text).snapshot().diagnostics()
    return [(item.range.start.line, item.message) for item in found[:100]]


def shown(published: list[Any]) -> list[tuple[int, str]]:
    return [(item["range"]["start"]["line"], item["message"]) for item in published[:100]]


def edited(text: str, change: dict[str, Any]) -> str:
    if "range" not in change:
        return change["text"]
    start, end = change["range"]["start"], change["range"]["end"]
    rows = text.split("\n")
    row = rows[start["line"]]
    rows[start["line"]] = row[: start["character"]] + change["text"] + row[end["character"] :]
    return "\n".join(rows)


def in_order(editor: Editor, first: Any, second: Any) -> bool:
    return editor.arrived.index(first) < editor.arrived.index(second)


@pytest.mark.parametrize("name", EDITS)
@pytest.mark.sampled(3)
async def test_another_file_is_answered_while_an_edit_is_much_work(editor: Editor, name: str) -> None:
    text, change = EDITS[name]
    uri = await opened(editor, name, text)
    version = editor.change(uri, change)
    small, answer = editor.ask("textDocument/hover", at(OTHER, 1, 9))
    assert shown(await editor.published(uri, version)) == found_in(edited(text, change))
    assert await answer is not None
    assert in_order(editor, small, (uri, version)), "the answer came behind the edit"
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


@pytest.mark.parametrize("method", ["qvr/model", "textDocument/documentSymbol", "textDocument/semanticTokens/full"])
@pytest.mark.sampled(3)
async def test_another_file_is_answered_while_a_large_answer_is_made(editor: Editor, method: str) -> None:
    uri = await opened(editor, "chain", LONG_CHAIN)
    with editor.in_one_write():
        large, made = editor.ask(method, {"textDocument": {"uri": uri}})
        small, answer = editor.ask("textDocument/hover", at(OTHER, 1, 9))
    assert await made
    assert await answer is not None
    assert in_order(editor, small, large), "the answer came behind the large one"
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


@pytest.mark.parametrize("method", ["completion", "signatureHelp"])
async def test_another_file_is_answered_while_brackets_are_gone_through(editor: Editor, method: str) -> None:
    uri = await opened(editor, f"brackets for {method}", MORE_BRACKETS)
    with editor.in_one_write():
        asked, made = editor.ask(f"textDocument/{method}", at(uri, 2, 19_000))
        small, answer = editor.ask("textDocument/hover", at(OTHER, 1, 9))
    await made
    assert await answer is not None
    assert in_order(editor, small, asked), "the answer came behind that about the brackets"
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


@pytest.mark.parametrize("method", ["completion", "signatureHelp"])
async def test_another_file_is_answered_while_brackets_are_first_read(editor: Editor, method: str) -> None:
    uri = f"file:///tmp/large_edits/first_{method}.qvr"
    with editor.in_one_write():
        editor.open(uri, MORE_BRACKETS)
        asked, made = editor.ask(f"textDocument/{method}", at(uri, 2, 19_000))
        small, answer = editor.ask("textDocument/hover", at(OTHER, 1, 9))
    await made
    assert await answer is not None
    assert in_order(editor, small, asked), "the answer came behind that about the brackets"
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


@pytest.mark.long
async def test_another_file_is_answered_while_fixes_are_tried(editor: Editor) -> None:
    text = HEAD + "let x1 = x0 >> unkown\n" + lines("let y{n} = x1 >> xO", 1000)
    uri = await opened(editor, "fixes", text)
    params = {"textDocument": {"uri": uri}, "range": whole(0, 1003), "context": {"diagnostics": []}}
    with editor.in_one_write():
        asked, found = editor.ask("textDocument/codeAction", params)
        small, answer = editor.ask("textDocument/hover", at(OTHER, 1, 9))
    assert len(await found) == 50
    assert await answer is not None
    assert in_order(editor, small, asked), "the answer came behind that about the fixes"
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


async def test_fixes_are_tried_on_the_text_as_it_is_after_every_edit(editor: Editor) -> None:
    uri = await opened(editor, "tried", HEAD + "let y = xO\n")
    for number in range(3):
        params = {
            "textDocument": {"uri": uri},
            "range": whole(2 + number, 2 + number),
            "context": {"only": ["quickfix"]},
        }
        found = await editor.request("textDocument/codeAction", params)
        assert [action["title"] for action in found] == ["Change to `x0`"]
        editor.change(uri, replaced(0, 0, 0, "# é\n"), replaced(3 + number, 8, 10, f"xO >> x{number}O"))
        await editor.request("textDocument/codeAction", params)
        editor.change(uri, replaced(3 + number, 8, 17, "xO"))
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


async def test_what_is_asked_and_typed_meanwhile_is_about_the_text_as_it_is_then(editor: Editor) -> None:
    uri = await opened(editor, "typed", CHAIN)
    text = CHAIN
    version = 0
    asked: list[asyncio.Future[Any]] = []
    with editor.in_one_write():
        for number, change in enumerate(
            (replaced(0, 16, 17, "5"), replaced(0, 16, 17, "67"), replaced(0, 0, 0, "# a\n"), replaced(9, 15, 17, "q"))
        ):
            version = editor.change(uri, change)
            text = edited(text, change)
            below = COUNT + 1 + (number >= 2)
            asked.append(editor.ask("textDocument/hover", at(uri, below, 4))[1])
            if number == 0:
                _, whole = editor.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
    *early, last = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(error, ResponseError) and error.code == -32801 for error in early)
    assert f"x{COUNT}" in last["contents"]["value"]
    assert (await whole)[0]["range"]["start"]["line"] == 1
    assert shown(await editor.published(uri, version)) == found_in(text)
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


async def test_a_renaming_of_a_text_that_has_changed_meanwhile_is_refused(editor: Editor) -> None:
    uri = await opened(editor, "renamed", CHAIN)
    with editor.in_one_write():
        _, renamed = editor.ask("textDocument/rename", {**at(uri, 1, 9), "newName": "first"})
        editor.change(uri, replaced(0, 0, 0, "\n"))
    with pytest.raises(ResponseError) as refused:
        await renamed
    assert refused.value.code == -32801
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


async def test_a_text_whose_diagnostics_fail_is_answered_and_edited(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Snapshot) -> tuple[Any, ...]:
        raise ValueError("a bug")

    session = server.sibling()
    session.open_workspace(types.InitializeParams(types.ClientCapabilities()), "utf-16")
    with monkeypatch.context() as bug:
        bug.setattr(Snapshot, "diagnostics", fails)
        session.documents.open("file:///tmp/bug.qvr", 1, CHAIN)
        document = session.documents.get("file:///tmp/bug.qvr")
        document.change(2, [typed(replaced(0, 0, 0, "# a\n"), types.TextDocumentContentChangeEvent, "an edit")])
        await document.wait_ready()
    assert document.lines[0] == "# a"
    document.change(3, [types.TextDocumentContentChangeWholeDocument(HEAD)])
    await document.wait_ready()
    assert [found.code.name for found in document.snapshot.diagnostics()] == ["unused"]


async def test_a_file_closed_and_opened_again_while_it_is_analysed(editor: Editor) -> None:
    uri = await opened(editor, "closed", CHAIN)
    editor.change(uri, replaced(0, 16, 17, "5"))
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    editor.open(uri, HEAD + "let y = nothing\n")
    await editor.until(lambda: any("nothing" in item["message"] for item in editor.diagnostics[uri]["diagnostics"]))
    assert await editor.hover(uri, 1, 9) is not None
    assert len(editor.diagnostics[uri]["diagnostics"]) == len(found_in(HEAD + "let y = nothing\n"))


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"a": [], "b": {"c": [1, "é", None, float("nan")]}},
        [{"x": [{"y": [[1], [2, [3]]]}]}, 4],
        list(range(5001)),
        {"data": list(range(4000)), "": ({"k": (1, 2)}, "t")},
    ],
)
def test_encoding_in_chunks_is_the_same_json(value: Any) -> None:
    assert encoded_in_chunks(value) == encoded(value)
    deep = value
    for _ in range(30):
        deep = [{"in": deep}]
    assert json.loads(encoded_in_chunks(deep)) == json.loads(encoded(deep))
