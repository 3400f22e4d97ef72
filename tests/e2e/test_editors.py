"""The files of `editors/` in the real programs: Emacs with eglot, and what colours a text in Kate."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e import fetch

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.environ.get("QVR_E2E") == "skip", reason="QVR_E2E=skip"),
]
ROOT = Path(__file__).resolve().parents[2]
BROKEN = """object A : Real 3
object B : Real 4
morphism cell : A -> B [role=kernel] ~ Normal
let both = cell >> cell
"""


def test_emacs_shows_what_the_server_says(tmp_path: Path) -> None:
    (tmp_path / "broken.qvr").write_text(BROKEN)
    script = Path(__file__).parent / "emacs" / "session.el"
    done = subprocess.run(
        [fetch.emacs(), "-Q", "--batch", "-l", script, tmp_path, ROOT / "editors" / "emacs", sys.executable],
        env={**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    said = done.stdout
    assert done.returncode == 0, said + done.stderr
    assert "mode: qvr-mode\nface: font-lock-keyword-face\nfamily: font-lock-constant-face" in said
    assert re.search(r"^diagnostic: 4 >> qvr \[compose-mismatch\]: .*B \(4\).*A \(3\)", said, re.MULTILINE)
    assert re.search(r"^hover: .*cell : A -> B", said, re.MULTILINE)
    assert "completion: (cell)" in said
    assert said.endswith("done: \n")


def test_kate_colours_a_program(tmp_path: Path) -> None:
    folder = tmp_path / "org.kde.syntax-highlighting" / "syntax"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "editors" / "kate" / "qvr.xml", folder)
    done = subprocess.run(
        [fetch.kate(), "-s", "QVR", "-f", "html", ROOT / "examples" / "grammar.qvr"],
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path), "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "Definition (QVR)" in done.stdout
    assert '<span style="font-weight:bold;">program</span>' in done.stdout
    assert '<span style="font-weight:bold;">lexicon</span>' in done.stdout
    assert re.search(r'<span style="color:#[0-9a-f]+;">FinSet</span>', done.stdout)
    assert done.stderr == ""
