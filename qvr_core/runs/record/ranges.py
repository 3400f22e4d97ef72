"""Ranges of a text as JSON gives them: zero-based, UTF-16 code units, end exclusive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qvr_core.syntax.source import Cursor, Range, column_to_units


def utf16(range: Range, lines: Sequence[str] | Mapping[int, str]) -> dict[str, dict[str, int]]:
    """A range in code points as one in UTF-16 units of `lines`, ready for JSON and for `protocol.TextRange`."""
    return {"start": _position(range.start, lines), "end": _position(range.end, lines)}


def _position(cursor: Cursor, lines: Sequence[str] | Mapping[int, str]) -> dict[str, int]:
    known = cursor.line in lines if isinstance(lines, Mapping) else cursor.line < len(lines)
    line = lines[cursor.line] if known else ""
    return {"line": cursor.line, "character": column_to_units(line, cursor.column, "utf-16")}
