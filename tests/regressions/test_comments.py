"""D4: which comment documents what."""

from __future__ import annotations

import pytest

from qvr_core.analysis import Analyzer, Cursor, analyse
from tests.ide.test_hover import markdown

PROGRAM = """\
{head}object Row : FinSet 30
program m : Row -> Row
    data x, z : Row  # The dose in mg.
    data w : Row
    sample b <- Normal(0.0, 1.0)
    observe y : Row <- Normal(b * x + w, 1.0)
    return b
"""


@pytest.mark.parametrize(
    ("head", "doc"),
    [
        ("# Eight schools.\n# Rubin 1981.\n", ""),
        ("\n# The rows.\n", "The rows."),
        ("# Eight schools.\n\n# The rows.\n", "The rows."),
        ("#! The rows.\n", "The rows."),
    ],
)
def test_d4_a_comment_that_opens_the_file_is_about_the_file(head: str, doc: str) -> None:
    assert analyse(PROGRAM.format(head=head)).statements[0].doc == doc


def test_d4_under_edits() -> None:
    analyzer = Analyzer(PROGRAM.format(head="# The rows.\n"))
    assert analyzer.snapshot().statements[0].doc == ""
    analyzer.edit(Cursor(0, 0), Cursor(0, 0), "\n")
    assert analyzer.snapshot().statements[0].doc == "The rows."
    analyzer.edit(Cursor(0, 0), Cursor(1, 0), "")
    assert analyzer.snapshot().statements[0].doc == ""


@pytest.mark.parametrize("name", ["x, z", "z :", "x + w"])
def test_d4_the_comment_behind_a_data_line_documents_the_data(name: str) -> None:
    text = PROGRAM.format(head="")
    assert "The dose in mg." in markdown(text.replace(name, f"$0{name}", 1))


def test_d4_and_no_other() -> None:
    text = PROGRAM.format(head="")
    assert "The dose" not in markdown(text.replace("w :", "$0w :", 1))
