"""Where the keys and values of a TOML text stand.

The standard library's `tomllib` reads TOML and says nothing about places; this walks over a text that `tomllib` has
accepted and only finds ends, so it need not judge anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from qvr_core.syntax.tree.names import Span

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Located:
    """Spans in code points from the start of the text.  For a table header the value is the header itself."""

    key: Span
    value: Span


_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[^,\]}#\r\n]*[^,\]}#\s]")
_STRING = re.compile(
    r'"""(?:[^\\]|\\[\s\S])*?"{3,5}|\'\'\'[\s\S]*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'',
)


@dataclass
class _Walk:
    text: str
    at: int = 0
    places: dict[Path, Located] = field(default_factory=dict[Path, Located])

    def skip(self, pattern: re.Pattern[str]) -> int:
        """Move over a match; return where it began."""
        start = self.at
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return start

    def key(self) -> list[tuple[str, Span]]:
        """A dotted key, with the span of each part."""
        parts: list[tuple[str, Span]] = []
        while True:
            self.skip(_BLANK)
            quoted = self.text[self.at] in "\"'"
            start = self.skip(_STRING if quoted else _BARE_KEY)
            written = self.text[start : self.at]
            parts.append((written[1:-1] if quoted else written, Span(start, self.at)))
            self.skip(_BLANK)
            if self.text[self.at] != ".":
                return parts
            self.at += 1

    def pair(self, table: Path) -> None:
        """`key = value`."""
        parts = self.key()
        self.at += 1
        self.skip(_BLANK)
        path = (*table, *(name for name, _ in parts))
        value = self.value(path)
        for depth, (_, span) in enumerate(parts, start=len(table) + 1):
            self.places.setdefault(path[:depth], Located(span, value))

    def value(self, path: Path) -> Span:
        start = self.at
        match self.text[self.at]:
            case "[":
                self.items(path, "]")
            case "{":
                self.items(path, "}")
            case "'" | '"':
                self.skip(_STRING)
            case _:
                self.skip(_BARE_VALUE)
        return Span(start, self.at)

    def items(self, path: Path, closing: str) -> None:
        """The inside of an array or an inline table."""
        self.at += 1
        index = 0
        while True:
            self.skip(_SPACE)
            if self.text[self.at] == closing:
                self.at += 1
                return
            if closing == "}":
                self.pair(path)
            else:
                span = self.value((*path, index))
                self.places[(*path, index)] = Located(span, span)
            index += 1
            self.skip(_SPACE)
            if self.text[self.at] == ",":
                self.at += 1

    def document(self) -> None:
        table: Path = ()
        counts: dict[Path, int] = {}
        while True:
            self.skip(_SPACE)
            if self.at >= len(self.text):
                return
            if self.text[self.at] != "[":
                self.pair(table)
                continue
            start = self.at
            double = self.text.startswith("[[", start)
            self.at += 2 if double else 1
            parts = self.key()
            self.at += 2 if double else 1
            header = Span(start, self.at)
            table = tuple(name for name, _ in parts)
            for depth, (_, span) in enumerate(parts, start=1):
                self.places.setdefault(table[:depth], Located(span, header))
            if double:
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
                self.places[table] = Located(parts[-1][1], header)


def locate(text: str) -> dict[Path, Located]:
    """The place of every key and array item of a valid TOML text, by its path."""
    walk = _Walk(text)
    walk.document()
    return walk.places
