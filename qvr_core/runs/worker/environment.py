"""What a run ran on: versions, machine, git state of the program's folder."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from qvr_core import __version__
from qvr_core.runs.record.atomic_files import digest
from qvr_core.runs.record.protocol import Job

PACKAGES = ("torch", "numpy", "polars", "safetensors", "pydantic", "xarray")


def environment(job: Job) -> dict[str, Any]:
    """Everything worth knowing when a run is to be repeated."""
    versions: dict[str, str | None] = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    folder = Path(job.path).resolve().parent
    return {
        "qvr": __version__,
        "python": sys.version,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "versions": versions,
        "program_sha256": digest(job.text.encode("utf-8", "surrogatepass")),
        "git_commit": _git(folder, "rev-parse", "HEAD"),
        "git_dirty": bool(_git(folder, "status", "--porcelain", "--untracked-files=no")),
    }


def _git(folder: Path, *arguments: str) -> str | None:
    """git's answer, or None without git or a repository."""
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
