"""C7 and C12: `qvr play` lists what it reads, and waits for nothing that may never come."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from qvr_core.analysis import Analyzer
from qvr_core.semantics.modules.paths import WrongPath, location_of
from qvr_lsp.messages import ReadParams, SaveParams
from qvr_lsp.play.folder import Folder
from qvr_lsp.protocol import RequestFailed
from qvr_lsp.workspace import MAX_BYTES


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_c7_a_named_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.qvr")
    with pytest.raises(RequestFailed, match=r"x\.qvr cannot be read: it is no file"):
        Folder(tmp_path).read(ReadParams(path="x.qvr"))
    with pytest.raises(RequestFailed, match=r"x\.qvr cannot be read: it is no file"):
        Folder(tmp_path).save(SaveParams(path="x.qvr", text="", stamp="a"))


def test_c12_what_is_listed_can_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "a.qvr").write_text("object X : Real 1\n")
    (folder / ".hidden.qvr").write_text("")
    (folder / "folder.qvr").mkdir()
    (tmp_path / "outside.qvr").write_text("")
    (folder / "link.qvr").symlink_to(tmp_path / "outside.qvr")
    (folder / "nowhere.qvr").symlink_to(folder / "missing")
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "pipe.qvr")
        os.mkfifo(folder / "pipe.csv")
    with open(folder / "large.qvr", "wb") as file:
        file.truncate(MAX_BYTES + 1)
    play = Folder(folder)
    listing = play.listing()
    assert [one["path"] for one in listing["files"]] == ["a.qvr"]
    assert listing["data"] == []
    for one in listing["files"]:
        assert play.read(ReadParams(path=one["path"]))["text"]


@pytest.mark.parametrize("written", [".", "..", "../..", "a/..", "folder/", "./"])
def test_c12_a_folder_is_offered_no_file(written: str) -> None:
    found = location_of(written, "/w/a.qvr")
    assert isinstance(found, WrongPath)
    assert found.meant is None
    (error,) = [item for item in Analyzer(f'import "{written}"\n').snapshot().diagnostics()]
    assert error.fixes == ()


@pytest.mark.parametrize(
    ("written", "meant"), [("a", "a.qvr"), ("../a", "../a.qvr"), ("a.", "a.qvr"), ("b/a", "b/a.qvr")]
)
def test_c12_a_name_without_its_ending_is_offered_it(written: str, meant: str) -> None:
    found = location_of(written, "/w/a.qvr")
    assert isinstance(found, WrongPath)
    assert found.meant == meant
