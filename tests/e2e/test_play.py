"""`qvr play` driven in a real Chromium: an error, a fit to its posterior, another one cancelled and resumed."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e import fetch

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.environ.get("QVR_E2E") == "skip", reason="QVR_E2E=skip"),
]


def test_play() -> None:
    fetch.chromium()
    script = Path(__file__).parent / "play" / "drive.mjs"
    done = subprocess.run(["node", script], capture_output=True, text=True, timeout=550, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok all steps" in done.stdout
