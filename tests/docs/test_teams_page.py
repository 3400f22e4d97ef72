"""docs/teams.md does what it says: its commands are run, in a copy of the examples; its files name what there is."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.docs.test_runs_page import shell

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "teams.md").read_text(encoding="utf-8")
SHOWN = [line.split("   #")[0].strip() for line in re.findall(r"^    (qvr .*)$", PAGE, re.MULTILINE)]
FINDS = ("qvr check examples", "qvr format --check")
"""Where there is something to find: status 1 is the answer, a usage error is none."""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("teams")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("analyses", "statistics"))
    return folder


@pytest.mark.parametrize("command", SHOWN)
def test_command(command: str, clone: Path) -> None:
    shell(f"{command} || test $? -eq 1" if command.startswith(FINDS) else command, clone)


def test_the_action_runs_what_the_page_says(clone: Path) -> None:
    """Its last step, with the paths of the page and one that is no order to the shell."""
    step = (ROOT / "action.yml").read_text(encoding="utf-8").rsplit("run: ", 1)[1].strip()
    (clone / "a folder; touch hacked").mkdir(exist_ok=True)
    (clone / "a folder; touch hacked" / "m.qvr").write_text("object A : Reel 3\n", encoding="utf-8")
    said = shell(f"export QVR_PATHS=$'examples/seq2seq.qvr\\na folder; touch hacked'; {step} || test $? -eq 123", clone)
    assert said.startswith("::error file=a folder; touch hacked/m.qvr,line=1")
    assert not (clone / "hacked").exists()


@pytest.mark.parametrize("name", ["qvr-check", "qvr-format"])
def test_a_hook_is_a_command(name: str, clone: Path) -> None:
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    assert f"- id: {name}\n" in text and f"- id: {name}\n" in PAGE
    entry = re.search(rf"- id: {name}\n(?:  .*\n)*?  entry: (.*)\n", text)
    assert entry is not None
    shell(f"{entry[1]} examples/seq2seq.qvr", clone)
