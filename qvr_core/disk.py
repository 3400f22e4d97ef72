"""Imported files on disk, and the library that comes with the package."""

from __future__ import annotations

import os
import stat
from itertools import islice
from pathlib import Path
from posixpath import commonpath, dirname

from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.modules.package import LIBRARY
from qvr_core.semantics.modules.paths import STD, SUFFIX

MOST_BYTES = 10_000_000
"""No larger file is read."""

MOST_FILES = 1_000
"""Of a folder are looked at for the one that was meant."""

MOST_LETTERS = 1_000
"""Of the path of an import: no system has longer ones."""


def location_of_file(path: str | Path) -> str:
    """The location of a file, for `Analyzer`; `-` is a text that stands in the working directory."""
    found = Path(os.path.abspath("stdin.qvr" if str(path) == "-" else path))
    return STD + found.relative_to(LIBRARY).as_posix() if found.is_relative_to(LIBRARY) else found.as_posix()


def path_at(location: str) -> Path | None:
    """The file at a location; None for a text that is no file on this machine."""
    path = LIBRARY / location.removeprefix(STD) if location.startswith(STD) else Path(location)
    return path if path.is_absolute() else None


def library_files() -> list[str]:
    """The files of the library, as imports name them."""
    return sorted(f"std/{path.relative_to(LIBRARY).as_posix()}" for path in LIBRARY.rglob("?*.qvr"))


class Disk:
    """Reads what imports name (`workspace.Reader`).

    A file is read where its path says that it stands: a link may not lead out of the folder that the importing file and
    the path have in common.  Where the folder is not `trusted`, no link is followed at all.
    """

    def __init__(self, *, trusted: bool = True) -> None:
        self._trusted = trusted

    def refusal(self, location: str, importer: str, written: str) -> str | None:
        """Why an import may not be followed, in words; None where it may, or where there is no file."""
        path = path_at(location)
        if path is None:
            return f"there is no folder here in which {written} could be: save this text as a file first"
        if len(written) > MOST_LETTERS:
            return f"there is no file {written[:MOST_LETTERS]}…"
        if location.startswith(STD):
            if os.path.isfile(path):
                return None
            offered = "" if self.near(location, written) else f": it has {', '.join(library_files())}"
            return f"the library has no {written}{offered}"
        try:
            status = path.stat()
        except (OSError, ValueError):  # a name that no file can have is a ValueError
            nowhere = os.path.islink(path)
            return f"{written} is a link that leads nowhere" if nowhere else f"there is no file {written}"
        if not stat.S_ISREG(status.st_mode):
            return f"{written} is no file"
        if (linked := self._linked(path, importer)) is not None:
            return f"{written} {linked}"
        if status.st_size > MOST_BYTES:
            return f"{written} has {status.st_size:,} bytes, and no file of more than {MOST_BYTES:,} is imported"
        return None if os.access(path, os.R_OK) else f"{written} cannot be read"

    def near(self, location: str, written: str) -> str | None:
        """The path that was meant, of a file in the same folder; None where there is none like it."""
        path = path_at(location)
        if path is None or len(written) > MOST_LETTERS or os.path.lexists(path):
            return None
        if location.startswith(STD):
            found = closest(location.removeprefix(STD), (each.removeprefix("std/") for each in library_files()))
            return None if found is None else f"std/{found}"
        try:
            with os.scandir(path.parent) as entries:
                names = sorted(each.name for each in islice(entries, MOST_FILES) if each.name.endswith(SUFFIX))
        except (OSError, ValueError):
            return None
        found = closest(path.name, names)
        return None if found is None else written.removesuffix(path.name) + found

    def _linked(self, path: Path, importer: str) -> str | None:
        """Why the links on the way to a file are not followed; None where there are none, or none that leaves."""
        top = Path(commonpath([dirname(importer) or ".", path.as_posix()]) if dirname(importer) else ".")
        inside = path.relative_to(top)
        links = any(top.joinpath(*inside.parts[:depth]).is_symlink() for depth in range(1, len(inside.parts) + 1))
        if not links:
            return None
        if not self._trusted:
            return "is behind a symbolic link, which is not followed in a folder that is not trusted"
        if not path.resolve().is_relative_to(top.resolve()):
            return "is behind a symbolic link that leads elsewhere; write the path that is meant"
        return None

    def text(self, location: str) -> str | None:
        """The text of a file, at most `MOST_BYTES` of it; None where there is none."""
        path = path_at(location)
        if path is None or not os.path.isfile(path):
            return None
        try:
            with open(path, "rb") as file:
                raw = file.read(MOST_BYTES + 1)
        except (OSError, ValueError):
            return None
        return None if len(raw) > MOST_BYTES else raw.decode("utf-8-sig", "replace")


class LibraryOnly(Disk):
    """For texts that stand in no folder: the library alone."""

    def refusal(self, location: str, importer: str, written: str) -> str | None:
        if location.startswith(STD):
            return super().refusal(location, importer, written)
        return f"there is no folder here in which {written} could be: load the file, or give `folder=`"

    def text(self, location: str) -> str | None:
        return super().text(location) if location.startswith(STD) else None
