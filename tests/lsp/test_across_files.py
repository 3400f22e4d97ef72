"""Questions whose answers lie in several files, in one session of the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lsp.editor import FULL, Editor, at, place
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
