"""The programs of the guide are those that the tests run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "from-stan-and-pymc.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"```qvr\n(.*?)\n```", GUIDE, re.DOTALL)


def test_the_guide_shows_ten_models_in_three_languages() -> None:
    assert len(SHOWN) == GUIDE.count("```stan") == GUIDE.count("```python") == 10


@pytest.mark.parametrize("program", SHOWN, ids=[re.findall(r"program (\w+)", text)[0] for text in SHOWN])
def test_each_is_a_program_with_data(program: str) -> None:
    name = re.findall(r"program (\w+)", program)[0]
    assert program in (ROOT / "examples" / "statistics" / f"{name}.qvr").read_text(encoding="utf-8")
