"""`qvr check --watch`: once more whenever a file changes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from qvr_core.cli.console import say

PAUSE = 0.3
"""Seconds between two looks at the files: their times and sizes, not their texts."""


def state(files: Iterable[Path]) -> dict[Path, tuple[int, int] | None]:
    """What changes with any of the files; None for one that is not there."""
    found: dict[Path, tuple[int, int] | None] = {}
    for path in files:
        try:
            status = os.stat(path)
        except OSError:
            found[path] = None
        else:
            found[path] = status.st_mtime_ns, status.st_size
    return found


def watch(check: Callable[[], None], programs: Callable[[], list[Path]], behind: Callable[[], Iterable[Path]]) -> None:
    """Run `check` now and after every change of the programs or of what stands `behind` them, until Control-C.

    What stands behind is asked once for each check, since that takes an analysis; the programs at each look.
    """
    try:
        while True:
            others = list(behind())
            known = state([*programs(), *others])
            check()
            say("watching: Control-C ends it", err=True)
            while state([*programs(), *others]) == known:
                time.sleep(PAUSE)
    except KeyboardInterrupt:
        return
