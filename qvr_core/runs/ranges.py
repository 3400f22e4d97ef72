"""Ranges of a text as JSON gives them: zero-based, UTF-16 code units, end exclusive."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.runs.protocol import Position, TextRange
from qvr_core.syntax.source import Cursor, Range, column_to_units


def utf16(range: Range, lines: Sequence[str]) -> TextRange:
    """A range in code points as one in UTF-16 units of `lines`."""
    return TextRange(start=_position(range.start, lines), end=_position(range.end, lines))


def _position(cursor: Cursor, lines: Sequence[str]) -> Position:
    line = lines[cursor.line] if cursor.line < len(lines) else ""
    return Position(line=cursor.line, character=column_to_units(line, cursor.column, "utf-16"))
