"""Files that import one another, as far as the session knows them: open documents count before the files on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from qvr_core.analysis import Analyzer, Snapshot, analyse
from qvr_core.disk import Disk, location_of_file
from qvr_core.workspace import Workspace
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from qvr_core.semantics.modules.module import Module


class Document(Protocol):
    """An open document, as far as others import it (`documents.Document`)."""

    @property
    def location(self) -> str: ...
    @property
    def ready(self) -> bool: ...
    @property
    def snapshot(self) -> Snapshot: ...
    def module(self) -> Module: ...
    def refresh(self) -> bool: ...
    def publish(self) -> None: ...


class Imports:
    """Tells documents that a file which they import has changed."""

    def __init__(self, opened: Callable[[str], Document | None], *, trusted: bool) -> None:
        """`opened` finds the document that is open at a location."""
        self._opened = opened
        self.workspace = Workspace(Disk(trusted=trusted))
        self._told: dict[str, object] = {}
        """What others know of each document."""
        self._behind: set[str] = set()
        """Documents under analysis that are to look at their imports again once they are ready."""

    def analyzer(self, uri: str) -> Analyzer:
        """An analyser of an empty text in the place of a document."""
        path = path_of(uri)
        return Analyzer("", None, uri if path is None else location_of_file(path), self.workspace)

    def analyse(self, path: Path, text: str) -> Snapshot:
        """The analysis of a text as the file at `path`."""
        return analyse(text, None, location_of_file(path), self.workspace)

    def current(self, snapshot: Snapshot) -> bool:
        """Whether the files that a text imports are what they were when it was analysed."""
        table = snapshot.table
        return all(each.module is not None for each in table.imports) and self.workspace.holds(table.modules)

    def changed(self, document: Document) -> None:
        """A document that is ready has another text, or other findings: those that import it follow."""
        # another document may have been opened while this one was first analysed, unknown to it and it to that
        new = document.location not in self._told
        if document.location in self._behind or (new and not self.current(document.snapshot)):
            self._behind.discard(document.location)
            document.refresh()
            if not document.ready:
                return
        module = document.module()
        if self._told.get(document.location) is module:
            return
        self._told[document.location] = module
        self.workspace.put(module)
        self._follow(document.location)

    def closed(self, document: Document) -> None:
        """A document is closed: what is on disk counts again."""
        self._told.pop(document.location, None)
        self._behind.discard(document.location)
        self.workspace.remove(document.location)
        self._follow(document.location)

    def on_disk(self, path: Path) -> None:
        """A file was written, made or removed."""
        location = location_of_file(path)
        self.workspace.forget(location)
        if self._opened(location) is None:
            self._follow(location)

    def _follow(self, location: str) -> None:
        """Bring everything up to date that leads to a file, in the order in which it is imported."""
        for other in self.workspace.reaching(location):
            if self.workspace.follow(other):
                continue
            document = self._opened(other)
            if document is None:
                continue
            if not document.ready:
                self._behind.add(other)
            elif document.refresh():
                module = self._told[other] = document.module()
                self.workspace.put(module)
                document.publish()
