"""docs/play.md says what is so: its command, its options, what stands in the page.  `make e2e` walks it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from qvr_lsp.play.access import NAMES
from qvr_lsp.play.folder import DATA

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "play.md").read_text(encoding="utf-8")


def test_its_command_and_options() -> None:
    (command,) = re.findall(r"^    (\S.*)$", PAGE, re.MULTILINE)
    assert command.split()[:2] == ["qvr", "play"]
    asked = [sys.executable, "-m", "qvr_core.cli", *command.split()[1:], "--help"]
    told = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    for option in re.findall(r"`(--[\w-]+)`", PAGE):
        assert option in told
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`make (\w+)`", PAGE):
        assert re.search(rf"^{target}:", targets, re.MULTILINE)


def test_what_stands_in_the_page() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "playground/src/play").glob("*.ts"))
    assert all(word in source for word in ("Ctrl+S", "steps=2000 seed=1", "as qvr.toml says", "Synthetic data"))
    kinds = re.search(r"file of the folder \(([^)]+)\)", PAGE)
    assert kinds is not None and {kind.lower() for kind in kinds[1].split(", ")} == set(DATA.values())
    assert all(f"`{name}`" in PAGE for name in NAMES)
