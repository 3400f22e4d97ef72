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


BAD = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Bad</title></head>
<body style="background: #16191d; color: #fff"><main><h1>Bad</h1><svg width="300" height="100" viewBox="0 0 600 200">
<text x="10" y="40" fill="#fff" font-size="14">small</text>
<text x="200" y="40" fill="#fff" font-size="30">one</text><text x="210" y="50" fill="#fff" font-size="30">two</text>
<rect x="300" y="10" width="200" height="60" fill="#fff"/><text x="320" y="50" fill="#fff" font-size="30">pale</text>
<text x="560" y="150" fill="#fff" font-size="30">endless</text></svg></main></body></html>"""


def test_letters_that_cannot_be_read_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text(BAD, encoding="utf-8")
    with pytest.raises(AssertionError) as noticed:
        walk(["bad.html"], tmp_path)
    wanted = ("small: 7.0 pixels high", "two stands on one", "pale: contrast 1.0", "endless is cut off")
    assert [one for one in wanted if one not in str(noticed.value)] == []


@pytest.mark.timeout(40 * HANG)
def test_the_site_is_read_by_everybody_and_found_by_search() -> None:
    run(sys.executable, "-m", "scripts.website", folder=ROOT)
    walk([f"site/{page}.html" for page in SITE], ROOT)
    asked = ("vim=docs/editors", "missing data=docs/r", "compare models=docs/runs", "ragged=docs/reference")
    run("node", "tests/e2e/pages/search.mjs", "site", *asked, folder=ROOT)
