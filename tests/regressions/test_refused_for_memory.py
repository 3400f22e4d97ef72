"""C4: a run or draws of the prior that no memory holds are refused before anything is drawn, with the numbers."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """object Row : FinSet {size}
program m : Row -> Row
    sample mu <- Normal(0.0, 1.0)
    sample z : Row <- Normal(mu, 1.0)
    observe y : Row <- Normal(z, 1.0)
    return mu
export m
"""
GB = 1 << 30


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (24 * GB, 24 * GB))


def said(size: int, folder: Path, *command: str) -> tuple[int, str]:
    (folder / "m.qvr").write_text(PROGRAM.format(size=size))
    order = [sys.executable, "-m", "qvr_core.cli", *command]
    done = subprocess.run(order, check=False, capture_output=True, text=True, cwd=folder, preexec_fn=limit)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize("command", [("run", "svi"), ("run", "nuts"), ("sample", "--prior")])
@pytest.mark.sampled(3)
def test_c4_a_billion_latents_are_refused(command: tuple[str, ...], tmp_path: Path) -> None:
    status, text = said(1_000_000_000, tmp_path, *command, "m.qvr")
    assert status == 1
    assert "the run would need about" in text
    assert "`z : Row`" in text
    assert "Traceback" not in text


def test_c4_many_draws_of_the_prior_are_refused(tmp_path: Path) -> None:
    status, text = said(100_000, tmp_path, "sample", "--prior", "m.qvr", "--draws", "1000000")
    assert status == 1
    assert "for the draws that are kept" in text
