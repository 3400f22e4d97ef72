"""docs/editors.md names what there is."""

import re
from pathlib import Path

import pytest

from tests.docs.test_runs_page import shell

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "editors.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("target", re.findall(r"\]\(\.\./([^)]+)\)|`([\w/]+/)`", PAGE))
def test_a_file_is_there(target: tuple[str, str]) -> None:
    assert (ROOT / "".join(target)).exists()


def test_every_folder_of_editors_is_named() -> None:
    folders = [path.name for path in (ROOT / "editors").iterdir() if path.is_dir()]
    assert folders and not [name for name in folders if f"../editors/{name}/" not in PAGE]


def test_the_commands_are_there(tmp_path: Path) -> None:
    (tmp_path / "model.qvr").write_text("object A : Real 3\n")
    for command in re.findall(r"`(pygmentize [^`]*)`", PAGE):
        assert "object" in shell(command, tmp_path)
    assert "qvr lsp" in PAGE and "stdio" in shell("qvr lsp --help", tmp_path)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(f"\n{target}:" in makefile for target in re.findall(r"`make (\w+)`", PAGE))
