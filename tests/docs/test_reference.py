"""The reference has all words of the checker, and what cites it finds a place."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from qvr_core.semantics.language.families import FAMILIES
from scripts.vocabulary import FILES, VOCABULARY, fresh

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference.md"
TEXT = PAGE.read_text(encoding="utf-8")


# ---------------------------------------------------------------- its tables, and the grammars of the editors


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_words_of_the_language_are_fresh(path: Path) -> None:
    """`python -m scripts.vocabulary` brings them up to date."""
    assert path.read_text(encoding="utf-8") == fresh(path)


@pytest.mark.parametrize("kind", ["families", "builtins", "roles", "options", "combinators", "compositions"])
def test_every_word_of_the_checker_is_in_the_reference(kind: str) -> None:
    missing = [word for word in VOCABULARY[kind] if not re.search(rf"`[^`\n]*\b{word}\b", TEXT)]
    assert missing == []


def test_families_that_can_be_noncentred_are_named() -> None:
    sentence = next(line for line in TEXT.splitlines() if "Families of a location and scale can be so" in line)
    wanted = {name for name, family in FAMILIES.items() if family.noncentred}
    assert wanted and {name for name in FAMILIES if re.search(rf"\b{name}\b", sentence)} == wanted


# ---------------------------------------------------------------- citations


def tracked() -> dict[str, str]:
    """The text of every file under version control."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [path for path in listed.split("\0") if path and (ROOT / path).is_file()]
    return {path: (ROOT / path).read_text(encoding="utf-8", errors="ignore") for path in paths}


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as the hosts of the repository make them."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_nothing_is_cited_that_is_not_in_the_repository() -> None:
    """The documents that the work began with are not part of it: a reader must find what a comment points to."""
    absent = [f"{name}.md" for name in ("LANGUAGE", "DESIGN", "TOOLING", "HOUSE")]
    assert [(path, name) for path, text in tracked().items() for name in absent if name in text] == []


def test_every_citation_of_a_page_finds_its_heading() -> None:
    wrong: list[str] = []
    for path, text in tracked().items():
        for page, anchor in re.findall(r"\b(docs/[\w/-]+\.md)(?:#([\w-]+))?", text):
            target = ROOT / page
            if not target.is_file() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
                wrong.append(f"{path}: {page}#{anchor}")
    assert wrong == []


@pytest.mark.parametrize("page", [path for path in (ROOT / "docs").glob("*.md")], ids=lambda path: path.name)
def test_links_between_headings_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    wrong: list[str] = []
    for file, anchor in re.findall(r"\]\(([\w./-]*)#([\w-]+)\)", text):
        target = (page.parent / file).resolve() if file else page
        if anchor not in anchors(target.read_text(encoding="utf-8")):
            wrong.append(f"{file}#{anchor}")
    assert wrong == []
