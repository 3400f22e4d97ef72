"""A session as an editor has it: open, see what is wrong, fix it, hover."""

from __future__ import annotations

from tests.lsp.editor import EXAMPLES, Editor, place

TEXT = """\
object Token : FinSet 256
object Embedded : Real 64
object Hidden : Real 128
morphism tok_embed : Token -> Embedded [role=embed]
morphism cell : Embedded * Hidden -> Hidden [role=kernel, scale=0.1] ~ Normal
morphism head : Embedded -> Token [role=kernel] ~ Categorical
let backbone = tok_embed >> scan(cell) >> head
"""


async def test_mismatch_is_shown_where_it_is_and_goes_when_it_is_fixed(editor: Editor) -> None:
    uri = "file:///tmp/thin/mismatch.qvr"
    editor.open(uri, TEXT)
    found = [item for item in await editor.published(uri) if item["severity"] == 1]
    assert len(found) == 1
    assert found[0]["code"] == "compose-mismatch"
    assert found[0]["source"] == "qvr"
    assert "128" in found[0]["message"]
    assert "64" in found[0]["message"]
    line, column = place(TEXT, ">> head")
    assert found[0]["range"]["start"] == {"line": line, "character": column}
    assert found[0]["relatedInformation"][0]["location"]["uri"] == uri
    line, column = place(TEXT, "Embedded -> Token")
    stretch = {"start": {"line": line, "character": column}, "end": {"line": line, "character": column + 8}}
    version = editor.change(uri, {"range": stretch, "text": "Hidden"})
    assert not [item for item in await editor.published(uri, version) if item["severity"] == 1]


async def test_closing_clears_the_diagnostics(editor: Editor) -> None:
    uri = "file:///tmp/thin/closed.qvr"
    editor.open(uri, "object A : Rael 3\n")
    assert await editor.published(uri)
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    await editor.until(lambda: editor.diagnostics[uri]["diagnostics"] == [])
    assert "version" not in editor.diagnostics[uri]


async def test_burst_of_edits_is_published_for_its_last_text(editor: Editor) -> None:
    uri = "file:///tmp/thin/burst.qvr"
    editor.open(uri, "")
    await editor.published(uri)
    for number, letter in enumerate("object A : Real 3"):
        stretch = {"start": {"line": 0, "character": number}, "end": {"line": 0, "character": number}}
        version = editor.change(uri, {"range": stretch, "text": letter})
    assert not [item for item in await editor.published(uri, version) if item["severity"] == 1]
    versions = [
        message["params"]["version"]
        for message in editor.notifications
        if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri
    ]
    assert versions == sorted(versions)


async def test_hover_says_what_things_are(editor: Editor) -> None:
    uri = (EXAMPLES / "vanilla_rnn_lm.qvr").as_uri()
    text = (EXAMPLES / "vanilla_rnn_lm.qvr").read_text()
    editor.open(uri, text)
    expected = {
        "Hidden :": "object Hidden : Real 128",
        "tok_embed :": "tok_embed : Token => Embedded",
        "cell :": "cell : Embedded * Hidden -> Hidden",
        "backbone": "backbone : Seq Token -> Hidden",
        "scan(": "scan : Seq Embedded -> Hidden",
        ">>": "Left gives",
        "vanilla_rnn_lm :": "program vanilla_rnn_lm : Seq Token -> Token",
        "next_token": "observed",
        "role=": "What kind of arrow this is",
        "Categorical": "probs",
        "sample": "Draws a latent",
    }
    for needle, words in expected.items():
        hover = await editor.hover(uri, *place(text, needle))
        assert hover is not None, needle
        assert words in hover["contents"]["value"], needle
        assert hover["contents"]["kind"] == "markdown"
    hover = await editor.hover(uri, *place(text, "cell :"))
    assert "33,152 parameters" in hover["contents"]["value"]


async def test_diagram_has_nodes_with_their_places(editor: Editor) -> None:
    path = EXAMPLES / "bidirectional_rnn_lm.qvr"
    editor.open(path.as_uri(), path.read_text())
    answer = await editor.request(
        "qvr/diagram", {"textDocument": {"uri": path.as_uri()}, "name": "backbone", "format": "mermaid"}
    )
    assert answer["text"].startswith("flowchart LR")
    assert answer["name"] == "backbone"
    assert not answer["stale"]
    lines = path.read_text().split("\n")
    embed = next(node for node in answer["nodes"] if node["declared"] == "tok_embed")
    start, end = embed["range"]["start"], embed["range"]["end"]
    assert "tok_embed" in lines[start["line"]][start["character"] : end["character"]]
