"""Unknown names that other files declare."""

from __future__ import annotations

import pytest

from qvr_core.analysis import Analyzer
from qvr_core.ide.imports.fixes import declaration_of, import_actions, unknown_names, written_path
from qvr_core.syntax.source import Cursor, Range
from qvr_core.workspace import Bundle, Workspace
from tests.ide.cases import applied

FILES = {
    "lib/spaces.qvr": "object Token, Hidden : FinSet 20\nmorphism _own : Token -> Token [role=kernel]\n",
    "lib/cells.qvr": "def half(x) = x * 0.5\nfamily Shifted(loc) : Real 1\n    density(x) = loc - x\n",
    "far.qvr": "object Token : FinSet 3\n",
}
BODY = "morphism head : Hidden -> Hidden [role=kernel]\nexport head\n"


def fixes(text: str, line: int, column: int) -> dict[str, str]:
    """The text after each fix, by its title."""
    snapshot = Analyzer(text, None, "main.qvr", Workspace(Bundle(FILES))).snapshot()
    place = Range(Cursor(line, column), Cursor(line, column))
    actions = import_actions(snapshot, unknown_names(snapshot, place), FILES.items())
    return {action.title: applied(text, action.edits) for action in actions}


def problems(text: str) -> list[str]:
    held = Analyzer(text, None, "main.qvr", Workspace(Bundle(FILES))).snapshot()
    return [each.message for each in held.diagnostics() if each.severity.value == 1]


def test_an_import_is_written_where_there_is_none() -> None:
    found = fixes(f"# Reads.\n{BODY}", 1, 17)
    assert found == {'Import `Hidden` from "lib/spaces.qvr"': f'from "lib/spaces.qvr" import Hidden\n# Reads.\n{BODY}'}
    assert all(problems(text) == [] for text in found.values())


@pytest.mark.parametrize(
    ("before", "after", "title"),
    [
        ('import "far.qvr" as f\n', 'import "far.qvr" as f\nfrom "lib/spaces.qvr" import Hidden\n', "Import `Hidden`"),
        ('from "lib/spaces.qvr" import Token\n', 'from "lib/spaces.qvr" import Token, Hidden\n', "too"),
    ],
)
def test_it_joins_the_imports_that_are_there(before: str, after: str, title: str) -> None:
    [(name, text)] = fixes(before + BODY, 1, 17).items()
    assert title in name and text == after + BODY


def test_behind_a_prefix_the_name_is_changed() -> None:
    text = f'import "lib/spaces.qvr" as s\n{BODY}'
    found = fixes(text, 1, 17)
    assert list(found) == ["Change to `s.Hidden`"]
    assert "head : s.Hidden -> Hidden" in found["Change to `s.Hidden`"]


def test_each_file_that_declares_it_is_offered() -> None:
    found = fixes("morphism head : Token -> Token [role=kernel]\nexport head\n", 0, 17)
    assert list(found) == ['Import `Token` from "far.qvr"', 'Import `Token` from "lib/spaces.qvr"']
    assert all(problems(text) == [] for text in found.values())
    assert fixes("morphism head : Nowhere -> Nowhere [role=kernel]\nexport head\n", 0, 17) == {}


def test_families_and_functions_too() -> None:
    text = "object S : FinSet 3\nprogram p : S -> S\n    sample a : Real 1 <- Shifted(0.0)\n    return a\nexport p\n"
    assert list(fixes(text, 2, 26)) == ['Import `Shifted` from "lib/cells.qvr"']
    text = "object S : FinSet 3\nprogram p : S -> S\n    let a = half(0.5)\n    return a\nexport p\n"
    assert list(fixes(text, 2, 13)) == ['Import `half` from "lib/cells.qvr"']


def test_lines_that_declare_a_name() -> None:
    found = declaration_of("Hidden")
    assert found.search("object Token, Hidden : FinSet 20") and found.search("x\nlet Hidden = f")
    assert not found.search("object Hidden2 : Real 3") and not found.search("    let Hidden = 2.0")


@pytest.mark.parametrize(
    ("location", "importer", "path"),
    [
        ("/a/lib/x.qvr", "/a/main.qvr", "lib/x.qvr"),
        ("/a/x.qvr", "/a/b/main.qvr", "../x.qvr"),
        ("std:priors.qvr", "/a/main.qvr", "std/priors.qvr"),
        ("std:priors.qvr", "untitled:1", "std/priors.qvr"),
        ("/a/x.qvr", "untitled:1", None),
        ("/a/x.qvr", "std:priors.qvr", None),
    ],
)
def test_paths(location: str, importer: str, path: str | None) -> None:
    assert written_path(location, importer) == path
