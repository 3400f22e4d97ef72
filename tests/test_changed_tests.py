"""`make test-changed` runs what a change can reach, and little else."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import import_graph
from scripts.changed_tests import selected
from scripts.import_graph import ROOT, looked_through


@pytest.mark.parametrize(
    ("file", "reached", "not_reached"),
    [
        # an import; the server answers by it
        ("qvr_core/ide/hover.py", ("ide/test_hover", "lsp/test_methods"), ("runtime/arrows/test_arrows", "runs/fit")),
        # a process that another module starts
        (
            "qvr_core/runs/worker/job.py",
            ("runs/worker/test_engine", "cli/test_sample_new_rows"),
            ("syntax/test_formatter", "ide/test_hover"),
        ),
        # a command, imported by its name
        (
            "qvr_core/cli/sample.py",
            ("cli/test_sample_new_rows", "docs/test_readme"),
            ("runtime/families", "semantics/types"),
        ),
        # what tests share
        ("tests/ide/cases.py", ("ide/test_navigation",), ("runs", "runtime/families")),
        # a page, named by a test; a table beside the module that reads it
        ("docs/reference.md", ("docs/test_reference",), ("inference/mcmc", "runs/worker", "ide/test_hover")),
        ("qvr_core/semantics/language/families.json", ("spec/test_spec", "runtime/families/test_families"), ()),
        # the cases, read as data
        ("tests/spec/families.md", ("spec/test_spec", "ide/edits/test_fixes"), ("runs", "inference/mcmc")),
        # whoever has written it: the layers of a source are looked at
        ("qvr_core/export/to_pymc.py", ("test_layers", "export/test_text"), ("runtime/arrows", "semantics/types")),
    ],
)
def test_a_file_selects_the_tests_that_reach_it(
    file: str, reached: tuple[str, ...], not_reached: tuple[str, ...]
) -> None:
    assert (ROOT / file).exists()
    chosen = selected({file})
    for name in reached:
        assert f"tests/{name}.py" in chosen
    for name in not_reached:
        assert not [path for path in chosen if path.startswith(f"tests/{name}")]


def test_what_every_test_stands_on_selects_all() -> None:
    assert len(selected({"pyproject.toml"})) == len([*(ROOT / "tests").rglob("test_*.py")])


def test_nothing_selects_nothing() -> None:
    assert selected(set()) == []


def test_what_is_kept_is_what_a_file_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that has changed since is looked through again, and so is all where the kept ones are damaged."""
    path = ROOT / "scripts" / "import_graph.py"
    monkeypatch.setattr(import_graph, "KEPT", tmp_path / "imports.json")
    text = path.read_bytes()
    import_graph.keep([path])
    import_graph.kept.cache_clear()
    try:
        kept = import_graph.kept()
        assert kept == {import_graph.key_of(path, text): looked_through(path, text)}
        assert import_graph.key_of(path, text + b"import os\n") not in kept
        import_graph.kept.cache_clear()
        (tmp_path / "imports.json").write_text('{"cut')
        assert import_graph.kept() == {}
    finally:
        import_graph.kept.cache_clear()
