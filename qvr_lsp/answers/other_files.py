"""Files beside the one that a question is about: open documents, and those of the folders as they are on disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from posixpath import basename
from typing import TYPE_CHECKING

from lsprotocol import types

from qvr_core.analysis import Snapshot
from qvr_core.disk import LIBRARY, location_of_file, path_at
from qvr_lsp.documents import View
from qvr_lsp.features.resolving import run_in_thread
from qvr_lsp.positions import LineCodec
from qvr_lsp.uris import uri_of, uri_of_location
from qvr_lsp.workspace import MAX_FILES

if TYPE_CHECKING:
    from qvr_core.ide.imports.homes import FilePlace
    from qvr_lsp.language_server import QvrLanguageServer

MAX_SEARCHED = 64_000_000
"""Bytes of files on disk that are looked through for one answer."""


class ClosedFile(View):
    """A file that is not open in the editor."""

    def __init__(self, codec: LineCodec, path: Path, snapshot: Snapshot) -> None:
        super().__init__(codec, uri_of(path), None)
        self.path = path
        self._snapshot = snapshot

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot


def location_of(ls: QvrLanguageServer, place: FilePlace) -> types.Location:
    """A place of another file, under the name that the editor has for it."""
    document = ls.documents.at(place.location)
    uri = uri_of_location(place.location) if document is None else document.uri
    return types.Location(uri, ls.codec.range(place.lines, place.range))


async def file_at(ls: QvrLanguageServer, location: str) -> View | None:
    """The file at a location, as it stands in the editor or on disk."""
    document = ls.documents.at(location)
    if document is not None:
        await document.wait_ready()
        return document.frozen()
    path = path_at(location)
    return None if path is None else await run_in_thread(lambda: closed(ls, path))


def closed(ls: QvrLanguageServer, path: Path) -> ClosedFile | None:
    snapshot = ls.workspace.closed_snapshot(path)
    return None if snapshot is None else ClosedFile(ls.codec, path, snapshot)


@dataclass
class Importers:
    """The files that import another one; not `complete` where there were too many to look through."""

    files: list[View]
    complete: bool = True


async def importers(ls: QvrLanguageServer, location: str) -> Importers:
    """The files that import the one at a location: open ones, and those below the folders."""
    found: list[View] = []
    for document in list(ls.documents):
        await document.wait_ready()
        if imports(document.snapshot, location):
            found.append(document.frozen())
    answer = Importers(found)
    await run_in_thread(lambda: add_closed(ls, location, answer))
    return answer


def texts_on_disk(ls: QvrLanguageServer) -> Iterator[tuple[str, str]]:
    """The library's files, and those below the folders that are not open, by location.  In a thread: they are read."""
    room = MAX_SEARCHED
    for path in chain(sorted(LIBRARY.rglob("?*.qvr")), list(ls.workspace.closed_files())):
        text = ls.workspace.closed_text(path)
        if text is not None and len(text) <= room:
            room -= len(text)
            yield location_of_file(path), text


def imports(snapshot: Snapshot, location: str) -> bool:
    table = snapshot.table
    return location in table.prelude or any(
        each.module is not None and each.module.location == location for each in table.imports
    )


def add_closed(ls: QvrLanguageServer, location: str, answer: Importers) -> None:
    """Those that are not open.  In a thread: files are read and analysed."""
    ending = f'{basename(location.replace(":", "/"))}"'
    room = MAX_SEARCHED
    files = list(ls.workspace.closed_files())
    answer.complete = len(files) < MAX_FILES
    for path in files:
        text = ls.workspace.closed_text(path)
        if text is None or len(text) > room:
            answer.complete = False
            continue
        room -= len(text)
        if ending not in text or location_of_file(path) == location:
            continue
        file = closed(ls, path)
        if file is not None and imports(file.snapshot, location):
            answer.files.append(file)
