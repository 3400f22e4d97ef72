"""Edits and first analyses as work that is counted: little of it is done at once, much of it in a thread.

Work is counted in the checks of single lines of a program, some 10 µs each.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from lsprotocol import types

from qvr_core.analysis import Analyzer
from qvr_core.semantics.modules.paths import location_of
from qvr_core.semantics.scope.bounds import MOST_COPIES
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.statements import Layout
from qvr_lsp.positions import LineCodec

log = logging.getLogger("qvr.documents")

# Above it, work goes to a thread: some 20 ms.
MOST_AT_ONCE = 2000

# Characters of a text, and of one line of code, whose first analysis is one unit of work.
TEXT_CHARACTERS, LINE_CHARACTERS = 10, 3

# A bracket is as much work as so many characters: one that is never closed is looked for to the end.
BRACKET = 20

# What declares copies of an arrow, each as much work as a bracket.
REPLICATED = re.compile(r"\breplicate\s*=\s*(\d{1,9})")

# The work of placing and converting one diagnostic.
PER_DIAGNOSTIC = 1.5

# Seconds that a thread may hold the interpreter before another one that waits gets it (Python's default is 5 ms).
FAIR_SWITCH, ORDINARY_SWITCH = 0.0005, 0.005

# The first character of each line that is not blank.
LINE_START = re.compile(r"^[^\S\r\n]*[^\s#]", re.MULTILINE)

# The paths of a text's imports.
IMPORTED = re.compile(r'^(?:import|from)\s+"([^"\n]+)"', re.MULTILINE)

Work = Generator[float, None, Analyzer]


def length(text: str) -> int:
    """Characters, brackets and copies counted as the work that they are."""
    copies = sum(min(int(count), MOST_COPIES) for count in REPLICATED.findall(text)) if "replicate" in text else 0
    return len(text) + BRACKET * (text.count("(") + text.count("[") + min(copies, MOST_COPIES))


def text_work(text: str) -> float:
    """The work of analysing a whole text."""
    return length(text) / TEXT_CHARACTERS


def statement_work(layout: Layout, first: int, last: int) -> float:
    """The work of reading again the statements that lie between two lines."""
    work = longest = 0
    for statement in layout.statements[max(0, layout.index_at(first)) : layout.index_at(last) + 1]:
        for placed in units_of(statement):
            work += 1
            longest = max(longest, length(placed.unit.text))
        if work > MOST_AT_ONCE:
            break
    return work + longest / LINE_CHARACTERS


def apply_changes(
    analyzer: Analyzer, changes: Sequence[types.TextDocumentContentChangeEvent], codec: LineCodec
) -> Work:
    """Apply `contentChanges` in order.  Gives how much work comes next, or was done; ends with the analyser."""
    for change in changes:
        text = change.text
        try:
            if not isinstance(change, types.TextDocumentContentChangePartial):
                yield text_work(text) + reading_work(text, analyzer)
                analyzer = analyzer_of(text, analyzer)
                continue
            start, end = codec.stretch(analyzer.document.lines, change.range)
            yield statement_work(analyzer.document, start.line, end.line) + text_work(text)
            yield from analyzer.editing(start, end, text)
        except Exception:
            # A bug: the analysis of an edit never fails. The text itself is right; start again from it.
            log.exception("an edit could not be analysed")
            analyzer = analyzer_of(analyzer.text, analyzer)
    return analyzer


def reading_work(text: str, analyzer: Analyzer) -> float:
    """The work of reading the files that a whole text imports."""
    paths: list[str] = IMPORTED.findall(text) if "import" in text else []
    found = {location_of(path, analyzer.location) for path in paths}
    return sum(analyzer.library.waiting(each) for each in found if isinstance(each, str)) / TEXT_CHARACTERS


def refresh(analyzer: Analyzer) -> Work:
    """Take over that imported files have changed."""
    try:
        yield from analyzer.refreshing()
    except Exception:
        log.exception("a text could not follow its imports")
        analyzer = analyzer_of(analyzer.text, analyzer)
    return analyzer


def run_at_once(work: Work) -> Analyzer | None:
    """What little work ends with; None where it is much, which is then still to be finished."""
    left = float(MOST_AT_ONCE)
    try:
        while left >= 0:
            left -= next(work)
    except StopIteration as ended:
        return ended.value
    return None


def run_to_end(work: Work) -> Analyzer:
    """What work ends with, its diagnostics found."""
    while True:
        try:
            next(work)
        except StopIteration as ended:
            return with_diagnostics(ended.value)


def with_diagnostics(analyzer: Analyzer) -> Analyzer:
    """The same, its diagnostics found.  Where a bug stops that, whoever asks for them next is told."""
    try:
        analyzer.snapshot().diagnostics()
    except Exception:
        log.exception("the diagnostics of a text could not be found")
    return analyzer


def analyzer_of(text: str, before: Analyzer | None = None) -> Analyzer:
    """An analyser of a text, in the place of the one `before`.

    Where a bug stops it, one of the same lines as comments: the session goes on.
    """
    place = ("", None) if before is None else (before.location, before.library)
    try:
        return Analyzer(text, None, *place)
    except Exception:
        log.exception("a text could not be analysed")
        return Analyzer(LINE_START.sub("#", text), None, *place)


# ---------------------------------------------------------------- threads


class Background:
    """How much is computed in threads now, and how much of it are analyses; counted on the event loop."""

    threads = analyses = 0


@contextmanager
def background_work() -> Generator[None]:
    """While a thread computes, the event loop gets its turn soon, and no garbage collection goes through what is still
    growing: nobody else would get a turn until it ends."""
    Background.threads += 1
    gc.disable()
    sys.setswitchinterval(FAIR_SWITCH)
    try:
        yield
    finally:
        Background.threads -= 1
        if Background.threads == 0:
            sys.setswitchinterval(ORDINARY_SWITCH)
            gc.enable()


@contextmanager
def background_analysis() -> Generator[None]:
    """The same for an analysis.  What it has built is then set aside: no garbage collection goes through it."""
    Background.analyses += 1
    try:
        with background_work():
            yield
            if Background.analyses == 1:
                gc.freeze()
    finally:
        Background.analyses -= 1


def collect_garbage() -> None:
    """Collect what was set aside and is no longer used, when no analysis is under way; set the rest aside again."""
    if Background.analyses:
        asyncio.get_running_loop().call_later(1, collect_garbage)
        return
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    return_freed_memory()


M_ARENA_MAX = -8
"""glibc's number of it (malloc.h)."""


def keep_one_heap() -> None:
    """Have threads share one heap of C's allocator, where that is glibc's: one each would hold 6 MB more."""
    import ctypes

    limit = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if limit is not None:
        limit(M_ARENA_MAX, 1)


def return_freed_memory() -> None:
    """Give the system back what C's allocator keeps for later, where that is glibc's: pages between others in use."""
    import ctypes  # loaded once something was closed, not at the start

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
