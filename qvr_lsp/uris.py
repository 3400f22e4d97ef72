"""File URIs and paths."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from qvr_core.disk import path_at


def path_of(uri: str) -> Path | None:
    """The file that a URI names; None for other schemes (untitled, virtual file systems)."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file":
        return None
    path = unquote(parts.path)
    if os.name == "nt" and path[:1] == "/" and path[2:3] == ":":
        path = path[1:]
    return Path(path) if path and "\0" not in path else None


def uri_of(path: Path) -> str:
    return path.absolute().as_uri()


def uri_of_location(location: str) -> str:
    """The URI of an imported file (`semantics.modules.paths`)."""
    path = path_at(location)
    return location if path is None else uri_of(path)


def is_settings(uri: str) -> bool:
    """Whether a text is a qvr.toml."""
    return uri.endswith("/qvr.toml")
