"""From `qvr run nuts` typed to the posterior on the screen: start of Python and torch, data, chains, summary."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.models import MODELS

GOALS = {"eight schools": 4.0, "varying slopes": 10.0}
"""Seconds of the second run."""
COLD = 5.0
"""Seconds more where nothing is compiled."""


def seconds(folder: Path, program: str) -> tuple[float, float]:
    """Wall and processor seconds of one command in a folder, with four chains of 1,000 + 1,000 draws."""
    command = [
        sys.executable, "-m", "qvr_core.cli", "run", "nuts", program, "--data", "npz:data.npz",
        "--chains", "4", "--warmup", "1000", "--samples", "1000", "--seed", "1",
    ]  # fmt: skip
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "QVR_MACHINE_CACHE": str(folder / "cache")},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rows(table: Any, quick: bool) -> None:
    """A first run with nothing compiled, and later ones."""
    print("\n-- from `qvr run nuts` typed to the posterior", flush=True)
    for name, goal in GOALS.items():
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            (folder / "model.qvr").write_text(MODELS[name].text)
            np.savez(folder / "data.npz", **{key: value.numpy() for key, value in MODELS[name].data().items()})
            cold, cold_spent = seconds(folder, "model.qvr")
            warm, spent = min(seconds(folder, "model.qvr") for _ in range(1 if quick else 3))
            figures = f"{warm:.1f} s, {spent:.1f} s of processor"
            table.row(f"{name}, second run", figures, warm, goal, at_most=True)
            figures = f"{cold:.1f} s, {cold_spent:.1f} s of processor"
            table.row(f"{name}, nothing compiled", figures, cold, goal + COLD, at_most=True)
