"""Machine code that tests compile is kept for the tests after them, and for the next session.

The user's own cache has room for a few hundred programs.  A session compiles more, so it would find little of what it
has made, and let go what the user's runs have left.  What is read is what would be made: the name of an entry is made
of its source, of the compiler's own files, of LLVM's version and of the processor.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from qvr_core.codegen import object_cache

FOLDER = Path(__file__).resolve().parents[1] / ".cache" / "machine"
ROOM = 256 * 2**20
"""Bytes: the whole of it some ten times over, as the compiler changes."""


def keep_all() -> None:
    """From here on, all that this process and its forks compile is kept, but where a test says another folder."""
    own, thin = object_cache.cache_folder, object_cache._thin  # pyright: ignore[reportPrivateUsage]
    asked = _asked()
    object_cache.cache_folder = lambda: FOLDER if _asked() == asked else own()
    object_cache._thin = lambda folder: None if folder == FOLDER else thin(folder)  # pyright: ignore[reportPrivateUsage]


def _asked() -> tuple[str | None, ...]:
    return tuple(map(os.environ.get, (object_cache.CACHE_VARIABLE, "XDG_CACHE_HOME", "HOME")))


def make_room() -> None:
    """Begin anew where there is no room left."""
    if FOLDER.exists() and sum(file.stat().st_size for file in FOLDER.iterdir()) > ROOM:
        shutil.rmtree(FOLDER)
