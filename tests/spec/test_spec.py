"""Runs every Markdown case of this folder and of docs/diagnostics/."""

from pathlib import Path

import pytest

from qvr_core.runs.record.data_checks import DATA_FILE, DATA_UNUSED
from qvr_core.runs.record.last_fit import UNRELIABLE
from qvr_core.semantics.types.catalogue import CATALOGUE, INTERNAL_ERROR
from tests.spec.cases import Case, problems, read_cases

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "diagnostics"
CASES = [case for path in sorted(Path(__file__).parent.rglob("*.md")) for case in read_cases(path)]
PAGE_CASES = [case for path in sorted(PAGES.glob("*.md")) for case in read_cases(path)]


@pytest.mark.parametrize("case", CASES + PAGE_CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    found = problems(case)
    assert not found, "\n".join([str(case.path), *found])


def test_every_code_has_a_page_with_a_wrong_example_and_a_fixed_one() -> None:
    wrong: list[str] = []
    for name, code in CATALOGUE.items():
        page = PAGES / f"{name}.md"
        if not page.exists():
            wrong.append(f"docs/diagnostics/{name}.md is missing")
            continue
        cases = [case for case in PAGE_CASES if case.path == page]
        if code.summary not in page.read_text(encoding="utf-8"):
            wrong.append(f"{page.name} does not say: {code.summary}")
        if not any(mark.code == name for case in cases for mark in case.marks):
            wrong.append(f"{page.name} has no example that is wrong")
        if all(case.marks for case in cases):
            wrong.append(f"{page.name} has no example that is fixed")
    assert not wrong, "\n".join(wrong)


def test_every_code_has_a_case() -> None:
    assert set(CATALOGUE) <= {mark.code for case in CASES for mark in case.marks}


def test_the_index_of_the_pages_lists_every_code() -> None:
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    codes = (*CATALOGUE.values(), DATA_FILE, DATA_UNUSED, INTERNAL_ERROR, UNRELIABLE)
    missing = [
        code.name
        for code in codes
        if f"| [`{code.name}`]({code.name}.md) | {code.severity.name.lower()} | {code.summary} |" not in index
    ]
    assert not missing
    assert {path.stem for path in PAGES.glob("*.md")} == {"README", *(code.name for code in codes)}
