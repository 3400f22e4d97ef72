"""What tests use instead of a clock: a limit that only a hang reaches, and a count of the work that was done."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType

from qvr_core.runs.record.store import process_start

HANG = 240.0
"""Seconds.  What must come is waited for so long: a busy machine is slow, and no test says how slow it may be."""
NAP = 0.02


def calls(work: Callable[[], object]) -> int:
    """How many functions a piece of work called, C functions included: the same number on every machine."""
    count = 0

    def look(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def wait_gone(pid: int) -> bool:
    """Wait until a process has ended; False where it hangs."""
    for _ in range(int(HANG / NAP)):
        if process_start(pid) is None:
            return True
        time.sleep(NAP)
    return False


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until something holds; an error where it never does."""
    for _ in range(int(HANG / NAP)):
        if holds():
            return
        time.sleep(NAP)
    raise AssertionError("what was waited for never came")
