"""How long a run still takes."""

from __future__ import annotations


def eta(seconds: float, done: int, steps: int) -> float:
    """Seconds until all steps are done, at the pace of those that are (at least one)."""
    return seconds / done * (steps - done)
