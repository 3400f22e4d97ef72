"""The site that `make docs` builds: it has every page, its links lead somewhere, and nothing of it is fetched."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from scripts.website.inspection import dead, outside
from scripts.website.pages import API, GALLERIES, ROOT, listed, navigation, prose, targets, to_files

PAGES = list(listed(navigation()))
MADE = {*GALLERIES, *(f"api/{name}.md" for name in API)}
WRITTEN = [page for page in PAGES if page not in MADE]


def test_every_page_is_in_the_navigation_once() -> None:
    wanted = {"README.md", "CONTRIBUTING.md", "examples/README.md", "examples/statistics/README.md", *MADE}
    for folder in ("docs", "docs/diagnostics", "examples/analyses"):
        wanted |= {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).glob("*.md")}
    assert wanted <= set(PAGES)
    assert [page for page, count in Counter(PAGES).items() if count > 1] == []
    assert [page for page in WRITTEN if not (ROOT / page).is_file()] == []


def test_links_of_its_pages_lead_to_pages_of_it_or_to_files() -> None:
    wrong: list[str] = []
    for page in WRITTEN:
        text = prose((ROOT / page).read_text(encoding="utf-8"), lambda line, page=page: to_files(page, line))
        for target in targets(page, text):
            place = target.relative_to(ROOT).as_posix() if target.is_relative_to(ROOT) else str(target)
            if not target.is_file() or (target.suffix == ".md" and place not in PAGES):
                wrong.append(f"{page}: {place}")
    assert wrong == []


def test_modules_of_its_reference_of_python_are_there() -> None:
    for _, module, _ in API.values():
        place = ROOT.joinpath(*module.split("."))
        assert place.with_suffix(".py").is_file() or (place / "__init__.py").is_file(), module


def test_links_to_folders_go_to_their_readme_and_code_is_left_alone() -> None:
    text = "[codes](docs/diagnostics/), [page](docs/runs.md#data)\n```sh\n[no](docs)\n```\nwords\n- item\n| `a\\|b` |"
    changed = prose(text, lambda line: to_files("README.md", line))
    assert "[codes](docs/diagnostics/README.md), [page](docs/runs.md#data)\n" in changed
    assert "[no](docs)\n" in changed and "words\n\n- item\n" in changed and "| `a|b` |" in changed


@pytest.mark.parametrize(
    "wrong",
    [
        '<script src="https://cdn.example.org/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example.org/css">',
        '<img src="http://example.org/a.png">',
        "<style>@import 'https://example.org/a.css';</style>",
        '<div style="background: url(https://example.org/a.png)"></div>',
        '<script>importScripts("https://unpkg.example.org/x")</script>',
    ],
)
def test_what_a_page_fetches_from_elsewhere_is_found(wrong: str, tmp_path: Path) -> None:
    right = '<link rel="canonical" href="https://example.org/"><a href="https://example.org/">elsewhere</a>'
    (tmp_path / "right.html").write_text(right, encoding="utf-8")
    assert outside(tmp_path) == []
    (tmp_path / "wrong.html").write_text(wrong, encoding="utf-8")
    (found,) = outside(tmp_path)
    assert re.match(r"wrong\.html: (https?:)?//\w+", found)


def test_dead_links_and_anchors_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<h1 id="here">A</h1><a href="b.html#there">b</a>', encoding="utf-8")
    (tmp_path / "b.html").write_text('<a href="a.html#here">a</a> <a href="#not">b</a>', encoding="utf-8")
    assert dead(tmp_path) == ["a.html: b.html#there", "b.html: #not"]
