"""A real Neovim with the plugin of `neovim/`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e import fetch

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(400),
    pytest.mark.skipif(os.environ.get("QVR_E2E") == "skip", reason="QVR_E2E=skip"),
]
ROOT = Path(__file__).resolve().parents[2]
DRIVE = Path(__file__).parent / "neovim" / "drive.lua"


def test_neovim(tmp_path: Path) -> None:
    command = fetch.neovim()
    shutil.copy(ROOT / "examples" / "bidirectional_rnn_lm.qvr", tmp_path)
    (tmp_path / "book.txt").write_text("It was the best of times, it was the worst of times. " * 2000)
    (tmp_path / "qvr.toml").write_text("")
    plugin = tmp_path / "plugin"
    shutil.copytree(ROOT / "neovim", plugin)
    home = tmp_path / "home"
    home.mkdir()
    done = subprocess.run(
        [*command, "--clean", "--headless", "-l", str(DRIVE), str(plugin), sys.executable, str(tmp_path)],
        env={**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home), "XDG_CACHE_HOME": str(home)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=360,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok :help qvr is there" in done.stdout, done.stdout + done.stderr
