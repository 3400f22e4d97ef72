"""Where an import leads, as far as its text says: no file is looked at here.

A location names a file: an absolute path with `/`, a relative one where the importing text has no folder, or
`std:NAME` for a file of the library that comes with the package.
"""

from __future__ import annotations

import re
from posixpath import basename, dirname, normpath

from qvr_core.syntax.immutable import immutable

STD = "std:"
"""Before the locations of the package's library."""

SUFFIX = ".qvr"

_ROOTED = re.compile(r"/|~|[A-Za-z]:[\\/]|[A-Za-z][A-Za-z0-9+.-]*://")


@immutable
class WrongPath:
    """A path that leads nowhere: why, and the one that was meant where that is certain."""

    message: str
    meant: str | None = None


def location_of(written: str, importer: str) -> str | WrongPath:
    """The location that an import in the file `importer` names by the text `written`."""
    if not written.strip():
        return WrongPath('an import names a file, as in `import "layers.qvr"`')
    if "\0" in written or written != written.strip():
        return WrongPath(f"{_shown(written)} is no path of a file", written.strip().replace("\0", "") or None)
    if _ROOTED.match(written):
        message = f"{_shown(written)} is an absolute path; an import starts from the folder of its own file"
        return WrongPath(message)
    if "\\" in written:
        return WrongPath(f"{_shown(written)} has `\\`; folders are separated by `/`", written.replace("\\", "/"))
    if not written.endswith(SUFFIX):
        name = basename(written).rstrip(".")  # of `.`, `..` and folders nothing is left
        meant = written.rstrip(".") + SUFFIX if name else None
        return WrongPath(f"{_shown(written)} is no .qvr file", meant)
    if written.startswith("std/"):
        return _library(normpath(written.removeprefix("std/")), written)
    if importer.startswith(STD):
        return _library(normpath(f"{dirname(importer.removeprefix(STD))}/{written}".lstrip("/")), written)
    return normpath(f"{dirname(importer)}/{written}" if dirname(importer) else written)


def _library(inside: str, written: str) -> str | WrongPath:
    if inside.startswith(("../", "/")) or inside in (".", ".."):
        return WrongPath(f"{_shown(written)} leaves the library `std`")
    return STD + inside


def _shown(written: str) -> str:
    return f'"{written}"' if written.isprintable() else "this"


def stem(location: str) -> str:
    """The name of a file without folder and suffix, as an identifier."""
    plain = re.sub(r"\W", "_", basename(location.removeprefix(STD)).removesuffix(SUFFIX), flags=re.ASCII)
    return plain if plain[:1].isalpha() else f"m{plain}"


def shown(location: str) -> str:
    """A location in messages: its name alone, or `std/NAME`."""
    return f"std/{location.removeprefix(STD)}" if location.startswith(STD) else basename(location)
