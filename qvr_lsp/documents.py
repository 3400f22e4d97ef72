"""Open documents: LSP's edits in, snapshots out.

Edits are applied as they come; the analysis of a burst of edits is made once, after the last of them.  A large text is
analysed the first time in a thread, so that other requests are answered meanwhile; edits that come until then wait.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from qvr_core.analysis import Analyzer, Snapshot
from qvr_core.ide.answers import TextEdit
from qvr_core.syntax.source import Cursor, Range, split_lines
from qvr_lsp import positions
from qvr_lsp.conversions import Conversions
from qvr_lsp.rpc import INVALID_PARAMS, Json, RpcError

if TYPE_CHECKING:
    from qvr_core.ide.excerpt import Excerpts
    from qvr_lsp.server import Server

log = logging.getLogger("qvr.documents")

# Characters above which the first analysis goes to a thread: some 30 ms of work.
LARGE = 20_000

# Lines above which whole-file answers are made in a thread.
MANY_LINES = 1000

# Seconds that a thread may hold the interpreter before another one that waits gets it (Python's default is 5 ms).
FAIR_SWITCH, ORDINARY_SWITCH = 0.0005, 0.005

# The first character of each line that is not blank.
COMMENTED = re.compile(r"^[^\S\r\n]*[^\s#]", re.MULTILINE)


class View:
    """A text and its analysis, in the editor's positions."""

    def __init__(self, server: Server, uri: str, version: int | None) -> None:
        self.uri = uri
        self.version = version
        self._server = server

    @property
    def snapshot(self) -> Snapshot:
        raise NotImplementedError

    @property
    def lines(self) -> Sequence[str]:
        """The text's lines without their ends."""
        return self.snapshot.lines

    def cursor(self, position: Any) -> Cursor:
        return positions.to_cursor(self.lines, position, self._server.encoding)

    def position(self, cursor: Cursor) -> Json:
        return positions.to_position(self.lines, cursor, self._server.encoding)

    def range(self, stretch: Range) -> Json:
        return positions.to_range(self.lines, stretch, self._server.encoding)

    def stretch(self, given: Any) -> Range:
        return positions.from_range(self.lines, given, self._server.encoding)


class Excerpt(View):
    """An analysis that stays what it is: some lines of a text whose first one is under way, or a text at one moment."""

    def __init__(self, server: Server, document: Document, snapshot: Snapshot) -> None:
        super().__init__(server, document.uri, document.version)
        self._snapshot = snapshot

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot


class Document(View):
    """One open text and its analysis."""

    def __init__(self, server: Server, uri: str, version: int | None, text: str) -> None:
        super().__init__(server, uri, version)
        self._waiting: list[Any] = []
        self._dirty = False
        self._closed = False
        self._analyzer: Analyzer | None = None
        self._starting: asyncio.Task[None] | None = None
        self._text = text
        self._excerpts: Excerpts | None = None
        self.conversions = Conversions()
        self.tokens: tuple[str, list[int]] | None = None
        """The semantic tokens sent last, with their result id."""
        self._started_large = len(text) >= LARGE
        if not self._started_large:
            self._analyzer = analyzer_of(text)
            self._text = ""
            self._changed()
        else:
            self._starting = asyncio.ensure_future(self._first_analysis())

    # ------------------------------------------------------------ reading

    @property
    def ready(self) -> bool:
        return self._analyzer is not None

    @property
    def large(self) -> bool:
        """Whether going through all of the text takes long."""
        return self._started_large or len(self.lines) > MANY_LINES

    def still(self) -> Excerpt:
        """The text as it is now, for a thread: later edits do not touch it."""
        return Excerpt(self._server, self, self.snapshot)

    async def wait_ready(self) -> None:
        """Until the first analysis is there.  Cancelling the waiter does not stop the analysis."""
        if self._starting is not None:
            await asyncio.shield(self._starting)

    @property
    def snapshot(self) -> Snapshot:
        """The analysis of the current text; only on a document that is ready."""
        assert self._analyzer is not None, "the first analysis is not done"
        return self._analyzer.snapshot()

    @property
    def lines(self) -> Sequence[str]:
        """The text's lines without their ends."""
        assert self._analyzer is not None, "the first analysis is not done"
        return self._analyzer.document.lines

    @property
    def text(self) -> str:
        if self._analyzer is None:
            return self._text
        return self._analyzer.text

    def excerpt(self, first: int, last: int) -> Excerpt | None:
        """Some lines with what they need, while the first analysis is under way; None where they are too many, and once
        the text has been edited."""
        from qvr_core.ide.excerpt import Excerpts

        if self._waiting:
            return None
        if self._excerpts is None:
            self._excerpts = Excerpts(lines_of(self._text))
        snapshot = self._excerpts.around(first, last)
        return Excerpt(self._server, self, snapshot) if snapshot is not None else None

    # ------------------------------------------------------------ writing

    def change(self, version: int | None, changes: list[Any]) -> None:
        """Apply `contentChanges`, in order."""
        self.version = version
        if self._analyzer is None:
            self._waiting += changes
            return
        for change in changes:
            self._apply(change)
        self._changed()

    def _apply(self, change: Any) -> None:
        text = change.get("text") if isinstance(change, dict) else None
        if not isinstance(text, str):
            raise RpcError(INVALID_PARAMS, "a change needs `text`")
        assert self._analyzer is not None
        if change.get("range") is None:
            self._analyzer = analyzer_of(text)
            return
        start, end = self.stretch(change["range"])
        try:
            self._analyzer.edit(start, end, text)
        except Exception:
            # A bug: the analysis of an edit never fails. The text itself is right; start again from it.
            log.exception("an edit could not be analysed")
            self._analyzer = analyzer_of(self._analyzer.text)

    def _changed(self) -> None:
        """Publish once after everything that is queued has been handled."""
        if not self._dirty:
            self._dirty = True
            asyncio.get_running_loop().call_soon(self._settled)

    def _settled(self) -> None:
        self._dirty = False
        if not self._closed and self.ready:
            try:
                self._server.documents.settled(self)
            except Exception:
                log.exception("diagnostics could not be published")

    async def _first_analysis(self) -> None:
        text = self._text
        with Analysing.one():
            analyzer = await asyncio.get_running_loop().run_in_executor(None, analysed, text)
        self._analyzer = analyzer
        self._text, self._excerpts = "", None
        waiting, self._waiting = self._waiting, []
        for change in waiting:
            self._apply(change)
        self._changed()

    def trial(self, edits: Sequence[TextEdit]) -> Snapshot:
        """The analysis of the text as it would be after edits that do not overlap; the document stays as it is."""
        analyzer = self._analyzer
        assert analyzer is not None, "the first analysis is not done"
        text, undo = analyzer.text, list[tuple[Cursor, Cursor, str]]()
        for (start, end), new in sorted(((edit.range, edit.text) for edit in edits), reverse=True):
            old = analyzer.document.source.slice(start, end)
            analyzer.edit(start, end, new)
            added = split_lines(new)[0]
            column = len(added[-1]) + (start.column if len(added) == 1 else 0)
            undo.append((start, Cursor(start.line + len(added) - 1, column), old))
        snapshot = analyzer.snapshot()
        for start, end, old in reversed(undo):
            analyzer.edit(start, end, old)
        if analyzer.text != text:
            self._analyzer = analyzer_of(text)
        return snapshot

    def close(self) -> None:
        self._closed = True
        if self._starting is not None:
            # What was set aside by the first analysis is garbage now.
            self._analyzer, self._starting = None, None
            asyncio.get_running_loop().call_later(1, thaw)


class Fair:
    """Threads that compute.  Meanwhile the event loop gets its turn soon."""

    count = 0

    @classmethod
    @contextmanager
    def turns(cls) -> Iterator[None]:
        cls.count += 1
        sys.setswitchinterval(FAIR_SWITCH)
        try:
            yield
        finally:
            cls.count -= 1
            if cls.count == 0:
                sys.setswitchinterval(ORDINARY_SWITCH)


class Analysing:
    """First analyses that are under way.  Meanwhile the event loop gets its turn soon, and no garbage collection goes
    through trees that are still growing.  What has been built is then set aside: later ones need not either."""

    count = 0

    @classmethod
    @contextmanager
    def one(cls) -> Iterator[None]:
        cls.count += 1
        gc.disable()
        try:
            with Fair.turns():
                yield
        finally:
            cls.count -= 1
            if cls.count == 0:
                gc.freeze()
                gc.enable()


def analyzer_of(text: str) -> Analyzer:
    """An analyser of a text.  Where a bug stops it, one of the same lines as comments: the session goes on."""
    try:
        return Analyzer(text)
    except Exception:
        log.exception("a text could not be analysed")
        return Analyzer(COMMENTED.sub("#", text))


def analysed(text: str) -> Analyzer:
    """An analyser whose first analysis is done."""
    analyzer = analyzer_of(text)
    analyzer.snapshot().diagnostics()
    return analyzer


def thaw() -> None:
    """Collect what was set aside and is no longer used, when no analysis is under way; set the rest aside again."""
    if Analysing.count:
        asyncio.get_running_loop().call_later(1, thaw)
        return
    gc.unfreeze()
    gc.collect()
    gc.freeze()


class Documents:
    """The open documents of a session, by URI."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._open: dict[str, Document] = {}

    def __iter__(self) -> Any:
        return iter(self._open.values())

    def open(self, uri: str, version: int | None, text: str) -> None:
        self.drop(uri)
        self._open[uri] = Document(self._server, uri, version, text)

    def find(self, uri: str) -> Document | None:
        return self._open.get(uri)

    def get(self, uri: str) -> Document:
        """An open document.  Raises RpcError for another one."""
        document = self._open.get(uri)
        if document is None:
            raise RpcError(INVALID_PARAMS, f"{uri} is not open")
        return document

    def change(self, uri: str, version: int | None, changes: list[Any]) -> None:
        self.get(uri).change(version, changes)

    def drop(self, uri: str) -> bool:
        """Forget a document; whether it was open."""
        document = self._open.pop(uri, None)
        if document is not None:
            document.close()
        return document is not None

    def settled(self, document: Document) -> None:
        """A burst of edits is over: publish what was found."""
        from qvr_lsp.features.diagnostics import publish

        publish(self._server, document)
        self._server.load_soon()

    def republish(self, uri: str) -> None:
        document = self._open.get(uri)
        if document is not None and document.ready:
            self.settled(document)


def lines_of(text: str) -> list[str]:
    """The lines of a text as LSP counts them."""
    return split_lines(text)[0]
