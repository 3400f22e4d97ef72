"""What tests use instead of a clock: a limit that only a hang reaches, and a count of the work that was done."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

HANG = 240.0
"""Seconds.  What must come is waited for so long: a busy machine is slow, and no test says how slow it may be."""


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
