"""Formatting, and the indentation of a new line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from qvr_core.ide.answers import TextEdit
from qvr_core.syntax.formatter import STEP, format_edits
from qvr_core.syntax.source import Cursor, Range

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

BLOCK_OPENERS = ("program ", "deduction ", "marginalize ", "lexicon", "family ")
# A function whose value does not stand on its own line.
_FUNCTION = re.compile(r"def\s+\w+\s*\([^()]*\)\s*:?\s*(?:#.*)?$")


def edits(snapshot: Snapshot, first: int = 0, last: int | None = None) -> list[TextEdit]:
    """What brings the lines into canonical layout; damaged statements stay as they are."""
    return [TextEdit(stretch, text) for stretch, text in format_edits(snapshot.layout, first, last)]


def indentation(snapshot: Snapshot, cursor: Cursor) -> list[TextEdit]:
    """The blanks that a fresh line begins with: those of the line above, deeper below what opens a block."""
    lines = snapshot.lines
    if cursor.line == 0 or lines[cursor.line].strip():
        return []
    above = lines[cursor.line - 1]
    text = above.strip()
    indent = len(above) - len(above.lstrip())
    opens = text.startswith(BLOCK_OPENERS) and not text.startswith("lexicon from")
    if opens or _FUNCTION.match(text):
        indent += STEP
    elif text.startswith("return ") and indent:
        indent = 0
    wanted = " " * indent if text else ""
    if lines[cursor.line] == wanted or not text:
        return []
    return [TextEdit(Range(Cursor(cursor.line, 0), Cursor(cursor.line, len(lines[cursor.line]))), wanted)]
