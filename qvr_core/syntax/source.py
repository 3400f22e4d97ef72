"""Text as a list of lines, with LSP's line model: a line ends in `\\n`, `\\r\\n` or `\\r`, and in nothing else."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_TERMINATOR = re.compile(r"\r\n|\n|\r")


class Cursor(NamedTuple):
    """A place between two code points: 0-based line, 0-based column in code points."""

    line: int
    column: int


class Range(NamedTuple):
    """Half-open stretch of text."""

    start: Cursor
    end: Cursor


def split_lines(text: str) -> tuple[list[str], list[str]]:
    """Lines without their terminators, and the terminators; the last line's terminator is ''.

    There is always at least one line, and `''.join(line + end …)` is the text.
    """
    if "\r" not in text:
        lines = text.split("\n")
        return lines, ["\n"] * (len(lines) - 1) + [""]
    lines = _TERMINATOR.split(text)
    return lines, [*_TERMINATOR.findall(text), ""]


def column_to_units(line: str, column: int, encoding: Encoding) -> int:
    """Width of the first `column` code points of `line` in code units of `encoding`; past the end counts as the end."""
    prefix = line[: max(column, 0)]
    if encoding == "utf-32" or prefix.isascii():
        return len(prefix)
    if encoding == "utf-16":
        return len(prefix) + sum(1 for c in prefix if c > "\uffff")
    return sum(_utf8_width(c) for c in prefix)


def units_to_column(line: str, units: int, encoding: Encoding) -> int:
    """Column in code points of the place `units` code units into `line`.

    A place inside a character counts as the character's start, a place past the end as the end of the line.
    """
    if units <= 0:
        return 0
    if encoding == "utf-32" or line.isascii():
        return min(units, len(line))
    for column, character in enumerate(line):
        units -= _utf8_width(character) if encoding == "utf-8" else 1 + (character > "\uffff")
        if units < 0:
            return column
    return len(line)


def _utf8_width(character: str) -> int:
    """Bytes of one code point; a lone surrogate counts 3, as its generalised UTF-8 form has."""
    code = ord(character)
    return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4


class SourceText:
    """A text under edits.  `lines` has no terminators; `ends` holds them, so the exact text can be given back."""

    __slots__ = ("ends", "lines")

    def __init__(self, text: str = "") -> None:
        self.lines, self.ends = split_lines(text)

    @property
    def text(self) -> str:
        return "".join([part for pair in zip(self.lines, self.ends, strict=True) for part in pair])

    @property
    def newline(self) -> str:
        """The terminator that inserted lines should use: that of the first line, `\\n` for a text of one line."""
        return self.ends[0] or "\n"

    def clamp(self, cursor: Cursor) -> Cursor:
        """The nearest place that exists: a line past the last is the end of the text."""
        if cursor.line < 0:
            return Cursor(0, 0)
        if cursor.line >= len(self.lines):
            return Cursor(len(self.lines) - 1, len(self.lines[-1]))
        return Cursor(cursor.line, min(max(cursor.column, 0), len(self.lines[cursor.line])))

    def slice(self, start: Cursor, end: Cursor) -> str:
        """The text between two places, terminators as they are."""
        start, end = self.clamp(start), self.clamp(end)
        if end <= start:
            return ""
        if start.line == end.line:
            return self.lines[start.line][start.column : end.column]
        parts = [self.lines[start.line][start.column :], self.ends[start.line]]
        for i in range(start.line + 1, end.line):
            parts += (self.lines[i], self.ends[i])
        parts.append(self.lines[end.line][: end.column])
        return "".join(parts)

    def edit(self, start: Cursor, end: Cursor, text: str) -> tuple[int, int, int]:
        """Replace the text between two places.

        Returns (first line touched, number of old lines replaced, number of new lines in their place).
        """
        start, end = self.clamp(start), self.clamp(end)
        if end < start:
            start, end = end, start
        first, last = start.line, end.line
        head, tail = self.lines[first][: start.column], self.lines[last][end.column :]
        lines, ends = self.lines, self.ends
        if "\n" not in text and "\r" not in text:
            new_lines, new_ends = [head + text + tail], [ends[last]]
        else:
            new_lines, new_ends = split_lines(head + text + tail + ends[last])
            if ends[last]:
                new_lines.pop()
                new_ends.pop()
        if first > 0 and ends[first - 1] == "\r" and not new_lines[0] and new_ends[0] == "\n":
            # The `\r` that ended the line before and a `\n` that now follows it are one terminator.
            first -= 1
            new_lines[0] = lines[first]
            new_ends[0] = "\r\n"
        lines[first : last + 1] = new_lines
        ends[first : last + 1] = new_ends
        return first, last + 1 - first, len(new_lines)
