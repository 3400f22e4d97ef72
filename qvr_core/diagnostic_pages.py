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


def pages() -> dict[str, Path]:
    """Every page, by its code."""
    found = {page.stem: page for place in reversed(PLACES) for page in place.glob("*.md")}
    return {code: found[code] for code in sorted(found) if code != "README"}


def summary_of(page: Path) -> str:
    """The first paragraph of a page."""
    lines = page.read_text(encoding="utf-8").splitlines()[1:]
    return next((line for line in lines if line.strip()), "")
