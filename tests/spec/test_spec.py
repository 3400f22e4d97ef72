"""Runs every Markdown case of this folder and of docs/diagnostics/."""

from pathlib import Path

import pytest

from qvr_core.runs.record.data_checks import DATA_FILE, DATA_UNUSED
from qvr_core.runs.record.fitted import UNRELIABLE
from qvr_core.semantics.types.catalogue import CATALOGUE
from tests.spec.cases import Case, problems, read_cases

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "diagnostics"
CASES = [case for path in sorted(Path(__file__).parent.rglob("*.md")) for case in read_cases(path)]
PAGE_CASES = [case for path in sorted(PAGES.glob("*.md")) for case in read_cases(path)]


@pytest.mark.parametrize("case", CASES + PAGE_CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    found = problems(case)
    assert not found, "\n".join([str(case.path), *found])


@pytest.mark.parametrize("code", CATALOGUE)
def test_every_code_has_a_page_with_a_wrong_example_and_a_fixed_one(code: str) -> None:
    page = PAGES / f"{code}.md"
    assert page.exists(), f"docs/diagnostics/{code}.md is missing"
    assert CATALOGUE[code].summary in page.read_text(encoding="utf-8")
    cases = [case for case in PAGE_CASES if case.path == page]
    assert any(mark.code == code for case in cases for mark in case.marks), "no example that is wrong"
    assert any(not case.marks for case in cases), "no example that is fixed"


@pytest.mark.parametrize("code", CATALOGUE)
def test_every_code_has_a_case(code: str) -> None:
    assert any(mark.code == code for case in CASES for mark in case.marks)


def test_the_index_of_the_pages_lists_every_code() -> None:
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    codes = (*CATALOGUE.values(), DATA_FILE, DATA_UNUSED, UNRELIABLE)
    missing = [
        code.name
        for code in codes
        if f"| [`{code.name}`]({code.name}.md) | {code.severity.name.lower()} | {code.summary} |" not in index
    ]
    assert not missing
    assert {path.stem for path in PAGES.glob("*.md")} == {"README", *(code.name for code in codes)}
