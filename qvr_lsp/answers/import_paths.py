"""Completion inside the path of an import: the files and folders that it may go on with."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from posixpath import dirname, normpath
from typing import TYPE_CHECKING

from lsprotocol import types

from qvr_core.disk import LIBRARY, path_at
from qvr_core.semantics.modules.paths import STD, SUFFIX
from qvr_lsp.documents import View
from qvr_lsp.json_values import Json
from qvr_lsp.workspace import SKIPPED

if TYPE_CHECKING:
    from qvr_lsp.language_server import QvrLanguageServer

MOST_ENTRIES = 2000
"""Of a folder that are looked at."""

FILE, FOLDER = 17, 19


def paths_offered(ls: QvrLanguageServer, document: View, path: str, position: types.Position) -> list[Json]:
    """What may stand behind the last `/` of a path that is being written."""
    before, _, partial = path.rpartition("/")
    typed = {"line": position.line, "character": position.character - len(partial)}
    end = {"line": position.line, "character": position.character}
    names = names_in(document.snapshot.location, before, trusted=ls.trusted)
    return [
        {
            "label": name,
            "kind": FOLDER if name.endswith("/") else FILE,
            "sortText": f"{int(name.startswith('../'))}{name}",
            "filterText": name,
            "textEdit": {"range": {"start": typed, "end": end}, "newText": name},
        }
        for name in names
    ]


def names_in(location: str, before: str, *, trusted: bool) -> list[str]:
    """The programs and folders of the folder that the path `before` leads to from a file at `location`."""
    if before == "std" or before.startswith("std/"):
        inside = normpath(f"./{before.removeprefix('std').strip('/')}")
        return [] if inside.startswith("..") else listing(LIBRARY / inside, LIBRARY, trusted=True)
    own = path_at(location)
    if own is None or location.startswith(STD) or before.startswith(("/", "~")) or "\\" in before or "\0" in before:
        return []
    found = listing(Path(normpath(f"{dirname(own.as_posix())}/{before}")), own, trusted=trusted)
    return found if before else [*found, *(["std/"] if LIBRARY.is_dir() else []), "../"]


def listing(folder: Path, own: Path, *, trusted: bool) -> list[str]:
    """The .qvr files of a folder but for `own`, and the folders in it, which end in `/`."""
    found: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in islice(entries, MOST_ENTRIES):
                if entry.name.startswith((".", "_")) or entry.name in SKIPPED or (entry.is_symlink() and not trusted):
                    continue
                if entry.is_dir():
                    found.append(f"{entry.name}/")
                elif entry.name.endswith(SUFFIX) and Path(entry.path) != own and entry.is_file():
                    found.append(entry.name)
    except OSError:
        return []
    return sorted(found)
