"""docs/export.md does what it says: its commands are run, its program is what it shows."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from qvr_core.analysis import analyse
from qvr_core.export import TARGETS, export
from tests.docs.test_runs_page import shell

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
SHOWN = [line.split("   #")[0].strip() for line in re.findall(r"^    (qvr .*)$", PAGE, re.MULTILINE)]


@pytest.mark.parametrize("command", SHOWN)
def test_command(command: str, tmp_path: Path) -> None:
    for path in (ROOT / "examples" / "statistics").glob("radon*"):
        shutil.copy(path, tmp_path)
    shutil.copy(ROOT / "examples" / "statistics" / "qvr.toml", tmp_path)
    shell(command, tmp_path)
    output = re.search(r"-o (\S+)", command)
    assert output is None or (tmp_path / output[1]).with_suffix(".json").stat().st_size > 1000


def test_the_program_becomes_what_the_page_shows() -> None:
    (source,) = re.findall(r"```qvr\n(.*?)```", PAGE, re.DOTALL)
    (shown,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert export(analyse(source), "schools", "numpyro").text.endswith("\n\n\n" + shown)


def test_it_names_every_target() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == list(TARGETS)
