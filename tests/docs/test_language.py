"""The page on the language says what is so: its programs are clean, and it lists the families that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from qvr_core.analysis import analyse
from qvr_core.dsl import loads
from qvr_core.semantics.diagnostics import Severity
from qvr_core.semantics.families import FAMILIES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```qvr\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", BLOCKS, ids=lambda text: text.splitlines()[-1].strip()[:40])
def test_a_program_on_the_page_is_clean_and_loads(text: str) -> None:
    assert [item.message for item in analyse(text).diagnostics() if item.severity is not Severity.HINT] == []
    loads(text)


def test_every_family_is_listed_with_its_parameters() -> None:
    section = PAGE.partition("## Families")[2].partition("\n## ")[0]
    listed = {
        name: [part.partition("=")[0].strip() for part in parameters.split(",")]
        for name, parameters in re.findall(r"`(\w+)\(([^)]*)\)`(?=,| \|)", section)
    }
    assert listed == {name: [parameter.name for parameter in family.parameters] for name, family in FAMILIES.items()}


def test_there_is_a_program_for_each_step() -> None:
    words = {line.split()[0] for text in BLOCKS for line in text.splitlines() if line.startswith("    ")}
    assert words >= {"sample", "observe", "let", "marginalize", "return"}
