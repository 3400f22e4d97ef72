"""Where the settings of a folder stand."""

from __future__ import annotations

from pathlib import Path

FILE_NAME = "qvr.toml"


def find_settings(start: Path) -> Path | None:
    """The nearest qvr.toml in `start` or a folder above it."""
    folder = start.resolve()
    for candidate in (folder, *folder.parents):
        if (candidate / FILE_NAME).is_file():
            return candidate / FILE_NAME
    return None
