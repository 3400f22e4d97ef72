"""docs/python.md does what it says, from the top to the bottom."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


@pytest.mark.long
def test_the_page_runs_and_prints_what_it_shows() -> None:
    blocks = re.findall(r"<!-- run -->\n```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == PAGE.count("```python") >= 5
    done = subprocess.run(
        [sys.executable, "-m", "tests.script", "\n".join(blocks)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=2 * HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    [shown] = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert done.stdout == shown
