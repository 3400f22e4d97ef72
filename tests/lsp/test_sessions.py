"""Sessions with settings, workspaces, qvr.toml, encodings, many problems."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.editor import EXAMPLES, FULL, Editor, ResponseError, at, edits_of, place
from tests.patience import HANG

LM = (EXAMPLES / "vanilla_rnn_lm.qvr").read_text()
TOML = """\
[run.vanilla_rnn_lm]
steps = 200
learning_rat = 0.1
optimizer = "adam"

[run.vanilla_rnn_lm.columns]
next_token = "target"

[run.nobody]
steps = 0
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lm.qvr").write_text(LM)
    (tmp_path / "other.qvr").write_text("object Lonely : Real 3\nlet broken = nothing >> nowhere\n")
    (tmp_path / "qvr.toml").write_text(TOML)
    return tmp_path


async def session(folder: Path | None = None, capabilities: Any = None, **more: Any) -> Editor:
    editor = await Editor.start()
    await editor.initialize(capabilities, folder=folder, **more)
    return editor


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ('[run.vanilla_rnn_lm]\noptimizer = "adan"\n', '[run.vanilla_rnn_lm]\noptimizer = "adam"\n'),
        ("[run.vanila_rnn_lm]\nsteps = 3\n", "[run.vanilla_rnn_lm]\nsteps = 3\n"),
        ("[defaults]\nstep = 3\n", "[defaults]\nsteps = 3\n"),
        ("[default]\nsteps = 3\n", "[defaults]\nsteps = 3\n"),
    ],
)
async def test_a_fix_of_the_settings_file_leaves_no_problem(folder: Path, wrong: str, right: str) -> None:
    editor = await session(folder)
    uri = (folder / "qvr.toml").as_uri()
    editor.open(uri, wrong)
    [problem] = await editor.published(uri)
    asked = {"textDocument": {"uri": uri}, "range": problem["range"], "context": {"diagnostics": [problem]}}
    [fix] = await editor.request("textDocument/codeAction", asked)
    [change] = fix["edit"]["changes"][uri]
    version = editor.change(uri, {"range": change["range"], "text": change["newText"]})
    assert await editor.published(uri, version) == []
    lines = wrong.split("\n")
    first, last = change["range"]["start"], change["range"]["end"]
    assert first["line"] == last["line"]
    line = lines[first["line"]]
    lines[first["line"]] = line[: first["character"]] + change["newText"] + line[last["character"] :]
    assert "\n".join(lines) == right
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    await editor.stop()


async def test_settings_file_in_the_editor(folder: Path) -> None:
    editor = await session(folder)
    uri = (folder / "qvr.toml").as_uri()
    editor.open(uri, TOML)
    found = await editor.published(uri)
    by_line = {item["range"]["start"]["line"]: item for item in found}
    assert "did you mean `learning_rate`" in by_line[2]["message"]
    assert by_line[2]["range"]["end"]["character"] == len("learning_rat")
    assert "nobody" in by_line[8]["message"]
    assert by_line[8]["severity"] == 2
    assert "at least 1" in by_line[9]["message"]
    hover = await editor.hover(uri, 1, 2)
    assert "Optimiser steps" in hover["contents"]["value"]
    assert "Default: `2000`" in hover["contents"]["value"]
    keys = await editor.request("textDocument/completion", at(uri, 4, 0))
    labels = [item["label"] for item in keys["items"]]
    assert "guide" in labels
    assert "steps" not in labels
    values = await editor.request("textDocument/completion", at(uri, 3, 13))
    assert "sgd" in [item["label"] for item in values["items"]]
    tables = await editor.request("textDocument/completion", at(uri, 0, 5))
    table = next(item for item in tables["items"] if item["label"] == "run.vanilla_rnn_lm")
    behind_bracket = {"start": {"line": 0, "character": 1}, "end": {"line": 0, "character": 5}}
    assert table["textEdit"] == {"range": behind_bracket, "newText": "run.vanilla_rnn_lm"}
    columns = await editor.request("textDocument/completion", at(uri, 6, 0))
    assert [(item["label"], item["detail"]) for item in columns["items"]] == [("next_token", "observed site")]
    target = await editor.request("textDocument/definition", at(uri, 0, 8))
    assert target[0]["uri"] == (folder / "lm.qvr").as_uri()
    assert LM.split("\n")[target[0]["range"]["start"]["line"]].startswith("program vanilla_rnn_lm")
    column = await editor.request("textDocument/definition", at(uri, 6, 3))
    assert "observe next_token" in LM.split("\n")[column[0]["range"]["start"]["line"]]
    line = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
    assert await editor.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": line}) is None
    everything = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    asked = {"textDocument": {"uri": uri}, "range": everything, "context": {"diagnostics": []}}
    fixes = await editor.request("textDocument/codeAction", asked)
    assert [fix["title"] for fix in fixes] == ["Change to `learning_rate`"]
    assert fixes[0]["diagnostics"] == [by_line[2]]
    [change] = fixes[0]["edit"]["changes"][uri]
    assert change == {"range": by_line[2]["range"], "newText": "learning_rate"}
    stretch = {"start": {"line": 2, "character": 0}, "end": {"line": 2, "character": len("learning_rat")}}
    version = editor.change(uri, {"range": stretch, "text": "learning_rate"})
    assert not [item for item in await editor.published(uri, version) if item["range"]["start"]["line"] == 2]
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    await editor.until(lambda: editor.diagnostics[uri]["diagnostics"] == [])
    await editor.stop()


async def test_data_names_lead_to_their_column_and_data_to_its_file(folder: Path) -> None:
    toml = '[run.p]\ndata = "csv:trial.csv"\ncolumns = { dose = "mg per day" }\n'
    (folder / "qvr.toml").write_text(toml)
    text = "object I : FinSet 4\nprogram p : I -> I\n    observe y : I <- Normal(dose, 1.0)\n    return y\n"
    editor = await session(folder)
    uri, settings = (folder / "p.qvr").as_uri(), (folder / "qvr.toml").as_uri()
    editor.open(uri, text)
    editor.open(settings, toml)
    found = await editor.request("textDocument/definition", at(uri, *place(text, "dose")))
    assert [item["uri"] for item in found] == [uri, settings]
    assert found[1]["range"]["start"] == {"line": 2, "character": len("columns = { ")}
    links = await editor.request("textDocument/documentLink", {"textDocument": {"uri": settings}})
    assert links[0]["target"] == (folder / "trial.csv").as_uri()
    await editor.stop()


async def test_a_pattern_of_data_files_leads_to_their_folder(folder: Path) -> None:
    toml = '[run.p]\ndata = "pairs:prose/**/*.txt"\n'
    (folder / "qvr.toml").write_text(toml)
    editor = await session(folder)
    settings = (folder / "qvr.toml").as_uri()
    editor.open(settings, toml)
    links = await editor.request("textDocument/documentLink", {"textDocument": {"uri": settings}})
    assert [link["target"] for link in links] == [(folder / "prose").as_uri()]
    await editor.stop()


async def test_renaming_a_program_renames_its_table(folder: Path) -> None:
    editor = await session(folder)
    uri = (folder / "lm.qvr").as_uri()
    editor.open(uri, LM)
    await editor.published(uri)
    line, column = place(LM, "program vanilla", 8)
    edit = await editor.request("textDocument/rename", {**at(uri, line, column), "newName": "reader"})
    in_toml = edits_of(edit)[(folder / "qvr.toml").as_uri()]
    assert [item["newText"] for item in in_toml] == ["reader", "reader"]
    assert in_toml[0]["range"]["start"] == {"line": 0, "character": 5}
    assert len(edits_of(edit)[uri]) == 2
    line, column = place(LM, "observe next_token", 9)
    edit = await editor.request("textDocument/rename", {**at(uri, line, column), "newName": "answer"})
    in_toml = edits_of(edit)[(folder / "qvr.toml").as_uri()]
    assert in_toml[0]["range"]["start"] == {"line": 6, "character": 0}
    assert in_toml[0]["newText"] == "answer"
    await editor.stop()


async def test_workspace_diagnostics_and_symbols_hold_closed_files(folder: Path) -> None:
    editor = await session(folder, {**FULL, "textDocument": {"diagnostic": {}}})
    found = await editor.request("workspace/diagnostic", {"previousResultIds": []})
    items = {Path(item["uri"]).name: item for item in found["items"]}
    assert items["other.qvr"]["items"]
    assert all(item["severity"] > 1 for item in items["lm.qvr"]["items"])
    ids = [{"uri": item["uri"], "value": item["resultId"]} for item in found["items"]]
    again = await editor.request("workspace/diagnostic", {"previousResultIds": ids})
    assert {item["kind"] for item in again["items"]} == {"unchanged"}
    (folder / "other.qvr").write_text("object Lonely : Real 3\nexport identity(Lonely)\n")
    third = await editor.request("workspace/diagnostic", {"previousResultIds": ids})
    assert {Path(item["uri"]).name for item in third["items"] if item["kind"] == "full"} == {"other.qvr"}
    names = await editor.request("workspace/symbol", {"query": "lonely"})
    assert [item["name"] for item in names] == ["Lonely"]
    await editor.stop()


async def test_editor_that_pulls_is_not_pushed_to(folder: Path) -> None:
    capabilities = {**FULL, "textDocument": {**FULL["textDocument"], "diagnostic": {}}}
    editor = await session(folder, capabilities, options={"diagnostics": {"mode": "pull"}})
    uri = (folder / "other.qvr").as_uri()
    editor.open(uri, (folder / "other.qvr").read_text())
    found = await editor.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
    assert found["kind"] == "full"
    assert "unknown-name" in [item["code"] for item in found["items"]]
    assert uri not in editor.diagnostics
    await editor.stop()


async def test_long_lists_of_problems_are_cut_and_say_so() -> None:
    editor = await session(options={"diagnostics": {"maximum": 10}})
    uri = "file:///tmp/many.qvr"
    editor.open(uri, "".join(f"let x{n} = nothing{n}\n" for n in range(50)))
    found = await editor.published(uri)
    assert len(found) == 11
    assert "more problems are not shown" in found[-1]["message"]
    await editor.stop()


@pytest.mark.parametrize(("encoding", "width"), [("utf-8", 4), ("utf-16", 2), ("utf-32", 1)])
async def test_positions_count_in_the_agreed_units(encoding: str, width: int) -> None:
    capabilities = {**FULL, "general": {"positionEncodings": [encoding]}}
    editor = await session(capabilities=capabilities)
    uri = "file:///tmp/units.qvr"
    text = 'object A : Real 3\nlet f = from_data("🦄") >> nothing\n'
    editor.open(uri, text)
    found = next(item for item in await editor.published(uri) if item["code"] == "unknown-name")
    column = len('let f = from_data("') + width + len('") >> ')
    assert found["range"]["start"] == {"line": 1, "character": column}
    assert found["range"]["end"]["character"] == column + len("nothing")
    stretch = {"start": {"line": 1, "character": column}, "end": {"line": 1, "character": column + 7}}
    version = editor.change(uri, {"range": stretch, "text": "missing"})
    again = next(item for item in await editor.published(uri, version) if item["code"] == "unknown-name")
    assert "missing" in again["message"]
    await editor.stop()


async def test_settings_are_asked_for_and_take_effect(folder: Path) -> None:
    editor = await Editor.start()
    editor.answers["workspace/configuration"] = [{"codeLens": {"enable": False}, "inlayHints": {"letTypes": False}}]
    await editor.initialize(folder=folder)
    await editor.until(lambda: "workspace/configuration" in editor.requests)
    uri = (folder / "lm.qvr").as_uri()
    editor.open(uri, LM)
    await editor.published(uri)
    assert await editor.request("textDocument/codeLens", {"textDocument": {"uri": uri}}) == []
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    hints = await editor.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": whole})
    assert not [hint for hint in hints if hint["label"].startswith(":")]
    editor.answers["workspace/configuration"] = [{"codeLens": {"enable": True}, "inlayHints": {"letTypes": True}}]
    first = len(editor.requests)
    editor.notify("workspace/didChangeConfiguration", {"settings": None})
    await editor.until(lambda: "workspace/codeLens/refresh" in editor.requests[first:])
    assert await editor.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    await editor.stop()


async def test_fix_is_offered_and_fixes(editor: Editor) -> None:
    uri = "file:///tmp/fix.qvr"
    text = LM.replace("lm_head(h)", "lm_haed(h)")
    editor.open(uri, text)
    problem = next(item for item in await editor.published(uri) if item["severity"] == 1)
    assert problem["data"]["fixes"]
    context = {"diagnostics": [problem], "only": ["quickfix"]}
    params = {"textDocument": {"uri": uri}, "range": problem["range"], "context": context}
    actions = await editor.request("textDocument/codeAction", params)
    assert actions[0]["kind"] == "quickfix"
    assert actions[0]["diagnostics"][0]["message"] == problem["message"]
    edit = actions[0]["edit"]["documentChanges"][0]
    assert edit["textDocument"] == {"uri": uri, "version": 1}
    version = editor.change(uri, *({"range": item["range"], "text": item["newText"]} for item in edit["edits"]))
    assert not [item for item in await editor.published(uri, version) if item["severity"] == 1]
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    context = {"diagnostics": [], "only": ["source.fixAll"]}
    params = {"textDocument": {"uri": uri}, "range": whole, "context": context}
    assert await editor.request("textDocument/codeAction", params) == []


async def test_diagram_of_a_broken_file_says_that_it_is_stale(editor: Editor) -> None:
    uri = "file:///tmp/stale.qvr"
    editor.open(uri, LM + "\nlet broken = tok_embed >> >>\n")
    found = await editor.request("qvr/diagram", {"textDocument": {"uri": uri}, "name": "backbone"})
    assert found["stale"]
    assert found["nodes"]
    line, column = place(LM, "let backbone")
    where = {"line": line, "character": column}
    assert (await editor.request("qvr/diagram", {"textDocument": {"uri": uri}, "position": where}))[
        "name"
    ] == "backbone"
    with pytest.raises(ResponseError, match="Known:"):
        await editor.request("qvr/diagram", {"textDocument": {"uri": uri}, "name": "nothing"})
    with pytest.raises(ResponseError, match="unknown format"):
        await editor.request("qvr/diagram", {"textDocument": {"uri": uri}, "format": "gif"})


async def test_model_is_plain_json(editor: Editor) -> None:
    uri = "file:///tmp/model.qvr"
    editor.open(uri, LM)
    model = (await editor.request("qvr/model", {"textDocument": {"uri": uri}}))["model"]
    assert model["programs"]["vanilla_rnn_lm"]["parameters"] == 78_592
    assert model["objects"]["Hidden"]["space"]["space"] == {"node": "Real", "shape": [128], "low": None, "high": None}
    assert model["lets"]["backbone"]["arrow"]["sort"] == "sampled"
    start = model["lets"]["backbone"]["range"]["start"]
    assert LM.split("\n")[start["line"]].startswith("let backbone")


@pytest.mark.long
async def test_memory_of_closed_files_is_given_back(editor: Editor) -> None:
    text = "".join(f"object A{n} : Real {n + 1}\nmorphism f{n} : A{n} -> A{n} [role=linear]\n" for n in range(1500))
    sizes: list[int] = []
    for number in range(6):
        uri = f"file:///tmp/memory/{number}.qvr"
        editor.open(uri, text)
        await editor.published(uri)
        editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        await editor.until(lambda: "version" not in editor.diagnostics[uri])  # noqa: B023
        sizes.append(editor.memory())
    # A while after the last file: only a server that never gives it back is waited for to the end.
    for _ in range(int(HANG * 5)):
        if editor.memory() < 1.4 * sizes[0]:
            return
        await asyncio.sleep(0.2)
    raise AssertionError((sizes, editor.memory()))
