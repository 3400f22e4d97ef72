"""docs/playground.md says what is so: its targets, keys, limits and pictures are there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "playground.md").read_text(encoding="utf-8")
SOURCES = ROOT / "playground" / "src"
SHOWN = [line.split("   #")[0].strip() for line in re.findall(r"^    (\S.*)$", PAGE, re.MULTILINE)]


def source(name: str) -> str:
    return (SOURCES / name).read_text(encoding="utf-8")


def test_its_commands() -> None:
    """The build itself is run by `make e2e`, which drives the page."""
    build, serve = SHOWN
    done = subprocess.run([*build.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "npm run --silent build" in done.stdout, done.stderr
    program, *arguments, port = serve.split()
    assert port == "8000" and f"http://localhost:{port}/" in PAGE
    asked = subprocess.run([program, *arguments[:2], "--help"], capture_output=True, text=True, check=True).stdout
    assert "--directory" in asked and arguments[2:] == ["--directory", "playground/dist"]


def test_its_limits_and_keys() -> None:
    (most,) = re.findall(r"MOST = ([\d_]+);", source("page/share.ts"))
    assert f"more than {int(most) // 1_000_000} MB of text is not opened" in PAGE
    (kept,) = re.findall(r"MOST_EARLIER = (\d+);", source("page/kept.ts"))
    assert f"the last {kept} texts" in PAGE
    assert "KeyMod.Alt | monaco.KeyCode.Enter" in source("language/mend.ts") and "**Alt+Enter** mends" in PAGE


def test_its_pictures_are_there() -> None:
    names = re.findall(r"\]\((images/[^)]+)\)", PAGE)
    assert names
    for name in names:
        assert (ROOT / "docs" / name).is_file()
