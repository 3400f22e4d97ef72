"""Files that import one another, in one session of the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lsp.editor import FULL, Editor

SPACES = "object Token : FinSet 20\nobject Hidden : Real 8\n"
CELLS = """\
import "spaces.qvr" as s
morphism embed : s.Token -> s.Hidden [role=embed]
morphism step : s.Hidden -> s.Hidden [role=linear]
let encode = embed >> step
"""
MAIN = """\
import "lib/cells.qvr" as c
object Read : Real 8
morphism head : Read -> Real 2 [role=linear]
let model = c.encode >> head
export model
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "spaces.qvr").write_text(SPACES)
    (tmp_path / "lib" / "cells.qvr").write_text(CELLS)
    (tmp_path / "main.qvr").write_text(MAIN)
    return tmp_path


async def started(folder: Path, *names: str) -> tuple[Editor, list[str]]:
    editor = await Editor.start()
    await editor.initialize(FULL, folder=folder)
    uris = [(folder / name).as_uri() for name in names]
    for uri, name in zip(uris, names, strict=True):
        editor.open(uri, (folder / name).read_text())
    return editor, uris


async def told(editor: Editor, uri: str, code: str | None) -> list[Any]:
    """The problems of a file, once one of them has this code, or once there are none."""

    def fits(params: Any) -> bool:
        codes = [item["code"] for item in params["diagnostics"]]
        return params["uri"] == uri and (not codes if code is None else code in codes)

    params = await editor.notification("textDocument/publishDiagnostics", fits)
    editor.notifications.clear()
    return params["diagnostics"]


def replacement(line: int, first: int, last: int, text: str) -> Any:
    return {
        "range": {"start": {"line": line, "character": first}, "end": {"line": line, "character": last}},
        "text": text,
    }


async def test_a_width_in_one_file_is_an_error_in_another_at_once(folder: Path) -> None:
    editor, (main, spaces) = await started(folder, "main.qvr", "lib/spaces.qvr")
    await told(editor, spaces, "unused")
    editor.arrived.clear()
    editor.change(spaces, replacement(1, 21, 22, "9"))
    found = await told(editor, main, "wrong-size")
    assert list(editor.arrived)[-2:] == [(spaces, 2), (main, 1)]
    assert found[0]["range"] == {"start": {"line": 1, "character": 19}, "end": {"line": 1, "character": 20}}
    assert "but 9 is wanted" in found[0]["message"]
    places = [(each["location"]["uri"], each["location"]["range"]["start"]) for each in found[0]["relatedInformation"]]
    assert (spaces, {"line": 1, "character": 7}) in places
    editor.change(spaces, replacement(1, 21, 22, "8"))
    assert await told(editor, main, None) == []
    assert await editor.stop() == 0


async def test_an_edit_that_makes_a_circle_of_files(folder: Path) -> None:
    editor, (main, cells, spaces) = await started(folder, "main.qvr", "lib/cells.qvr", "lib/spaces.qvr")
    await told(editor, spaces, "unused")
    editor.change(spaces, replacement(0, 0, 0, 'import "../main.qvr"\n'))
    for uri, name in ((main, "main.qvr"), (cells, "cells.qvr"), (spaces, "spaces.qvr")):
        found = await editor.until(
            lambda uri=uri: [d for d in editor.diagnostics[uri]["diagnostics"] if d["code"] == "import-cycle"]
        )
        assert found[0]["message"].startswith(f"{name} imports itself: {name} → ")
    editor.change(spaces, replacement(0, 0, 20, ""))
    for uri in (main, cells):
        await editor.until(lambda uri=uri: not editor.diagnostics[uri]["diagnostics"])
    assert await editor.stop() == 0


async def test_files_that_go_and_come_back_on_disk(folder: Path) -> None:
    editor, (main,) = await started(folder, "main.qvr")
    await told(editor, main, None)
    cells = folder / "lib" / "cells.qvr"

    def watched(path: Path, kind: int) -> None:
        editor.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": path.as_uri(), "type": kind}]})

    cells.unlink()
    watched(cells, 3)
    found = await told(editor, main, "import-missing")
    assert [item["message"] for item in found] == ["there is no file lib/cells.qvr"]
    cells.write_text(CELLS)
    watched(cells, 1)
    assert await told(editor, main, None) == []
    spaces = folder / "lib" / "spaces.qvr"
    spaces.write_text(SPACES.replace("Real 8", "Real 7"))
    watched(spaces, 2)
    found = await told(editor, main, "wrong-size")
    assert "but 7 is wanted" in found[0]["message"]
    assert await editor.stop() == 0


async def test_an_open_file_counts_before_the_one_on_disk_until_it_is_closed(folder: Path) -> None:
    editor, (main, spaces) = await started(folder, "main.qvr", "lib/spaces.qvr")
    editor.change(spaces, replacement(1, 21, 22, "9"))
    await told(editor, main, "wrong-size")
    editor.notify("textDocument/didClose", {"textDocument": {"uri": spaces}})
    assert await told(editor, main, None) == []
    assert await editor.stop() == 0


async def test_links_are_not_followed_where_the_folder_is_not_trusted(folder: Path) -> None:
    (folder / "link.qvr").symlink_to(folder / "lib" / "spaces.qvr")
    (folder / "user.qvr").write_text(
        'import "link.qvr" as l\nmorphism f : l.Hidden -> l.Hidden [role=linear]\nexport f\n'
    )
    uri = (folder / "user.qvr").as_uri()
    editor = await Editor.start()
    await editor.initialize(FULL, folder=folder, options={"trusted": False})
    editor.open(uri, (folder / "user.qvr").read_text())
    found = await told(editor, uri, "import-missing")
    assert "symbolic link" in found[0]["message"]
    assert await editor.stop() == 0


@pytest.mark.parametrize("names", [("a.qvr", "b.qvr"), ("b.qvr", "a.qvr")])
async def test_texts_without_files_that_are_opened_at_once(names: tuple[str, str], tmp_path: Path) -> None:
    texts = {"a.qvr": "object A : Real 2\n", "b.qvr": 'from "a.qvr" import A\nlet h = identity(A)\nexport h\n'}
    editor = await Editor.start()
    await editor.initialize(FULL, folder=tmp_path)
    for name in names:
        editor.open((tmp_path / name).as_uri(), texts[name])
    assert await told(editor, (tmp_path / "b.qvr").as_uri(), None) == []
    await editor.stop()
