"""docs/diagrams.md: its commands are run, its TeX names the libraries that a picture asks for, its fields are all."""

import re
import shutil
from pathlib import Path

import pytest

from qvr_core.diagrams.json_document import Document
from qvr_core.diagrams.tikz import LIBRARIES
from tests.docs.test_runs_page import shell

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "diagrams.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "command", [line.split("   #")[0].strip() for line in re.findall(r"^    (qvr .*)$", PAGE, re.M)]
)
def test_command(command: str, tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "bidirectional_rnn_lm.qvr", tmp_path / "examples")
    said = shell(command, tmp_path)
    if "-o" in command:
        assert "tikzpicture" in (tmp_path / "lm.tex").read_text(encoding="utf-8")
    else:
        assert said.startswith(
            {"text": "bidirectional_rnn_lm : ", "json": "{"}.get(command.rsplit(maxsplit=1)[-1], "flowchart")
        )


def test_the_document_loads_what_a_picture_needs() -> None:
    assert f"\\usetikzlibrary{{{','.join(LIBRARIES)}}}" in PAGE


def test_every_field_is_told() -> None:
    told = {name for row in re.findall(r"^\| (`[^|]*) \|", PAGE, re.M) for name in re.findall(r"`(\w+)`", row)}
    assert told == set(Document.model_fields)
