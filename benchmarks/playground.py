"""The playground in Chromium: start to the first diagnostics, first visit and second, and bytes over the wire.

The page is served from this machine, compressed with brotli (level 9) before; nothing is kept from an earlier visit,
then everything.  Needs `make playground`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.goals import Table

FOLDER = Path(__file__).resolve().parents[1] / "playground"

PARTS = {"qvr-python": "Python runs", "qvr-unpacked": "files are unpacked", "qvr-server": "the server is imported"}
"""Marks of the worker (playground/src/server/start.ts)."""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks playground", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one visit of each kind")
    given = parser.parse_args(argv)
    browser = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    if not (FOLDER / "dist" / "index.html").is_file() or shutil.which("node") is None or not Path(browser).is_file():
        print("skipped: needs `make playground`, node and chromium (CHROMIUM names another one)")
        return 0
    command = ["node", str(FOLDER / "measure.mjs"), "1" if given.quick else "5"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout)
    table = Table()
    for name, key, goal in (("first visit to first diagnostics", "first", 5.0), ("second visit", "second", 2.0)):
        seconds = statistics.median(found[key])
        table.row(name, f"{seconds:.2f} s, goal {goal:g} s", seconds / goal, 1.0, at_most=True)
        for mark, part in PARTS.items():
            reached = statistics.median(parts[mark] for parts in found["parts"][key])
            print(f"{'  ' + part:44} {reached:.2f} s after the worker's start")
    megabytes = found["bytes"] / 1e6
    table.row("bytes of a first visit", f"{megabytes:.2f} MB, goal 12 MB", megabytes / 12, 1.0, at_most=True)
    print(f"{'bytes kept for a visit without a network':44} {found['afterwards'] / 1e6:.2f} MB more")
    print(f"{'bytes of a second visit':44} {found['again'] / 1e6:.2f} MB")
    return int(table.missed)


if __name__ == "__main__":
    sys.exit(main())
