"""A real VS Code with the packaged extension, driven as a user would."""

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


@pytest.mark.parametrize(
    "script",
    [
        "drive.mjs", "posterior.mjs", "data.mjs", "install.mjs", "stages.mjs", "nonfinite.mjs", "funnel.mjs",
        "prior.mjs", "live.mjs", "web.mjs",
    ],
)  # fmt: skip
def test_vscode(script: str) -> None:
    fetch.chromium()
    folder = fetch.code_server()
    done = subprocess.run(
        [folder / "node_modules" / ".bin" / "node", HERE / "vscode" / script],
        env=fetch.environment(folder),
        capture_output=True,
        text=True,
        timeout=850,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok all steps" in done.stdout
