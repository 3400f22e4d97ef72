"""Pictures in TikZ through a real LaTeX."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from qvr_core.analysis import analyse
from qvr_core.diagrams import NoDiagram, build, drawable, to_tikz
from qvr_core.diagrams.tikz import LIBRARIES
from tests.e2e import fetch

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.environ.get("QVR_E2E") == "skip", reason="QVR_E2E=skip"),
]
ROOT = Path(__file__).resolve().parents[2]
SIGNS = """object L : {"a_b", "100%", "#1", "x^2", "~", "{y}", "é", "\\\\"}
object A : Real 2
morphism f_1 : L -> A [role=embed]
let g = f_1
export g
"""


def test_every_diagram_of_the_examples_compiles(tmp_path: Path) -> None:
    pictures: list[str] = []
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").rglob("?*.qvr"))]
    for text in [SIGNS, *texts]:
        snapshot = analyse(text)
        for name in drawable(snapshot.model):
            with suppress(NoDiagram):
                pictures.append(to_tikz(build(snapshot, name)))
    assert len(pictures) > 150
    head = [r"\documentclass{article}", r"\usepackage[paperwidth=300cm,paperheight=200cm,margin=1cm]{geometry}"]
    head += [r"\usepackage{tikz}", rf"\usetikzlibrary{{{','.join(LIBRARIES)}}}", r"\begin{document}"]
    (tmp_path / "all.tex").write_text("\n".join([*head, "\n\\newpage\n".join(pictures), r"\end{document}"]))
    done = subprocess.run(
        [fetch.latex(), "-interaction=nonstopmode", "-halt-on-error", "all.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert f"({len(pictures)} pages" in done.stdout.replace("\n", "")
    assert "Missing character" not in (tmp_path / "all.log").read_text(errors="replace")
