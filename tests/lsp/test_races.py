"""What happens at once: a rename and an edit, a file that changes on disk under its open document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lsp.editor import FULL, Editor, ResponseError, at, place
from tests.lsp.test_imports import CELLS, MAIN, SPACES, replacement

OTHER = 'from "lib/cells.qvr" import encode as whole, step\nlet both = whole >> step\n'
CONTENT_MODIFIED = -32801


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "spaces.qvr").write_text(SPACES)
    (tmp_path / "lib" / "cells.qvr").write_text(CELLS)
    (tmp_path / "main.qvr").write_text(MAIN)
    (tmp_path / "other.qvr").write_text(OTHER)
    return tmp_path


def applied(text: str, edits: list[Any]) -> str:
    lines = text.split("\n")
    for each in sorted(edits, key=lambda one: tuple(one["range"]["start"].values()), reverse=True):
        start, end = each["range"]["start"], each["range"]["end"]
        assert start["line"] == end["line"]
        line = lines[start["line"]]
        lines[start["line"]] = line[: start["character"]] + each["newText"] + line[end["character"] :]
    return "\n".join(lines)


@pytest.mark.parametrize("moment", [0, 1, 2])
async def test_a_rename_that_races_an_edit_is_for_the_text_it_names_or_refused(folder: Path, moment: int) -> None:
    """The edit comes right before the rename, right behind it, or in the middle of many of both."""
    editor = await Editor.start()
    await editor.initialize(FULL, folder=folder)
    uri = {name: (folder / name).as_uri() for name in ("main.qvr", "lib/cells.qvr")}
    texts = {uri["main.qvr"]: {1: MAIN}, uri["lib/cells.qvr"]: {1: CELLS}}
    for one, versions in texts.items():
        editor.open(one, versions[1])
    await editor.published(uri["main.qvr"])
    asked: list[Any] = []

    def edit(number: int) -> None:
        for one, versions in texts.items():
            newest = versions[max(versions)]
            versions[editor.change(one, replacement(0, 0, 0, f"# {number}\n"))] = f"# {number}\n{newest}"

    def rename() -> None:
        cells = texts[uri["lib/cells.qvr"]]
        line, column = place(cells[max(cells)], "encode", 2)
        asked.append(
            editor.ask("textDocument/rename", {**at(uri["lib/cells.qvr"], line, column), "newName": "encoded"})[1]
        )

    with editor.in_one_write():
        for number in range(12 if moment == 2 else 1):
            edit(number) if moment != 1 else rename()
            rename() if moment != 1 else edit(number)
    given = 0
    for future in asked:
        try:
            answer = await future
        except ResponseError as refused:
            assert refused.code == CONTENT_MODIFIED, refused
            continue
        given += 1
        changes = {each["textDocument"]["uri"]: each for each in answer["documentChanges"]}
        assert set(changes) == {*texts, (folder / "other.qvr").as_uri()}
        for one, versions in texts.items():
            text = versions[changes[one]["textDocument"]["version"]]
            assert applied(text, changes[one]["edits"]) == text.replace("encode", "encoded")
    assert given or moment
    assert await editor.stop() == 0


async def test_a_file_that_changes_on_disk_under_its_open_document(folder: Path) -> None:
    """What is open counts, told of the change or not; once it is closed the disk does."""
    editor = await Editor.start()
    await editor.initialize(FULL, folder=folder)
    main, cells = (folder / "main.qvr").as_uri(), (folder / "lib" / "cells.qvr").as_uri()
    editor.open(main, MAIN)
    editor.open(cells, CELLS)
    assert await editor.published(main) == [] == await editor.published(cells)
    where = at(main, *place(MAIN, "encode", 2))

    async def line() -> int:
        (found,) = await editor.request("textDocument/definition", where)
        return found["range" if "range" in found else "targetSelectionRange"]["start"]["line"]

    own = await line()
    (folder / "lib" / "cells.qvr").write_text("# moved\n" + CELLS)
    assert await line() == own
    editor.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": cells, "type": 2}]})
    assert await line() == own
    assert (await editor.request("textDocument/hover", at(cells, *place(CELLS, "encode", 2)))) is not None
    # gone from the disk, and still open
    (folder / "lib" / "cells.qvr").unlink()
    editor.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": cells, "type": 3}]})
    assert await line() == own
    editor.change(cells, replacement(0, 0, 0, "# mine\n"))
    assert await line() == own + 1
    (folder / "lib" / "cells.qvr").write_text("# a\n# b\n" + CELLS)
    editor.notify("textDocument/didClose", {"textDocument": {"uri": cells}})
    assert await line() == own + 2
    assert await editor.stop() == 0


async def test_of_two_hundred_open_files_an_edit_is_told_of_its_own(tmp_path: Path) -> None:
    editor = await Editor.start()
    await editor.initialize(FULL, folder=tmp_path)
    uris = [(tmp_path / f"m{number}.qvr").as_uri() for number in range(200)]
    for number, uri in enumerate(uris):
        editor.open(uri, f"object A : Real {number + 1}\nmorphism f : A -> A [role=linear]\nexport f\n")
    for uri in uris:
        assert await editor.published(uri) == []
    editor.arrived.clear()
    changed = {uri: editor.change(uri, replacement(1, 9, 10, "g")) for uri in uris[::40]}
    for uri, version in changed.items():
        assert "unknown-name" in [found["code"] for found in await editor.published(uri, version)]
    for number, uri in enumerate(uris):
        assert f"{number + 1}" in (await editor.hover(uri, 0, 7))["contents"]["value"]
    assert {one[0] for one in editor.arrived if isinstance(one, tuple)} == changed.keys()
    assert await editor.stop() == 0
