"""`qvr check --fix`: the preferred fixes of a file, applied until nothing is left that one mends."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import TYPE_CHECKING

from qvr_core.syntax.source import SourceText

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

ROUNDS = 20
"""A fix may uncover another problem; so many times in turn."""


def fixed(text: str, analysed: Callable[[str], Snapshot]) -> str:
    """`text` with every preferred fix; a round of fixes that leaves more errors than before is not kept."""
    from qvr_core.ide.edits.fixes import fix_all, harmless

    snapshot = analysed(text)
    for _ in range(ROUNDS):
        source = SourceText(text)
        edits = fix_all(snapshot)
        for edit in reversed(edits):
            source.edit(edit.range.start, edit.range.end, edit.text.replace("\n", source.newline))
        after = analysed(source.text)
        if source.text == text or not (harmless(snapshot, after) or fewer(snapshot, after)):
            break
        text, snapshot = source.text, after
    return text


def fewer(before: Snapshot, after: Snapshot) -> bool:
    """Whether a change leaves fewer problems."""
    return len(after.diagnostics()) < len(before.diagnostics())


def difference(path: str, old: str, new: str) -> str:
    """A unified diff."""
    return "".join(difflib.unified_diff(old.splitlines(True), new.splitlines(True), path, path))
