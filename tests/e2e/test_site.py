"""The site's search works where pages are opened as files: in a real browser, which refuses workers to them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.website.pages import ROOT
from tests.e2e import fetch
from tests.patience import HANG

pytestmark = pytest.mark.e2e

PAGE = """<!doctype html><body><p id="said">nothing</p>
SHIM
<script>
  const said = document.getElementById("said");
  try {
    const worker = new Worker("doubles.js");
    worker.addEventListener("message", ({ data }) => { said.textContent = `doubled ${data.join(" ")}`; });
    worker.postMessage([1, 2]);
  } catch (problem) {
    said.textContent = `refused ${problem.name}`;
  }
</script>
"""
WORKER = 'addEventListener("message", ({ data }) => postMessage(data.map((number) => 2 * number)));'


@pytest.mark.parametrize("shim", ["", '<script src="iframe-worker.js"></script>'])
def test_what_the_search_needs_of_a_worker(shim: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(PAGE.replace("SHIM", shim), encoding="utf-8")
    (tmp_path / "doubles.js").write_text(WORKER, encoding="utf-8")
    shutil.copy(ROOT / "scripts" / "website" / "iframe-worker.js", tmp_path)
    command = [str(fetch.chromium()), "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000"]
    done = subprocess.run(
        [*command, "--dump-dom", (tmp_path / "page.html").as_uri()],
        capture_output=True, text=True, timeout=HANG, check=True,
    )  # fmt: skip
    assert ('<p id="said">doubled 2 4</p>' in done.stdout) == bool(shim)
