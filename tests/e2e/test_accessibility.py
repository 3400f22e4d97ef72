"""Run panel, diagram, `qvr play` and playground in a real Chromium, read by axe-core in light, dark and high contrast.

Every number of the panel stands inside it, at 650 and at 1,200 pixels.
"""

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


@pytest.mark.parametrize("script", ["panel/tabs.mjs", "accessibility.mjs"])
def test_accessibility(script: str) -> None:
    fetch.chromium()
    done = subprocess.run(["node", HERE / script], capture_output=True, text=True, timeout=850, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok all steps" in done.stdout
