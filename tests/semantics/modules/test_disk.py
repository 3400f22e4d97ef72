"""Which files imports read, and which they do not."""

import os
import tomllib
from pathlib import Path

import pytest

from qvr_core.analysis import Analyzer, Snapshot, analyse
from qvr_core.disk import LIBRARY, MOST_BYTES, Disk, library_files, location_of_file
from qvr_core.workspace import Workspace

LAYERS = "object Hidden : Real 8\nmorphism step : Hidden -> Hidden [role=linear]\n"


def found(folder: Path, written: str, *, trusted: bool = True) -> str:
    """What is wrong with an import in `folder`; '' where it is followed."""
    text = f'import "{written}" as l\nexport l.step\n'
    location = location_of_file(folder / "main.qvr")
    snapshot: Snapshot = analyse(text, None, location, Workspace(Disk(trusted=trusted)))
    return "; ".join(one.message for one in snapshot.diagnostics())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "project"
    (inside / "sub").mkdir(parents=True)
    for place in (tmp_path, inside, inside / "sub"):
        (place / "layers.qvr").write_text(LAYERS)
    return inside


def test_files_of_the_folder_and_below_are_read(folder: Path) -> None:
    for written in ("layers.qvr", "./layers.qvr", "sub/layers.qvr", "sub/../layers.qvr"):
        assert found(folder, written) == ""


def test_a_folder_is_left_only_by_dots_that_are_seen(folder: Path) -> None:
    assert found(folder, "../layers.qvr") == ""
    (folder / "away.qvr").symlink_to(folder.parent / "layers.qvr")
    (folder / "out").symlink_to(folder.parent, target_is_directory=True)
    assert "link that leads elsewhere" in found(folder, "away.qvr")
    assert "link that leads elsewhere" in found(folder, "out/layers.qvr")
    assert "absolute path" in found(folder, str(folder / "layers.qvr"))
    assert "absolute path" in found(folder, "~/layers.qvr")
    assert "absolute path" in found(folder, "file:///layers.qvr")


def test_links_inside_the_folder_are_followed_where_it_is_trusted(folder: Path) -> None:
    (folder / "here.qvr").symlink_to(folder / "sub" / "layers.qvr")
    assert found(folder, "here.qvr") == ""
    assert "symbolic link" in found(folder, "here.qvr", trusted=False)
    (folder / "linked").symlink_to(folder / "sub", target_is_directory=True)
    assert found(folder, "linked/layers.qvr") == ""
    assert "symbolic link" in found(folder, "linked/layers.qvr", trusted=False)


def test_the_folder_of_the_program_may_itself_be_behind_a_link(folder: Path) -> None:
    (folder.parent / "same").symlink_to(folder, target_is_directory=True)
    assert found(folder.parent / "same", "layers.qvr", trusted=False) == ""


def test_what_is_no_file_is_not_read(folder: Path) -> None:
    (folder / "folder.qvr").mkdir()
    os.mkfifo(folder / "pipe.qvr")
    (folder / "nowhere.qvr").symlink_to(folder / "gone.qvr")
    assert "is no file" in found(folder, "folder.qvr")
    assert "is no file" in found(folder, "pipe.qvr")
    assert "leads nowhere" in found(folder, "nowhere.qvr")
    assert "there is no file gone.qvr" in found(folder, "gone.qvr")


def test_no_file_of_more_than_ten_megabytes_is_read(folder: Path) -> None:
    with open(folder / "huge.qvr", "wb") as file:
        file.write(LAYERS.encode())
        file.truncate(MOST_BYTES + 1)
    assert "10,000,001 bytes" in found(folder, "huge.qvr")
    assert Disk().text(location_of_file(folder / "huge.qvr")) is None


@pytest.mark.parametrize("written", ["std/../disk.py", "std/../workspace.qvr", "std//etc/x.qvr", "std/a/../../x.qvr"])
def test_the_library_is_not_left(folder: Path, written: str) -> None:
    assert found(folder, written) != ""
    assert "there is no file" not in found(folder, written)


def test_a_path_that_no_file_can_have_is_an_error_of_the_import(folder: Path) -> None:
    for written in ("a" * 300 + ".qvr", "a" * 5000 + ".qvr", "std/" + "a" * 5000 + ".qvr", "\ud800.qvr"):
        message = found(folder, written)
        assert "there is no file" in message
        assert len(message) < 1200


def test_every_file_of_the_library_is_imported_from_anywhere(folder: Path) -> None:
    assert library_files()
    for written in library_files():
        for trusted in (True, False):
            text = f'import "{written}" as l\n'
            location = location_of_file(folder / "main.qvr")
            assert not analyse(text, None, location, Workspace(Disk(trusted=trusted))).diagnostics()


def test_a_file_that_the_library_lacks_is_told_with_the_one_that_was_meant(folder: Path) -> None:
    assert "did you mean std/priors.qvr?" in found(folder, "std/prior.qvr")
    assert "it has std/" in found(folder, "std/cells/nothing.qvr")


def test_a_file_that_is_not_there_is_told_with_the_one_that_was_meant(folder: Path) -> None:
    (folder / "setz").mkdir()
    (folder / "setz" / "spaces.qvr").write_text("object A : Real 2\n")
    (diagnostic,) = analyse(
        'import "setz/spacez.qvr" as s\n', None, location_of_file(folder / "main.qvr"), Workspace(Disk())
    ).diagnostics()
    assert diagnostic.message == "there is no file setz/spacez.qvr; did you mean setz/spaces.qvr?"
    assert [edit.text for edit in diagnostic.fixes[0].edits] == ['"setz/spaces.qvr"']


def test_an_open_document_does_not_stand_in_the_place_of_the_library(folder: Path) -> None:
    workspace = Workspace(Disk(trusted=False))
    workspace.put(Analyzer("object Gone : FinSet 2\n", None, "std:priors.qvr", workspace).module())
    copy = location_of_file(LIBRARY / "priors.qvr")
    workspace.put(Analyzer("object Gone : FinSet 2\n", None, copy, workspace).module())
    text = 'from "std/priors.qvr" import horseshoe\n'
    assert not analyse(text, None, location_of_file(folder / "main.qvr"), workspace).diagnostics()


def test_the_wheel_takes_the_library_along() -> None:
    project = Path(__file__).parents[3] / "pyproject.toml"
    build = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    shipped = {path for pattern in build["artifacts"] for path in project.parent.glob(pattern)}
    assert {LIBRARY / each.removeprefix("std/") for each in library_files()} <= shipped
    assert "qvr_core" in build["targets"]["wheel"]["only-include"]
