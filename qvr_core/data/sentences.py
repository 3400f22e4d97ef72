"""Prose as paragraphs of sentences: blank lines end a paragraph, `.`, `!` and `?` a sentence."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path

from qvr_core.data.problems import NO_FILE, DataProblem, a_folder, no_file, not_readable
from qvr_core.data.size_limits import check_regular, check_room

BYTES_A_LETTER = 4
_PARAGRAPHS = re.compile(r"\n[^\S\n]*\n\s*")
_ENDS = re.compile(r"""(?:(?<=[.!?])|(?<=[.!?]["')\]]))\s+(?=["'(\[*`]*[A-Z])""")
_ABBREVIATION = re.compile(r"(?:^|\s|\()(?:[A-Z]|e\.g|i\.e|etc|cf|vs|Mr|Mrs|Ms|Dr|St|No|Fig|Sec|al)\.$")


def read_paragraphs(path: str, room: int | None = None) -> list[list[str]]:
    """The paragraphs of the files that `path` names (a file, or a pattern with `*` and `**`), files by their names.

    Each is a list of sentences without line breaks, all of them in at most `room` bytes.  Raises `DataProblem`.
    """
    whole = sum(os.path.getsize(name) for name in files(path) if os.path.isfile(name))
    check_room(path, BYTES_A_LETTER * whole, room, remedy="Name fewer files")
    return [sentences(part) for name in files(path) for part in _PARAGRAPHS.split(_read(name)) if part.strip()]


def check_files(path: str) -> None:
    """Raise `DataProblem` where `path` names no file."""
    for name in files(path):
        if not Path(name).exists():
            raise no_file(name)


def sentences(paragraph: str) -> list[str]:
    """The sentences of a paragraph, whose line breaks count as spaces."""
    found: list[str] = []
    for piece in _ENDS.split(" ".join(paragraph.split())):
        if found and _ABBREVIATION.search(found[-1]):
            found[-1] += f" {piece}"
        else:
            found.append(piece)
    return found


def files(path: str) -> list[str]:
    """The files that a path or a pattern (`texts/*.txt`) names, in order.  Raises `DataProblem` where a pattern names
    none."""
    if Path(path).exists() or not glob.has_magic(path):
        return [path]
    found = sorted(name for name in glob.glob(path, recursive=True) if os.path.isfile(name))
    if not found:
        raise DataProblem("no file is called like this", path=path, remedy=NO_FILE, usage=True)
    return found


def _read(path: str) -> str:
    try:
        if Path(path).is_dir():
            raise a_folder(path, f"Name its files: `{path.rstrip('/')}/*.txt`")
        check_regular(path)
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise no_file(path) from error
    except PermissionError as error:
        raise not_readable(path) from error
    except UnicodeDecodeError as error:
        raise DataProblem(f"byte {error.start} is not UTF-8", path=path, remedy="Convert the file to UTF-8") from error
