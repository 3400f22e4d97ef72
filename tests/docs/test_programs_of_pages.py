"""The programs of the reference and of the pages on networks and the library give what they show; the Python runs.

That they build and run is asked of all pages by tests/runtime/programs/test_checked_programs.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.spec.cases import Case, problems, read_cases

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ("reference", "std", "networks")
CASES = [case for page in PAGES for case in read_cases(DOCS / f"{page}.md")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path.stem} {case.name}")
def test_a_program_gives_what_it_shows(case: Case) -> None:
    found = problems(case)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", PAGES)
def test_its_python_runs(page: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, f"{page}.md", "exec"), {})
