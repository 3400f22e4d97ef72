"""Whatever comes in, the same server process answers a hover afterwards."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
import pytest_asyncio

from benchmarks.server import seq2seq
from tests.lsp.editor import EXAMPLES, Editor, ResponseError, at
from tests.lsp.features import params_by_method
from tests.patience import HANG

URI = "file:///tmp/robust/good.qvr"
GOOD = "object A : Real 3\nmorphism f : A -> A [role=linear]\nlet g = f >> f\n"


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def still_alive(editor: Editor) -> Any:
    """After each test the server of the module answers a hover."""
    editor.open(URI, GOOD)
    yield
    hover = await editor.hover(URI, 2, 4)
    assert "g : A => A" in hover["contents"]["value"]


async def test_malformed_messages(editor: Editor) -> None:
    editor.raw(b'Content-Length: 7\r\n\r\n{"id":}')
    editor.raw(b"nonsense\r\n\r\n")
    editor.raw(b"Content-Length: abc\r\n\r\n")
    editor.raw(b"Content-Length: 2\r\n\r\n[]")
    editor.raw(b"Content-Length: 4\r\n\r\n\xff\xfe\xfd\xfc")
    editor.raw(b"Content-Length: 4\r\n\r\nnull")
    editor.send({"jsonrpc": "2.0", "method": 7})
    editor.send({"jsonrpc": "2.0", "id": 999_999, "result": None})
    await editor.until(
        lambda: sum(message.get("error", {}).get("code") == -32700 for message in editor.notifications) >= 2
    )


async def test_deeply_nested_json(editor: Editor) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    editor.raw(b"Content-Length: %d\r\n\r\n%b" % (len(deep), deep))


async def test_unknown_methods(editor: Editor) -> None:
    with pytest.raises(ResponseError) as error:
        await editor.request("textDocument/teleport", {})
    assert error.value.code == -32601
    editor.notify("$/unknownNotification", {"a": 1})
    editor.notify("workspace/unknown", None)


@pytest.mark.parametrize(
    "position",
    [
        {"line": 10**9, "character": 0},
        {"line": 0, "character": 10**9},
        {"line": 2, "character": 10**9},
        {"line": 3, "character": 0},
    ],
)
async def test_positions_outside_of_the_text(editor: Editor, position: Any) -> None:
    for method in POSITIONED:
        params = {"textDocument": {"uri": URI}, "position": position, "newName": "h", "context": {}}
        try:
            await editor.request(method, params)
        except ResponseError as error:
            assert error.code == -32803, (method, error)


POSITIONED = tuple(
    name
    for name, kind in params_by_method().items()
    if (field := attrs.fields_dict(kind).get("position")) is not None and field.default is attrs.NOTHING
)


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        [],
        {"textDocument": None},
        {"textDocument": {"uri": 5}, "position": {}},
        {"textDocument": {"uri": URI}},
        {"textDocument": {"uri": URI}, "position": {"line": -1, "character": 0}},
        {"textDocument": {"uri": URI}, "position": {"line": "0", "character": 0}},
        {"textDocument": {"uri": URI}, "position": None},
    ],
)
async def test_damaged_parameters(editor: Editor, params: Any) -> None:
    with pytest.raises(ResponseError) as error:
        await editor.request("textDocument/hover", params)
    assert error.value.code == -32602


async def test_documents_that_are_not_open(editor: Editor) -> None:
    for method in POSITIONED:
        with pytest.raises(ResponseError) as error:
            await editor.request(method, {**at("file:///nowhere.qvr", 0, 0), "newName": "x"})
        assert error.value.code == -32602
    change = {"text": "object B : Real 2"}
    identity = {"uri": "file:///nowhere.qvr", "version": 2}
    editor.notify("textDocument/didChange", {"textDocument": identity, "contentChanges": [change]})
    editor.notify("textDocument/didClose", {"textDocument": {"uri": "file:///nowhere.qvr"}})


@pytest.mark.parametrize(
    "text",
    [
        "object A : Real 3\0\nlet \0 = \0",
        "object A : Real 3 # \ud800\nlet x = \udfff",
        "object A : Real 3\r\nobject B : Real 4\rmorphism f : A -> B\nlet g = f\r\r\n\n\r",
        "object A : Real 3\x0cobject B : Real 4\x0b\x85\u2028\u2029let x = A",
        "\ufeffobject A : Real 3",
        "((((" * 5000,
        "let x = " + "(" * 3000 + "f" + ")" * 3000,
        "program p : A -> B\n" + "    sample x <- f\n" * 300,
        "# " + "é" * 10_000,
        "object 日本 : Real 3\nlet 🦄 = 🦄 >> 🦄",
    ],
    ids=["nul", "surrogates", "line ends", "separators", "bom", "brackets", "nested", "steps", "accents", "unicode"],
)
async def test_strange_texts(editor: Editor, text: str) -> None:
    uri = "file:///tmp/robust/strange.qvr"
    editor.open(uri, text)
    await editor.published(uri)
    for line, character in ((0, 0), (0, 12), (1, 4)):
        for method in (name for name in POSITIONED if "ename" not in name):  # there is nothing to rename
            await editor.request(method, {**at(uri, line, character), "context": {}})
    for method in WHOLE:
        await editor.request(method, {"textDocument": {"uri": uri}})
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 10**6, "character": 0}}
    await editor.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": whole})
    await editor.request("textDocument/codeAction", {"textDocument": {"uri": uri}, "range": whole, "context": {}})
    version = editor.change(uri, {"range": whole, "text": GOOD})
    assert await editor.published(uri, version) == await editor.published(URI)
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    await editor.until(lambda: "version" not in editor.diagnostics[uri])
    del editor.diagnostics[uri]


WHOLE = (
    "textDocument/documentSymbol",
    "textDocument/foldingRange",
    "textDocument/semanticTokens/full",
    "textDocument/codeLens",
    "textDocument/documentLink",
    "textDocument/formatting",
    "qvr/model",
)


async def test_megabyte_on_one_line(editor: Editor) -> None:
    uri = "file:///tmp/robust/line.qvr"
    editor.open(uri, "let x = " + "a_name_of_many_characters_that_nobody_declares >> " * 20_000 + "f")
    hover = await editor.hover(URI, 2, 4)
    assert hover is not None
    await editor.published(uri, timeout=HANG)
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


async def test_two_hundred_open_files(editor: Editor) -> None:
    uris = [f"file:///tmp/robust/many_{number}.qvr" for number in range(200)]
    for uri in uris:
        editor.open(uri, (EXAMPLES / "vanilla_rnn_lm.qvr").read_text())
    for uri in uris:
        await editor.published(uri)
    for uri in uris:
        editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    await editor.until(lambda: all("version" not in editor.diagnostics[uri] for uri in uris))


async def test_edits_that_make_no_sense(editor: Editor) -> None:
    uri = "file:///tmp/robust/edits.qvr"
    editor.open(uri, GOOD)
    backwards = {"start": {"line": 2, "character": 5}, "end": {"line": 0, "character": 7}}
    editor.change(uri, {"range": backwards, "text": "x"})
    beyond = {"start": {"line": 50, "character": 5}, "end": {"line": 90, "character": 7}}
    editor.change(uri, {"range": beyond, "text": "# end"})
    editor.change(uri, {"range": {"start": None}, "text": "x"})
    editor.change(uri, {"text": 5})
    editor.change(uri, {})
    version = editor.change(uri, {"text": GOOD})
    assert await editor.published(uri, version) == await editor.published(URI)


async def test_requests_are_answered_while_a_large_file_is_first_analysed(editor: Editor) -> None:
    """In the file itself from the lines they are about, with their real types; in other files as ever."""
    uri, text = "file:///tmp/robust/large.qvr", seq2seq(10_000)
    lines = text.split("\n")
    number = next(n for n in range(8000, 10_000) if lines[n].startswith("let"))
    place = at(uri, number, lines[number].index(">>") - 3)
    answers: dict[str, Any] = {}
    editor.open(uri, text)
    for method in ("hover", "definition", "completion", "signatureHelp", "typeDefinition"):
        answers[method] = await editor.request(f"textDocument/{method}", place)
        assert await editor.hover(URI, 2, 4) is not None
    for method in ("inlayHint", "semanticTokens/range"):
        window = {"start": {"line": 5000, "character": 0}, "end": {"line": 5040, "character": 0}}
        params = {"textDocument": {"uri": uri}, "range": window}
        answers[method] = await editor.request(f"textDocument/{method}", params)
    assert uri not in editor.diagnostics, "the answers came behind the first analysis"
    assert "=>" in answers["hover"]["contents"]["value"] or "->" in answers["hover"]["contents"]["value"]
    assert answers["definition"]
    assert answers["completion"]["items"]
    assert answers["inlayHint"]
    assert answers["semanticTokens/range"]["data"]
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


async def test_requests_that_want_the_whole_file_wait_and_can_be_cancelled(editor: Editor) -> None:
    uri = "file:///tmp/robust/whole.qvr"
    editor.open(uri, seq2seq(3000))
    _, slow = editor.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
    cancelled, future = editor.ask("textDocument/references", {**at(uri, 2, 8), "context": {}})
    editor.notify("$/cancelRequest", {"id": cancelled})
    await editor.hover(URI, 2, 4)
    with pytest.raises(ResponseError) as error:
        await future
    assert error.value.code == -32800
    assert len(await asyncio.wait_for(slow, HANG)) > 1500
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


@pytest.mark.process
async def test_lifecycle_is_kept() -> None:
    editor = await Editor.start()
    with pytest.raises(ResponseError) as error:
        await editor.hover(URI, 0, 0)
    assert error.value.code == -32002
    await editor.initialize()
    with pytest.raises(ResponseError) as error:
        await editor.initialize()
    assert error.value.code == -32600
    await editor.request("shutdown", None)
    with pytest.raises(ResponseError) as error:
        await editor.hover(URI, 0, 0)
    assert error.value.code == -32600
    editor.notify("exit", None)
    assert await asyncio.wait_for(editor.process.wait(), HANG) == 0


async def started(**more: Any) -> Editor:
    """A server with an open file."""
    editor = await Editor.start()
    await editor.initialize(**more)
    editor.open(URI, GOOD)
    await editor.published(URI)
    return editor


async def test_closed_stdin_ends_the_server() -> None:
    editor = await started()
    assert editor.process.stdin is not None
    editor.process.stdin.close()
    assert await asyncio.wait_for(editor.process.wait(), HANG) == 1


async def test_server_ends_with_its_editor() -> None:
    parent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    editor = await started(processId=parent.pid)
    parent.kill()
    await asyncio.wait_for(editor.process.wait(), HANG)
    parent.wait()


async def test_log_holds_no_texts(tmp_path: Path) -> None:
    log = tmp_path / "lsp.log"
    editor = await Editor.start(env={"QVR_LOG_FILE": str(log)})
    await editor.initialize(options={"log": {"level": "debug"}})
    editor.open(URI, "let very_secret_name = f")
    await editor.published(URI)
    editor.raw(b'Content-Length: 20\r\n\r\n{"very_secret_name":')
    await editor.hover(URI, 0, 5)
    await editor.stop()
    written = log.read_text() if log.exists() else ""
    assert "very_secret_name" not in written
    assert not [
        message
        for message in editor.notifications
        if message.get("method") == "window/logMessage" and "very_secret" in message["params"]["message"]
    ]


async def test_trace_names_methods_only(editor: Editor) -> None:
    editor.notify("$/setTrace", {"value": "verbose"})
    await editor.hover(URI, 2, 4)
    await editor.notification("$/logTrace", lambda params: params["message"] == "textDocument/hover")
    editor.notify("$/setTrace", {"value": "off"})


async def test_end_does_not_wait_for_an_analysis() -> None:
    editor = await started()
    uri = "file:///tmp/robust/endless.qvr"
    editor.open(uri, "".join(f"object A{n} : Real {n + 1}\nobject B{n} : A{n} * A{n}\n" for n in range(40_000)))
    await editor.hover(URI, 2, 4)
    assert editor.process.stdin is not None
    editor.process.stdin.close()
    await asyncio.wait_for(editor.process.wait(), HANG)
    assert uri not in editor.diagnostics, "the server ended behind the analysis"
