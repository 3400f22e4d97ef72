"""The built playground in a real Chromium, and its server in Node beside the one here."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e import fetch

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.environ.get("QVR_E2E") == "skip", reason="QVR_E2E=skip"),
]
HERE = Path(__file__).parent


def test_playground() -> None:
    fetch.chromium()
    done = subprocess.run(
        ["node", HERE / "playground" / "drive.mjs"], capture_output=True, text=True, timeout=850, check=False
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok all steps" in done.stdout
