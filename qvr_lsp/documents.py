"""Open documents: LSP's edits in, snapshots out.

Edits are applied as they come, and published once, after the last of a burst.  A large text, and an edit that turns out
to be much work, are analysed in a thread, so that other requests are answered meanwhile; edits that come until then
wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from qvr_core.analysis import Snapshot
from qvr_core.syntax.source import Cursor, Range, split_lines
from qvr_lsp.diagnostic_conversion import Conversions
from qvr_lsp.imports import Imports
from qvr_lsp.json_values import Json
from qvr_lsp.positions import LineCodec
from qvr_lsp.tried_edits import Trials
from qvr_lsp.updates import (
    MOST_AT_ONCE,
    PER_DIAGNOSTIC,
    Work,
    apply_changes,
    background_analysis,
    collect_garbage,
    length,
    refresh,
    run_at_once,
    run_to_end,
    statement_work,
)

if TYPE_CHECKING:
    from qvr_core.ide.excerpt import Excerpts
    from qvr_core.runs.record.protocol import Failed
    from qvr_core.semantics.modules.module import Module
    from qvr_lsp.editor import Client

log = logging.getLogger("qvr.documents")

# Characters, brackets counted as more (`updates.length`), above which a line is too much work for an excerpt.
LONG_LINE = 1000

# A shorter line is none of those, unless it declares copies.
SHORT_LINE = 100

# Lines above which whole-file answers are made in a thread.
LARGE_LINES = 1000


# Changes after which edits are tried on an analyser that is made anew: those before are kept no longer.
MOST_FOLLOWED = 1000

Publish = Callable[["Document"], None]
Changes = Sequence[types.TextDocumentContentChangeEvent]


def is_long(line: str) -> bool:
    """Whether a line is too much work for an excerpt."""
    return (len(line) > SHORT_LINE or "replicate" in line) and length(line) > LONG_LINE


class View:
    """A text and its analysis, in the editor's positions."""

    def __init__(self, codec: LineCodec, uri: str, version: int | None) -> None:
        self.uri = uri
        self.version = version
        self.codec = codec

    @property
    def snapshot(self) -> Snapshot:
        raise NotImplementedError

    @property
    def large(self) -> bool:
        """Whether going through all of the text takes long, and need not be done here."""
        return False

    @property
    def lines(self) -> Sequence[str]:
        """The text's lines without their ends."""
        return self.snapshot.lines

    def cursor(self, position: types.Position) -> Cursor:
        return self.codec.cursor(self.lines, position)

    def stretch(self, given: types.Range) -> Range:
        return self.codec.stretch(self.lines, given)

    def range(self, stretch: Range) -> types.Range:
        return self.codec.range(self.lines, stretch)

    def place(self, stretch: Range) -> types.Location:
        return types.Location(self.uri, self.range(stretch))

    def position_json(self, cursor: Cursor) -> Json:
        return self.codec.position_json(self.lines, cursor)

    def range_json(self, stretch: Range) -> Json:
        return self.codec.range_json(self.lines, stretch)


class Excerpt(View):
    """An analysis that stays what it is: some lines of a text whose first one is under way, or a text at one moment."""

    def __init__(self, codec: LineCodec, document: Document, snapshot: Snapshot) -> None:
        super().__init__(codec, document.uri, document.version)
        self._snapshot = snapshot

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot


class Document(View):
    """One open text and its analysis."""

    def __init__(
        self, client: Client, publish: Publish, uri: str, version: int | None, text: str, imports: Imports
    ) -> None:
        super().__init__(client.codec, uri, version)
        self._client = client
        self._publish = publish
        self._imports = imports
        self._analyzer = imports.analyzer(uri)
        self.edits = 0
        """How often it was changed."""
        self._waiting: list[types.TextDocumentContentChangeEvent] = []
        self._working: asyncio.Task[None] | None = None
        self._large = False
        self._dirty = False
        self._closed = False
        self._found = 0
        """Diagnostics of the text that was published last."""
        self._before: Snapshot | None = None
        self._text: str | None = None
        """The whole text that is being analysed."""
        self._excerpts: Excerpts | None = None
        self._long_lines: set[int] = set()
        """Lines that no excerpt holds."""
        self._trials: Trials | None = None
        self.conversions = Conversions()
        self.tokens: tuple[str, list[int]] | None = None
        """The semantic tokens sent last, with their result id."""
        self._apply([types.TextDocumentContentChangeWholeDocument(text)])

    # ------------------------------------------------------------ reading

    @property
    def ready(self) -> bool:
        return self._working is None

    @property
    def large(self) -> bool:
        """Whether going through all of the text takes long."""
        return self._large or len(self.lines) > LARGE_LINES

    def slow_between(self, first: int, last: int) -> bool:
        """Whether going through the statements between two lines takes long."""
        return statement_work(self._analyzer.document, first, last) > MOST_AT_ONCE / 2

    def frozen(self) -> Excerpt:
        """The text as it is now, for a thread: later edits do not touch it."""
        return Excerpt(self.codec, self, self.snapshot)

    async def wait_ready(self) -> None:
        """Until all changes are analysed.  Cancelling the waiter does not stop the analysis."""
        while self._working is not None:
            await asyncio.shield(self._working)

    @property
    def last_snapshot(self) -> Snapshot | None:
        """The analysis of the text; while a change is analysed, that before it, None before the first."""
        return self.snapshot if self.ready else self._before

    @property
    def snapshot(self) -> Snapshot:
        """The analysis of the current text; only on a document that is ready."""
        assert self.ready, "the analysis is not done"
        return self._analyzer.snapshot()

    @property
    def lines(self) -> Sequence[str]:
        """The text's lines without their ends; only on a document that is ready."""
        assert self.ready, "the analysis is not done"
        return self._analyzer.document.lines

    @property
    def text(self) -> str:
        """The text, without the changes that are under way."""
        return self._analyzer.text if self._text is None else self._text

    def excerpt(self, first: int, last: int) -> Excerpt | None:
        """Some lines with what they need, while a whole text is analysed; None where they are too many or one is too
        long, and once it has been edited."""
        from qvr_core.ide.excerpt import Excerpts

        if self._waiting or self._text is None:
            return None
        if self._excerpts is None:
            lines = split_lines(self._text)[0]
            self._long_lines = {number for number, line in enumerate(lines) if is_long(line)}
            self._excerpts = Excerpts(["" if at in self._long_lines else line for at, line in enumerate(lines)])
        if any(first <= number <= last for number in self._long_lines):
            return None
        snapshot = self._excerpts.around(first, last)
        return Excerpt(self.codec, self, snapshot) if snapshot is not None else None

    # ------------------------------------------------------------ writing

    def change(self, version: int | None, changes: Changes) -> None:
        """Apply `contentChanges`, in order."""
        self.version = version
        self.edits += 1
        if self._trials is not None:
            self._trials.follow(changes)
            if self._trials.changes > MOST_FOLLOWED:
                self._trials = None
        if self.ready:
            if not self._dirty:
                self._before = self.snapshot
            self._apply(changes)
        else:
            self._waiting += changes

    def _apply(self, changes: Changes) -> None:
        """Apply changes at once where that is little work."""
        work = apply_changes(self._analyzer, changes, self.codec)
        analyzer = run_at_once(work) if self._found * PER_DIAGNOSTIC <= MOST_AT_ONCE else None
        if analyzer is not None:
            self._analyzer = analyzer
            self._changed()
            return
        self._large = True
        if len(changes) == 1 and isinstance(changes[0], types.TextDocumentContentChangeWholeDocument):
            self._text = changes[0].text
        self._working = asyncio.ensure_future(self._finish(work))

    async def _finish(self, work: Work) -> None:
        """Finish work in a thread, and what has come meanwhile."""
        try:
            with background_analysis():
                await self._analyse(work)
        except Exception:
            log.exception("an analysis broke off")
        finally:
            self._working = self._text = self._excerpts = None
        self._changed()

    async def _analyse(self, work: Work) -> None:
        loop = asyncio.get_running_loop()
        self._analyzer = await loop.run_in_executor(None, run_to_end, work)
        self._text, self._excerpts = None, None
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            later: Work = apply_changes(self._analyzer, waiting, self.codec)
            self._analyzer = await loop.run_in_executor(None, partial(run_to_end, later))
        snapshot = self._analyzer.snapshot()
        await loop.run_in_executor(None, self.conversions.of, self._client, self.uri, snapshot)

    def _changed(self) -> None:
        """Publish once after everything that is queued has been handled."""
        if not self._dirty:
            self._dirty = True
            asyncio.get_running_loop().call_soon(self._publish_burst)

    def _publish_burst(self) -> None:
        """A burst of edits is over."""
        self._dirty = False
        if self.ready:
            self._before = None
        if not self._closed and self.ready:
            try:
                self._imports.changed(self)
                self._publish(self)
                self._found = len(self.snapshot.diagnostics())
            except Exception:
                log.exception("diagnostics could not be published")

    def tell_importers(self) -> None:
        """Have those that import it follow edits of this turn before the turn is over."""
        if self._dirty and self.ready:
            self._imports.changed(self)

    @property
    def location(self) -> str:
        """Where the text stands for those that import it."""
        return self._analyzer.location

    def module(self) -> Module:
        """The file as those that import it see it; only on a document that is ready."""
        assert self.ready, "the analysis is not done"
        return self._analyzer.module()

    def refresh(self) -> bool:
        """Take over that an imported file has changed.  False where there are none, or where it is much work, which
        is then done in a thread and published when it is.  Only on a document that is ready."""
        assert self.ready, "the analysis is not done"
        table = self._analyzer.links.table
        if not table.imports and not table.prelude:
            return False
        self._trials = None
        if not self._dirty:
            self._before = self.snapshot
        work = refresh(self._analyzer)
        analyzer = run_at_once(work)
        if analyzer is None:
            self._large = True
            self._working = asyncio.ensure_future(self._finish(work))
            return False
        self._analyzer = analyzer
        return True

    def publish(self) -> None:
        """Publish what is known of the text now, with other changes that are handled in this turn."""
        self._changed()

    def trials(self) -> Trials:
        """Where edits are tried on the text as it is now; only on a document that is ready."""
        if self._trials is None:
            self._trials = Trials(self.text, self.codec, self._analyzer)
        return self._trials

    def close(self) -> None:
        self._closed = True
        if self._large:
            # What was set aside by its analyses is garbage now.
            asyncio.get_running_loop().call_later(1, collect_garbage)


class Documents:
    """The open documents of a session, by URI.  `publish` is called with each whose text or findings have changed."""

    def __init__(self, client: Client, publish: Publish) -> None:
        self._client = client
        self._publish = publish
        self.imports = Imports(self.at, trusted=client.trusted)
        self._open: dict[str, Document] = {}
        self.failures: dict[str, tuple[str, Failed]] = {}
        """The last failed run of each document, with the text that failed."""

    def __iter__(self) -> Iterator[Document]:
        return iter(list(self._open.values()))

    def open(self, uri: str, version: int | None, text: str) -> None:
        self.drop(uri)
        self._open[uri] = Document(self._client, self._publish, uri, version, text, self.imports)

    def find(self, uri: str) -> Document | None:
        return self._open.get(uri)

    def get(self, uri: str) -> Document:
        """An open document.  Raises `JsonRpcInvalidParams` for another one."""
        document = self._open.get(uri)
        if document is None:
            raise JsonRpcInvalidParams(f"{uri} is not open")
        return document

    def asked(self, uri: str) -> Document:
        """An open document that is asked about: what others have changed in this turn counts."""
        document = self.get(uri)
        for other in self._open.values():
            if other is not document:
                other.tell_importers()
        return document

    def change(self, uri: str, version: int | None, changes: Changes) -> None:
        self.get(uri).change(version, changes)

    def drop(self, uri: str) -> bool:
        """Forget a document; whether it was open."""
        document = self._open.pop(uri, None)
        if document is not None:
            document.close()
            self.imports.closed(document)
        return document is not None

    def at(self, location: str) -> Document | None:
        """The open document at a location."""
        return next((document for document in self._open.values() if document.location == location), None)

    def stop(self) -> None:
        """The session is over: forget all of them."""
        for uri in list(self._open):
            self.drop(uri)

    def republish(self, uri: str) -> None:
        document = self._open.get(uri)
        if document is not None and document.ready:
            self._publish(document)
