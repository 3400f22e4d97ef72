"""Cursors and ranges to LSP's positions and back: the only file that knows the negotiated encoding.

Inside, columns count code points.  A place outside the text is moved to the nearest one inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from lsprotocol import types
from pygls.workspace import PositionCodec, ServerTextPosition

from qvr_core.syntax.source import Cursor, Encoding, Range, column_to_units, units_to_column
from qvr_lsp.json_values import Json

Lines = Sequence[str]


class LineCodec(PositionCodec):
    """pygls's codec over lines without their ends."""

    def __init__(self, encoding: types.PositionEncodingKind | str | None = types.PositionEncodingKind.Utf16) -> None:
        super().__init__(encoding)
        self.units: Encoding = cast(Encoding, getattr(encoding, "value", encoding))

    def position_from_client_units(self, lines: Lines, position: types.Position) -> ServerTextPosition:
        """pygls counts the characters of the line one by one, which takes a second where there are a million, and puts
        what is behind the last line in front of its end."""
        cursor = self.cursor(lines, position)
        return ServerTextPosition(cursor.line, cursor.column)

    def position_to_client_units(self, lines: Lines, position: ServerTextPosition | types.Position) -> types.Position:
        """The same the other way round."""
        return self.position(lines, Cursor(position.line, position.character))

    def cursor(self, lines: Lines, position: types.Position) -> Cursor:
        """The cursor at an LSP position."""
        if position.line >= len(lines):
            return Cursor(len(lines) - 1, len(lines[-1]))
        return Cursor(position.line, units_to_column(lines[position.line], position.character, self.units))

    def stretch(self, lines: Lines, given: types.Range) -> Range:
        """The stretch at an LSP range; a range that ends before it starts is turned round."""
        start, end = self.cursor(lines, given.start), self.cursor(lines, given.end)
        return Range(start, end) if start <= end else Range(end, start)

    def column(self, line: str, column: int) -> int:
        # Asking a string whether it is ASCII costs nothing; on a long line, slicing it does.
        return min(column, len(line)) if line.isascii() else column_to_units(line, column, self.units)

    def position(self, lines: Lines, cursor: Cursor) -> types.Position:
        """The LSP position of a cursor."""
        return types.Position(cursor.line, self.column(lines[cursor.line], cursor.column))

    def range(self, lines: Lines, stretch: Range) -> types.Range:
        """The LSP range of a stretch of text."""
        return types.Range(self.position(lines, stretch.start), self.position(lines, stretch.end))

    # ------------------------------------------------------------ prepared JSON

    def position_json(self, lines: Lines, cursor: Cursor) -> Json:
        return {"line": cursor.line, "character": self.column(lines[cursor.line], cursor.column)}

    def range_json(self, lines: Lines, stretch: Range) -> Json:
        start, end = stretch
        return {"start": self.position_json(lines, start), "end": self.position_json(lines, end)}

    def range_of_lines(self, lines: tuple[str, str], stretch: Range) -> Json:
        """The LSP range of a stretch in another text, of which only the lines are given in which it starts and ends."""
        places = zip(("start", "end"), stretch, lines, strict=True)
        return {
            name: {"line": cursor.line, "character": column_to_units(line, cursor.column, self.units)}
            for name, cursor, line in places
        }


def range_from_json(given: Any) -> types.Range:
    """The type of a range that was prepared."""
    start, end = given["start"], given["end"]
    return types.Range(types.Position(**start), types.Position(**end))
