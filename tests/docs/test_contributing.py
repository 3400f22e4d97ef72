"""Each recipe of CONTRIBUTING.md names the files that its example took: all of them, and no others."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = {part.partition("\n")[0]: part for part in TEXT.split("\n## ")[1:] if "<!-- words:" in part}
# What uses a thing, or shows it, took no part in adding it.
SEARCHED = (
    "qvr_core",
    "qvr_lsp",
    "docs/diagnostics",
    "vscode-extension",
    "neovim",
    "scripts",
    "tests/spec",
    "tests/runtime/families",
    "tests/lsp",
)
GENERATED = (
    "qvr_core/semantics/language/families.json",
    "qvr_core/semantics/language/prelude.json",
    "neovim/syntax/qvr.vim",
    "vscode-extension/syntaxes/qvr.tmLanguage.json",
    "vscode-extension/test/mermaid/",
)


def words(recipe: str) -> re.Pattern[str]:
    (found,) = re.findall(r"<!-- words: (.*?) -->", recipe)
    return re.compile(found)


def named(recipe: str) -> set[str]:
    return set(re.findall(r"^\| `([^`]+)` \|", recipe, re.MULTILINE))


def holding(pattern: re.Pattern[str]) -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", *SEARCHED], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    paths = [path for path in listed.split("\0") if path and (ROOT / path).is_file()]
    return {
        path
        for path in paths
        if not path.startswith(GENERATED) and pattern.search((ROOT / path).read_text(encoding="utf-8", errors="ignore"))
    }


def test_there_is_a_recipe_for_what_is_added_often() -> None:
    assert {
        "A family",
        "A family that is built in",
        "An operation",
        "A lowering",
        "A role",
        "A combinator",
        "A diagnostic",
        "An LSP method",
        "A run setting",
        "A target of `qvr export`",
        "An editor command",
    } == {*RECIPES}


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_names_the_files_that_its_example_took(title: str) -> None:
    recipe = RECIPES[title]
    pattern, files = words(recipe), named(recipe)
    for path in files:
        assert pattern.search((ROOT / path).read_text(encoding="utf-8")), f"{path} has nothing of the example"
    left_out = holding(pattern) - files
    assert not left_out, f"the example stands in {sorted(left_out)} as well"
