"""Pages as readers see them, in a real browser: pictures and reports of runs, and the site of the documentation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.website.pages import ROOT
from tests.e2e import fetch
from tests.patience import HANG

pytestmark = pytest.mark.e2e

KINDS = {
    "radon": ("posterior", "trace", "rank", "forest", "pairs", "energy", "ppc", "prior", "loo"),
    "local_linear_trend": ("series",),
}
MORE = {
    "county": ("ppc", "--by", "county"),
    "statistics": ("ppc", "--stat", "mean,sd,min,max"),
    "pit": ("loo", "--pit"),
}
SITE = ("index", "docs/diagnostics/compose-mismatch", "docs/reference", "docs/runs", "examples/gallery")


def run(*command: str, folder: Path) -> None:
    environment = {**os.environ, "CHROMIUM": str(fetch.chromium())}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=10 * HANG, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def qvr(*arguments: str, folder: Path) -> None:
    run(sys.executable, "-m", "qvr_core.cli", *arguments, folder=folder)


def walk(pages: list[str], folder: Path) -> None:
    """Light and dark, at 650 and 1,200 pixels; QVR_PICTURES is a folder that pictures go into."""
    shots = os.environ.get("QVR_PICTURES", "-")
    run("node", str(ROOT / "tests/e2e/pages/walk.mjs"), shots, *pages, folder=folder)


@pytest.mark.timeout(40 * HANG)
def test_every_number_of_a_picture_or_a_report_is_seen(tmp_path: Path) -> None:
    folder = tmp_path / "statistics"
    shutil.copytree(ROOT / "examples/statistics", folder, ignore=shutil.ignore_patterns(".qvr"))
    for program, kinds in KINDS.items():
        qvr("run", "nuts", f"{program}.qvr", folder=folder)
        qvr("report", program, "-o", f"report-{program}.html", folder=folder)
        for kind in kinds:
            qvr("plot", program, kind, "-o", f"{kind}.html", folder=folder)
    for name, arguments in MORE.items():
        qvr("plot", "radon", *arguments, "-o", f"{name}.html", folder=folder)
    walk(sorted(path.name for path in folder.glob("*.html")), folder)


@pytest.mark.timeout(40 * HANG)
def test_the_site_is_read_by_everybody_and_found_by_search() -> None:
    run(sys.executable, "-m", "scripts.website", folder=ROOT)
    walk([f"site/{page}.html" for page in SITE], ROOT)
    asked = ("vim=docs/editors", "missing data=docs/r", "compare models=docs/runs", "ragged=docs/reference")
    run("node", "tests/e2e/pages/search.mjs", "site", *asked, folder=ROOT)
