"""The pages about diagnostics: in a clone they stand in docs/, in an installed package beside its code."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).resolve().parent
PLACES = (HERE / "docs" / "diagnostics", HERE.parent / "docs" / "diagnostics")


def page_of(code: str) -> Path | None:
    """The page of a diagnostic's code, where there is one."""
    if not code.replace("-", "").isalnum():
        return None
    return next((page for place in PLACES if (page := place / f"{code}.md").is_file()), None)
