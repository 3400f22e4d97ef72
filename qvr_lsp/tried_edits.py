"""Edits tried on a text before they are offered: in a thread, on an analyser of its own that follows the document."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from lsprotocol import types

from qvr_core.analysis import Analyzer, Snapshot
from qvr_core.ide.answers import TextEdit
from qvr_core.syntax.source import Cursor, split_lines
from qvr_lsp.positions import LineCodec
from qvr_lsp.updates import analyzer_of, apply_changes, background_work, run_to_end

T = TypeVar("T")
Try = Callable[[Sequence[TextEdit]], Snapshot]
"""The analysis of a text as it would be after edits that do not overlap."""

# One thread, so that the changes of a document arrive in their order, whichever requests are cancelled.
THREAD = ThreadPoolExecutor(1, "qvr-trials")


class Trials:
    """What edits to one document would give."""

    def __init__(self, text: str, codec: LineCodec, place: Analyzer) -> None:
        """`place` analyses the document: imports lead from the trials where they lead from there."""
        self._codec = codec
        self._empty = Analyzer("", None, place.location, place.library)
        self._changes: list[types.TextDocumentContentChangeEvent] = [types.TextDocumentContentChangeWholeDocument(text)]
        self._applied = 0
        self._analyzer: Analyzer | None = None

    @property
    def changes(self) -> int:
        """How many changes of the document it holds."""
        return len(self._changes)

    def follow(self, changes: Sequence[types.TextDocumentContentChangeEvent]) -> None:
        """`contentChanges` of the document; they are applied when something is tried next."""
        self._changes += changes

    async def use(self, work: Callable[[Try], T]) -> T:
        """What some work gives that tries edits on the text as it is now.  Who is cancelled does not wait for it."""
        attempt = partial(self._after, self.changes)
        with background_work():
            return await asyncio.get_running_loop().run_in_executor(THREAD, work, attempt)

    def _after(self, count: int, edits: Sequence[TextEdit]) -> Snapshot:
        analyzer = self._analyzer or self._empty
        if self._applied < count:
            changes = self._changes[self._applied : count]
            analyzer = run_to_end(apply_changes(analyzer, changes, self._codec))
            self._applied = count
        text = analyzer.text
        snapshot = after(analyzer, edits)
        self._analyzer = analyzer if analyzer.text == text else analyzer_of(text, analyzer)
        return snapshot


def after(analyzer: Analyzer, edits: Sequence[TextEdit]) -> Snapshot:
    """The analysis after edits, which are then undone."""
    undo: list[tuple[Cursor, Cursor, str]] = []
    for (start, end), new in sorted(((edit.range, edit.text) for edit in edits), reverse=True):
        old = analyzer.document.source.slice(start, end)
        analyzer.edit(start, end, new)
        added = split_lines(new)[0]
        column = len(added[-1]) + (start.column if len(added) == 1 else 0)
        undo.append((start, Cursor(start.line + len(added) - 1, column), old))
    snapshot = analyzer.snapshot()
    for start, end, old in reversed(undo):
        analyzer.edit(start, end, old)
    return snapshot
