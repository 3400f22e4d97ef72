"""The files of the playground's page: a closed table, made when the process starts, so that no address names another
file."""

from __future__ import annotations

import json
import mimetypes
import os
from pathlib import Path

from qvr_lsp.json_values import Json

PAGE = Path(__file__).parent / "page"
"""Where the build puts the page that travels in the wheel."""
BUILT = Path(__file__).parents[2] / "playground" / "dist"
"""Where `make playground` leaves it in a checkout."""

TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".wasm": "application/wasm",
    ".svg": "image/svg+xml",
    ".ttf": "font/ttf",
    ".whl": "application/octet-stream",
}
"""Not left to the machine's own table, in which a Windows registry may say that a script is plain text."""


PLACE = '<script type="application/json" id="qvr-play">{}</script>'
"""Where the page looks for what its process has to tell."""


class NoPage(Exception):
    """The page was not built; the message says how it is."""


def find_page() -> Path:
    """The folder of the page: the one that QVR_PAGE names, the one that travels in the wheel, the one that was built
    here.  Raises `NoPage`."""
    own = os.environ.get("QVR_PAGE")
    for folder in (Path(own),) if own else (PAGE, BUILT):
        if (folder / "index.html").is_file():
            return folder
    if own:
        raise NoPage(f"QVR_PAGE is {own}, which holds no page: it has no index.html")
    if (BUILT.parents[1] / "Makefile").is_file():
        raise NoPage("the page is not built yet in this checkout: run `make playground` first")
    raise NoPage("this install came without the page of the playground: install the wheel that `make wheel` builds")


def index_with(page: Path, told: Json) -> bytes:
    """The page itself, told what is behind it.  Raises OSError, `NoPage`."""
    text = (page / "index.html").read_text(encoding="utf-8")
    if PLACE not in text:
        raise NoPage(f"the page in {page} is of another version: build it again")
    # `<` would end the script where a program's text says so
    inside = json.dumps(told).replace("<", "\\u003c")
    return text.replace(PLACE, PLACE.replace("{}", inside), 1).encode()


def files_of(page: Path) -> dict[str, Path]:
    """By address, every file of a page; `/` is its index.  Links that lead out of it are left out."""
    root = page.resolve()
    inside = (path for path in root.rglob("*") if path.is_file() and path.resolve().is_relative_to(root))
    files = {f"/{path.relative_to(root).as_posix()}": path for path in inside}
    return {"/": root / "index.html", **files}


def type_of(path: Path) -> str:
    return TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
