"""Numbers as programs write them."""

from __future__ import annotations


def short(value: float) -> str:
    """Two digits are enough for a prior."""
    return _dotted(f"{value:.2g}")


def exact(value: float) -> str:
    """Six digits: where a column is centred, and by what it is divided."""
    return _dotted(f"{value:.6g}")


def _dotted(written: str) -> str:
    written = written.removeprefix("-") if not written.strip("-0.") else written
    return written if any(mark in written for mark in ".en") else f"{written}.0"
