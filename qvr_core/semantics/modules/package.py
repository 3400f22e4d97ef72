"""The library `std`, which comes with the package: its texts, for files in any place and for texts in none."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from qvr_core.semantics.modules.paths import STD

LIBRARY = Path(__file__).parents[2] / "std"


@cache
def package_text(location: str) -> str | None:
    """The text of a file of the library as it was when it was first asked for; None where there is none."""
    if not location.startswith(STD):
        return None
    try:
        return LIBRARY.joinpath(location.removeprefix(STD)).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
