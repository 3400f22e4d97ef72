"""Cursors and ranges to LSP's positions and back: the only file that knows the negotiated encoding.

Inside, columns count code points.  A place outside the text is moved to the nearest one inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qvr_core.syntax.source import Cursor, Encoding, Range, column_to_units, units_to_column
from qvr_lsp.rpc import INVALID_PARAMS, Json, RpcError

Lines = Sequence[str]


def to_cursor(lines: Lines, position: Any, encoding: Encoding) -> Cursor:
    """The cursor at an LSP position."""
    line, character = number(position, "line"), number(position, "character")
    if line >= len(lines):
        return Cursor(len(lines) - 1, len(lines[-1]))
    return Cursor(line, units_to_column(lines[line], character, encoding))


def to_position(lines: Lines, cursor: Cursor, encoding: Encoding) -> Json:
    """The LSP position of a cursor."""
    line = lines[cursor.line]
    # Asking a string whether it is ASCII costs nothing; on a long line, slicing it does.
    column = min(cursor.column, len(line)) if line.isascii() else column_to_units(line, cursor.column, encoding)
    return {"line": cursor.line, "character": column}


def to_range(lines: Lines, stretch: Range, encoding: Encoding) -> Json:
    """The LSP range of a stretch of text."""
    return {"start": to_position(lines, stretch.start, encoding), "end": to_position(lines, stretch.end, encoding)}


def range_of_lines(lines: tuple[str, str], stretch: Range, encoding: Encoding) -> Json:
    """The LSP range of a stretch in another text, of which only the lines are given in which it starts and ends."""
    places = zip(("start", "end"), stretch, lines, strict=True)
    return {
        name: {"line": cursor.line, "character": column_to_units(line, cursor.column, encoding)}
        for name, cursor, line in places
    }


def from_range(lines: Lines, given: Any, encoding: Encoding) -> Range:
    """The stretch at an LSP range; a range that ends before it starts is turned round."""
    if not isinstance(given, dict):
        raise RpcError(INVALID_PARAMS, "a range must have `start` and `end`")
    start, end = to_cursor(lines, given.get("start"), encoding), to_cursor(lines, given.get("end"), encoding)
    return Range(start, end) if start <= end else Range(end, start)


def number(position: Any, key: str) -> int:
    value = position.get(key) if isinstance(position, dict) else None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise RpcError(INVALID_PARAMS, f"a position needs `{key}`, a whole number from 0")
    return value
