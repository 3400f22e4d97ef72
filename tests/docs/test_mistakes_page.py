"""docs/mistakes.md: each program says what the page shows, and its repair leaves nothing to say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qvr_core.cli import app

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "mistakes.md").read_text(encoding="utf-8")
SECTIONS = {part.split("\n", 1)[0]: part for part in PAGE.split("\n## ")[1:-1]}
"""Every section but the last, which says what is not found."""

FILE = re.compile(r"<!-- file: ([\w.]+) -->\n```\w+\n(.*?)```", re.DOTALL)
SHOWN = re.compile(r"```sh\n(.*?)\n```\n\n```text\n(.*?)```", re.DOTALL)
REPAIR = re.compile(r"```diff\n(.*?)```", re.DOTALL)


def said(command: str) -> str:
    """What a command of the page prints."""
    name, *arguments = shlex.split(command)
    assert name == "qvr"
    return CliRunner().invoke(app, arguments).output


def repair(folder: Path, lines: list[str]) -> None:
    """Put the lines with a plus in the place of those with a minus, which stand in one file."""
    old = "".join(line[1:] + "\n" for line in lines if line.startswith("-"))
    new = "".join(line[1:] + "\n" for line in lines if line.startswith("+"))
    (file,) = [path for path in folder.iterdir() if old in path.read_text(encoding="utf-8")]
    file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def test_there_are_ten_each_with_its_thread() -> None:
    assert len(SECTIONS) == 10
    assert all(re.search(r"\]\(https://", section) for section in SECTIONS.values())


@pytest.mark.parametrize("title", SECTIONS)
def test_a_mistake_is_told_as_shown_and_mended_as_shown(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = SECTIONS[title]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for name, text in FILE.findall(section):
        (tmp_path / name).write_text(text, encoding="utf-8")
    ((command, shown),) = SHOWN.findall(section)
    assert said(command) == shown
    ((lines),) = REPAIR.findall(section)
    repair(tmp_path, lines.splitlines())
    assert said(command) == "no problems\n"
