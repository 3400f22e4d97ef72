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
DRIVES = Path(__file__).parent / "neovim"
SCHOOLS = """object School : FinSet 8
program schools : School -> School
    data sigma : School
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfCauchy(5.0)
    sample theta : School <- Normal(mu, tau)
    observe y : School <- Normal(theta, sigma)
    return theta
"""
SETTINGS = """[run.schools]
algorithm = "nuts"
data = "csv:d.csv"
warmup = 200
samples = 200
target_accept = 0.6
"""


def walked(folder: Path, drive: str, last: str) -> None:
    """Drive Neovim in a folder by a script, whose last step is called so."""
    command = fetch.neovim()
    plugin = folder / "plugin"
    shutil.copytree(ROOT / "neovim", plugin)
    home = folder / "home"
    home.mkdir()
    done = subprocess.run(
        [*command, "--clean", "--headless", "-l", str(DRIVES / drive), str(plugin), sys.executable, str(folder)],
        env={**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home), "XDG_CACHE_HOME": str(home)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=360,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"ok {last}" in done.stdout, done.stdout + done.stderr


def test_neovim(tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "bidirectional_rnn_lm.qvr", tmp_path)
    (tmp_path / "book.txt").write_text("It was the best of times, it was the worst of times. " * 2000)
    (tmp_path / "qvr.toml").write_text("")
    walked(tmp_path, "drive.lua", ":help qvr is there")


def test_live_posterior_in_neovim(tmp_path: Path) -> None:
    (tmp_path / "schools.qvr").write_text(SCHOOLS)
    (tmp_path / "d.csv").write_text("y,sigma\n28,15\n8,10\n-3,16\n7,11\n-1,9\n1,11\n18,10\n12,18\n")
    (tmp_path / "qvr.toml").write_text(SETTINGS)
    walked(tmp_path, "live.lua", "with it off nothing is shown and no process is left")


def test_fits_in_neovim(tmp_path: Path) -> None:
    (tmp_path / "schools.qvr").write_text(SCHOOLS)
    (tmp_path / "d.csv").write_text("y,sigma\n28,15\n8,10\n-3,16\n7,11\n-1,9\n1,11\n18,10\n12,18\n")
    (tmp_path / "qvr.toml").write_text(SETTINGS)
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "e.csv").write_text("y,sigma\n1,2\n")
    walked(tmp_path, "fits.lua", "the help says how inlays, lenses and results are had")
