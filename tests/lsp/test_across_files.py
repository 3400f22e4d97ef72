"""Questions whose answers lie in several files, in one session of the server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.editor import FULL, Editor, ResponseError, at, edits_of, place
from tests.lsp.test_imports import CELLS, MAIN, SPACES, replacement

OTHER = 'from "lib/cells.qvr" import encode as whole, step\nlet both = whole >> step\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "spaces.qvr").write_text(SPACES)
    (tmp_path / "lib" / "cells.qvr").write_text(CELLS)
    (tmp_path / "main.qvr").write_text(MAIN)
    (tmp_path / "other.qvr").write_text(OTHER)
    return tmp_path


async def session(folder: Path, *names: str) -> tuple[Editor, list[str]]:
    """A session with some files open, and the addresses of all four."""
    editor = await Editor.start()
    await editor.initialize(FULL, folder=folder)
    for name in names:
        editor.open((folder / name).as_uri(), (folder / name).read_text())
    return editor, [(folder / name).as_uri() for name in ("main.qvr", "lib/cells.qvr", "lib/spaces.qvr", "other.qvr")]


def shown(locations: list[Any]) -> list[tuple[str, int, int]]:
    return [
        (Path(found["uri"]).name, found["range"]["start"]["line"], found["range"]["start"]["character"])
        for found in locations
    ]


async def test_going_to_what_other_files_declare_and_use(folder: Path) -> None:
    editor, (main, cells, spaces, _) = await session(folder, "main.qvr", "lib/spaces.qvr")
    # an unsaved line above moves what the editor is sent to
    editor.change(spaces, replacement(0, 0, 0, "# spaces\n"))

    async def ask(method: str, uri: str, line: int, character: int, **more: Any) -> Any:
        return await editor.request(f"textDocument/{method}", {**at(uri, line, character), **more})

    line, character = place(MAIN, "encode", 2)
    assert shown(await ask("definition", main, line, character)) == [("cells.qvr", 3, 4)]
    assert shown(await ask("definition", main, *place(MAIN, "lib/", 2))) == [("cells.qvr", 0, 0)]
    hover = (await editor.hover(main, line, character))["contents"]["value"]
    assert "encode : s.Token" in hover.replace("c.", "") and "From `lib/cells.qvr`." in hover
    found = await ask("references", main, line, character, context={"includeDeclaration": True})
    assert sorted(shown(found)) == [
        *(("cells.qvr", 3, 4), ("main.qvr", 3, 14), ("other.qvr", 0, 28), ("other.qvr", 0, 38), ("other.qvr", 1, 11)),
    ]
    found = await ask("references", spaces, 2, 8, context={"includeDeclaration": False})
    assert sorted(shown(found)) == [("cells.qvr", 1, 30), ("cells.qvr", 2, 18), ("cells.qvr", 2, 30)]
    editor.open(cells, CELLS)
    assert shown(await ask("definition", cells, 1, 31)) == [("spaces.qvr", 2, 7)]
    assert shown(await ask("typeDefinition", cells, 2, 10)) == [("spaces.qvr", 2, 7)]
    marks = await ask("documentHighlight", cells, 1, 31)
    assert len(marks) == 3
    links = await editor.request("textDocument/documentLink", {"textDocument": {"uri": main}})
    assert [(link["target"], link["range"]["start"]["character"]) for link in links] == [(cells, 8)]
    assert await editor.stop() == 0


async def test_references_know_what_stands_in_the_editor_and_what_on_disk(folder: Path) -> None:
    editor, (main, cells, _, other) = await session(folder, "main.qvr", "other.qvr")
    editor.change(other, replacement(1, 11, 16, "step"))
    asked = {**at(main, *place(MAIN, "encode", 2)), "context": {"includeDeclaration": False}}
    assert shown(await editor.request("textDocument/references", asked)) == [
        *(("main.qvr", 3, 14), ("other.qvr", 0, 28), ("other.qvr", 0, 38)),
    ]
    (folder / "lib" / "cells.qvr").write_text("# moved\n" + CELLS)
    editor.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": cells, "type": 2}]})
    found = await editor.request("textDocument/definition", at(main, *place(MAIN, "encode", 2)))
    assert shown(found) == [("cells.qvr", 4, 4)]
    assert await editor.stop() == 0


def written(folder: Path, edit: Any) -> dict[str, str]:
    """The files that an edit changes, as they are afterwards."""
    found: dict[str, str] = {}
    for uri, edits in edits_of(edit).items():
        path = Path(uri.removeprefix("file://"))
        lines = path.read_text().split("\n")
        for each in reversed(edits):
            start, end = each["range"]["start"], each["range"]["end"]
            line, first, last = start["line"], start["character"], end["character"]
            lines[line] = lines[line][:first] + each["newText"] + lines[line][last:]
        found[path.relative_to(folder).as_posix()] = "\n".join(lines)
    return found


async def test_a_rename_changes_three_files_in_one_edit_wherever_it_is_asked(folder: Path) -> None:
    editor, (main, cells, _, other) = await session(folder, "main.qvr", "other.qvr")
    wanted = {
        "lib/cells.qvr": CELLS.replace("encode", "read"),
        "main.qvr": MAIN.replace("encode", "read"),
        "other.qvr": OTHER.replace("import encode", "import read"),
    }
    for uri, text in ((main, MAIN), (other, OTHER)):
        asked = at(uri, *place(text, "encode", 2))
        assert (await editor.request("textDocument/prepareRename", asked))["placeholder"] == "encode"
        edit = await editor.request("textDocument/rename", {**asked, "newName": "read"})
        assert written(folder, edit) == wanted
        versions = {each["textDocument"]["uri"]: each["textDocument"]["version"] for each in edit["documentChanges"]}
        assert versions == {main: 1, cells: None, other: 1}
    # an alias is a matter of its file
    asked = {**at(other, *place(OTHER, "whole >>", 1)), "newName": "all_of_it"}
    assert written(folder, await editor.request("textDocument/rename", asked)) == {
        "other.qvr": OTHER.replace("whole", "all_of_it")
    }
    # the editor's answer is taken over: nothing is wrong afterwards
    for uri, line, first, last in ((main, 3, 14, 20), (other, 0, 28, 34)):
        editor.change(uri, replacement(line, first, last, "read"))
    (folder / "lib" / "cells.qvr").write_text(wanted["lib/cells.qvr"])
    editor.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": cells, "type": 2}]})
    await editor.until(
        lambda: all(
            not [found for found in editor.diagnostics[uri]["diagnostics"] if found["severity"] < 3]
            and editor.diagnostics[uri]["version"] == 2
            for uri in (main, other)
        )
    )
    assert await editor.stop() == 0


async def test_a_rename_that_cannot_be_says_why(folder: Path) -> None:
    outside = folder.parent / f"{folder.name}_outside"
    outside.mkdir()
    (outside / "far.qvr").write_text("object Far : Real 3\n")
    (folder / "near.qvr").write_text(
        f'import "../{outside.name}/far.qvr" as f\nmorphism g : f.Far -> f.Far [role=linear]\nexport g\n'
    )
    editor, (main, _, _, other) = await session(folder, "main.qvr", "other.qvr", "near.qvr")
    near = (folder / "near.qvr").as_uri()
    for uri, text, word, new, why in (
        (main, MAIN, "encode", "both", "`both` is declared in other.qvr, which imports"),
        (main, MAIN, "encode", "_read", "names that begin with `_` stay inside their file"),
        (main, MAIN, "encode", "embed", "`embed` is already a morphism, declared on line 2"),
        (near, (folder / "near.qvr").read_text(), "Far", "Wide", "outside of the folders that are open"),
    ):
        if word == "encode" and new == "both":
            editor.change(other, replacement(0, 0, len(OTHER.split("\n", maxsplit=1)[0]), 'import "lib/cells.qvr"'))
            editor.change(other, replacement(1, 11, 16, "encode"))
        with pytest.raises(ResponseError, match=why):
            await editor.request("textDocument/rename", {**at(uri, *place(text, word, 1)), "newName": new})
    assert await editor.stop() == 0


async def test_three_files_through_widths_a_rename_a_circle_and_a_deletion(folder: Path) -> None:
    editor, (main, cells, spaces, _) = await session(folder, "main.qvr", "lib/cells.qvr", "lib/spaces.qvr")

    async def problems(uri: str, version: int, *codes: str) -> Any:
        def there() -> Any:
            held = editor.diagnostics.get(uri, {"version": 0})
            found = [each for each in held.get("diagnostics", ()) if each["severity"] == 1]
            return held["version"] == version and [each["code"] for each in found] == list(codes) and (found or True)

        return await editor.until(there)

    for uri in (main, cells, spaces):
        await problems(uri, 1)
    # a width: told in the file that is wrong, with the declaration in the other
    editor.change(spaces, replacement(1, 21, 22, "9"))
    [wrong] = await problems(main, 1, "wrong-size")
    arrived = list(editor.arrived)
    assert arrived[arrived.index((spaces, 2)) :].count((main, 1)) == 1
    assert spaces in [each["location"]["uri"] for each in wrong["relatedInformation"]]
    editor.change(spaces, replacement(1, 21, 22, "8"))
    await problems(main, 1)
    # a name of the first file, renamed in the second, while all three are open
    edit = await editor.request("textDocument/rename", {**at(cells, *place(CELLS, "s.Hidden", 3)), "newName": "State"})
    versions = {each["textDocument"]["uri"]: each["textDocument"]["version"] for each in edit["documentChanges"]}
    assert versions == {cells: 1, spaces: 3}
    for uri, edits in edits_of(edit).items():
        editor.change(uri, *({"range": each["range"], "text": each["newText"]} for each in reversed(edits)))
    for uri, version in ((main, 1), (cells, 2), (spaces, 4)):
        await problems(uri, version)
    # a circle, and out of it
    editor.change(spaces, replacement(0, 0, 0, 'import "../main.qvr"\n'))
    for uri, version in ((main, 1), (cells, 2), (spaces, 5)):
        await problems(uri, version, "import-cycle")
    editor.change(spaces, replacement(0, 0, 20, ""))
    for uri, version in ((main, 1), (cells, 2), (spaces, 6)):
        await problems(uri, version)
    # the file goes: from the editor, then from the disk
    editor.notify("textDocument/didClose", {"textDocument": {"uri": spaces}})
    await problems(cells, 2, "unknown-import", "unknown-import", "unknown-import")
    (folder / "lib" / "spaces.qvr").unlink()
    editor.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": spaces, "type": 3}]})
    await problems(cells, 2, "import-missing")
    assert await editor.stop() == 0


async def test_paths_are_completed_and_what_a_file_offers(folder: Path) -> None:
    text = 'import "\nfrom "lib/cells.qvr" import \n'
    (folder / "new.qvr").write_text(text)
    (folder / "lib" / "notes.txt").write_text("no program")
    editor, _ = await session(folder, "new.qvr")
    new = (folder / "new.qvr").as_uri()

    async def offered(line: int, character: int) -> list[str]:
        answer = await editor.request("textDocument/completion", at(new, line, character))
        return [item["label"] for item in answer["items"]]

    found = await offered(0, 8)
    assert {"lib/", "main.qvr", "other.qvr", "../"} <= set(found) and "new.qvr" not in found
    editor.change(new, replacement(0, 8, 8, "lib/sp"))
    answer = await editor.request("textDocument/completion", at(new, 0, 14))
    assert [item["label"] for item in answer["items"]] == ["cells.qvr", "spaces.qvr"]
    assert answer["items"][0]["textEdit"] == {
        "range": {"start": {"line": 0, "character": 12}, "end": {"line": 0, "character": 14}},
        "newText": "cells.qvr",
    }
    assert await offered(1, 28) == ["embed", "encode", "step"]
    assert await editor.stop() == 0


async def test_an_unknown_name_is_imported_from_the_file_or_the_library_that_declares_it(folder: Path) -> None:
    text = "morphism head : Hidden -> Hidden [role=linear]\nexport head\n"
    (folder / "new.qvr").write_text(text)
    editor, (_, _, spaces, _) = await session(folder, "new.qvr", "lib/spaces.qvr")
    new = (folder / "new.qvr").as_uri()
    await editor.published(new)
    # what stands in the editor counts
    editor.change(spaces, replacement(1, 7, 13, "Other"))
    asked = {"textDocument": {"uri": new}, "range": replacement(0, 17, 17, "")["range"], "context": {"diagnostics": []}}
    found = await editor.request("textDocument/codeAction", asked)
    assert [each["title"] for each in found if each["title"].startswith("Import")] == []
    editor.change(spaces, replacement(1, 7, 12, "Hidden"))
    found = await editor.request("textDocument/codeAction", asked)
    [fix] = [each for each in found if each["title"].startswith("Import")]
    assert fix["title"] == 'Import `Hidden` from "lib/spaces.qvr"'
    assert fix["diagnostics"][0]["code"] == "unknown-name"
    assert [each["newText"] for each in edits_of(fix["edit"])[new]] == ['from "lib/spaces.qvr" import Hidden\n']
    editor.change(new, replacement(0, 0, 0, 'import "lib/cells.qvr"\nfrom "lib/spaces.qvr" import Token, Hidden\n'))
    asked["context"]["only"] = ["source.organizeImports"]
    [action] = await editor.request("textDocument/codeAction", asked)
    assert action["kind"] == "source.organizeImports"
    assert [each["newText"] for each in edits_of(action["edit"])[new]] == ['from "lib/spaces.qvr" import Hidden\n']
    assert await editor.stop() == 0


async def test_calls_lead_into_other_files_and_back(folder: Path) -> None:
    editor, (main, cells, _, _) = await session(folder, "main.qvr")
    [item] = await editor.request("textDocument/prepareCallHierarchy", at(main, *place(MAIN, "encode", 2)))
    assert (item["name"], item["uri"], item["selectionRange"]["start"]["line"]) == ("encode", cells, 3)
    found = await editor.request("callHierarchy/incomingCalls", {"item": item})
    assert [(Path(each["from"]["uri"]).name, each["from"]["name"]) for each in found] == [
        *(("main.qvr", "model"), ("other.qvr", "both")),
    ]
    assert shown([{"uri": main, "range": found[0]["fromRanges"][0]}]) == [("main.qvr", 3, 14)]
    found = await editor.request("callHierarchy/outgoingCalls", {"item": item})
    assert [each["to"]["name"] for each in found] == ["embed", "step"]
    [model] = await editor.request("textDocument/prepareCallHierarchy", at(main, *place(MAIN, "let model", 5)))
    found = await editor.request("callHierarchy/outgoingCalls", {"item": model})
    assert sorted((Path(each["to"]["uri"]).name, each["to"]["name"]) for each in found) == [
        *(("cells.qvr", "encode"), ("main.qvr", "head")),
    ]
    symbols = await editor.request("workspace/symbol", {"query": "encode"})
    assert [Path(each["location"]["uri"]).name for each in symbols] == ["cells.qvr"]
    assert await editor.stop() == 0


@pytest.mark.long
async def test_large_files_are_read_and_checked_while_others_are_answered(folder: Path) -> None:
    head = "morphism x0 : Hidden -> Hidden [role=linear]\n"
    chain = "".join(f"let x{n} = x{n - 1} >> x0\n" for n in range(1, 2301))
    (folder / "big.qvr").write_text(f'from "lib/spaces.qvr" import Hidden\n{head}{chain}')
    user = 'from "big.qvr" import x2300\nlet y = x2300\nexport y\n'
    (folder / "user.qvr").write_text(user)
    editor, (main, _, spaces, _) = await session(folder, "main.qvr", "lib/spaces.qvr")
    await editor.published(main)
    big, uses = (folder / "big.qvr").as_uri(), (folder / "user.qvr").as_uri()

    async def answered_before(uri: str) -> None:
        editor.arrived.clear()
        asked, answer = editor.ask("textDocument/hover", at(main, 1, 9))
        await answer
        await editor.until(lambda: (uri, 1) in editor.arrived)
        assert list(editor.arrived).index(asked) < list(editor.arrived).index((uri, 1))

    # a closed one that is imported
    with editor.in_one_write():
        editor.open(uses, user)
        asked = answered_before(uses)
        hovering = asyncio.ensure_future(asked)
        await asyncio.sleep(0)
    await hovering
    assert not [each for each in editor.diagnostics[uses]["diagnostics"] if each["severity"] == 1]
    # an open one that imports what is edited
    editor.open(big, (folder / "big.qvr").read_text())
    await editor.published(big)
    with editor.in_one_write():
        editor.change(spaces, replacement(1, 7, 13, "Wide"))
        hovering = asyncio.ensure_future(answered_before(big))
        await asyncio.sleep(0)
    await hovering
    found = [each["code"] for each in editor.diagnostics[big]["diagnostics"] if each["severity"] == 1]
    assert found == ["unknown-import"]
    await editor.until(lambda: [d for d in editor.diagnostics[uses]["diagnostics"] if d["code"] == "import-error"])
    assert await editor.stop() == 0


async def test_a_diagram_knows_the_file_of_what_is_imported(folder: Path) -> None:
    editor, (main, cells, _, _) = await session(folder, "main.qvr")
    asked = {"textDocument": {"uri": main}, "name": "model", "collapse": False}
    found = await editor.request("qvr/diagram", asked)
    homes = {
        (Path(node["home"]["uri"]).name, node["home"]["range"]["start"]["line"], node["declared"] or node["label"])
        for node in found["nodes"]
        if node["home"] is not None
    }
    assert ("cells.qvr", 1, "c.embed") in homes and ("cells.qvr", 2, "c.step") in homes
    assert [node["home"] for node in found["nodes"] if node["label"] == "head"] == [None]
    assert cells in {node["home"]["uri"] for node in found["nodes"] if node["home"] is not None}
    assert await editor.stop() == 0


async def test_a_code_in_a_comment_leads_to_its_page(folder: Path) -> None:
    (folder / "noted.qvr").write_text("# what gives error[wrong-size] here\nobject A : Real 3\n")
    editor, _ = await session(folder, "noted.qvr")
    links = await editor.request(
        "textDocument/documentLink", {"textDocument": {"uri": (folder / "noted.qvr").as_uri()}}
    )
    assert [link["target"].rpartition("/")[2] for link in links] == ["wrong-size.md"]
    assert await editor.stop() == 0
