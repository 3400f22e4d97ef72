"""Text from outside is shown, never obeyed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from qvr_core.analysis import Analyzer, Cursor
from qvr_core.ide.hover import hover
from qvr_core.ide.prose import markdown
from qvr_core.syntax.printable import harmless_markdown, printable

HEADER = "x,\x1b[2J\x1b]0;title\x07y\x9b31m\u202ez\n1.0,2.0\n3.0,1.0\n"
PROGRAM = """\
object Row : FinSet 2
program regress : Row -> Row
    sample slope <- Normal(0.0, 1.0)
    observe outcome <- Normal(slope * x, 1.0)
    return slope
export regress
"""


def test_what_a_terminal_would_obey_is_written_out() -> None:
    assert printable("a\x1b[2Jb\x07\x9b\u202e") == r"a\x1b[2Jb\x07\x9b\u202e"
    assert printable("é\t𝔘\n~") == "é\t𝔘\n~"


@pytest.mark.parametrize("colour", ["", "1"])
def test_a_header_of_a_csv_cannot_speak_to_the_terminal(tmp_path: Path, colour: str) -> None:
    (tmp_path / "m.qvr").write_text(PROGRAM)
    (tmp_path / "d.csv").write_bytes(HEADER.encode())
    command = [sys.executable, "-m", "qvr_core.cli", "run", "svi", "m.qvr", "--data", "csv:d.csv", "--steps", "1"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **({"FORCE_COLOR": "1"} if colour else {})}
    done = subprocess.run(command, check=False, capture_output=True, cwd=tmp_path, env=env)
    assert done.returncode != 0
    assert b"title" in done.stdout + done.stderr
    for order in ("\x1b[2J", "\x1b]", "\x07", "\x9b", "\u202e"):
        assert order.encode() not in done.stdout + done.stderr


def test_a_comment_ends_in_the_hover_where_it_ends() -> None:
    text = "# An open fence:\n# ```qvr\n# let x = 1\nobject A : Real 3\n"
    found = hover(Analyzer(text).snapshot(), Cursor(3, 7))
    assert found is not None
    assert markdown(found.content).count("```") % 2 == 0


def test_a_comment_loads_nothing() -> None:
    remote = "see ![chart](https://evil.example/a.png) and <img src=x> but `![kept](<in code>)`"
    assert harmless_markdown(remote) == (
        "see [chart](https://evil.example/a.png) and &lt;img src=x> but `![kept](<in code>)`"
    )
    fenced = "```\n![kept] <b>\n```\n![not](u)"
    assert harmless_markdown(fenced) == "```\n![kept] <b>\n```\n[not](u)"
    assert harmless_markdown("~~~~\nx\n~~~") == "~~~~\nx\n~~~\n~~~~"
